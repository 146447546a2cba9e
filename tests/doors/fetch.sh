#!/bin/sh
# Fetches NVIDIA's own libcuda, of the versions in drivers.txt, as Debian packages it in non-free, into the cache of
# fetch-runtimes.sh: to read its table of symbols, never to run it. Touches neither the machine's packages nor its sources.
# Prints nothing when all are there. Exit status 1: one of them could not be had, and stderr says why.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cache=$("$here/../fetch-runtimes.sh" --where)
helper=/usr/lib/apt/apt-helper

# fetch PACKAGE VERSION SHA256: the library at $cache/PACKAGE-VERSION/libcuda.so.1, which appears whole or not at all.
fetch()
{
    target=$cache/$1-$2
    [ ! -e "$target/libcuda.so.1" ] || return 0
    if ! grep -q '^ID=debian' /etc/os-release 2>/dev/null || [ ! -x "$helper" ] || [ "$(uname -m)" != x86_64 ]; then
        echo "libcuda is fetched from Debian's non-free for amd64; this is not Debian on x86-64" >&2
        return 1
    fi
    # Where this machine has its Debian packages from; the pool has them of every release.
    archive=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 'Created-By: Packages' 'Component: main' |
        sed -n 's#^Debian \(.*/debian/\)$#\1#p' | head -n 1)
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/.fetch.XXXXXX")
    echo "Fetching $1 $2" >&2
    if "$helper" download-file "${archive}pool/non-free/n/nvidia-graphics-drivers/$1_$2_amd64.deb" "$work/deb" "SHA256:$3" \
           >"$work/log" 2>&1 </dev/null &&
       dpkg -x "$work/deb" "$work/tree" && mkdir "$work/whole" &&
       mv "$(find "$work/tree" -type f -name 'libcuda.so.*')" "$work/whole/libcuda.so.1"; then
        mv -T "$work/whole" "$target" 2>/dev/null || [ -e "$target/libcuda.so.1" ]
        rm -rf "$work"
        return 0
    fi
    echo "Could not fetch $1 $2: $(tail -n 1 "$work/log")" >&2
    rm -rf "$work"
    return 1
}

status=0
while read -r package version sum; do
    case $package in "#"* | "") continue ;; esac
    fetch "$package" "$version" "$sum" || status=1
done <"$here/drivers.txt"
exit "$status"
