#!/bin/sh
# old.sh WORK: the object of the package, in a system with the C library of 2020: every route to every hook, by ctest.
set -eu
work=$1
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$("$here/roots.sh" --where bullseye)
if [ "$(id -u)" != 0 ] || [ ! -d "$root" ]; then
    echo "This takes root, and a bullseye system, which tests/deploy/roots.sh makes"
    [ "${GPUSHIM_MUST_RUN:-}" = 1 ] && exit 1
    exit 77
fi
# The one that is built for this machine's own C library, not the one built beside the programs.
dpkg-deb --fsys-tarfile "$work/package/gpushim.deb" | tar -xO --wildcards './usr/lib/x86_64-linux-gnu/libgpushim.so' >"$work/object"
mv "$work/object" "$work/system/libgpushim.so"
mkdir -p "$work/root" "$work/changes"
# shellcheck disable=SC2016
unshare --mount sh -euc '
    root=$1 work=$2
    cd "$work"
    mount -t tmpfs tmpfs changes
    mkdir changes/files changes/kernel
    mount -t overlay -o "lowerdir=$root,upperdir=changes/files,workdir=changes/kernel" overlay root
    mkdir -p "root$work"
    mount --bind "$work" "root$work"
    mount -t proc proc root/proc
    mount --bind /dev root/dev
    unshare --root=root /usr/bin/ldd --version | grep "2\.31$"
    ctest --test-dir system/tests/preload -L route --output-on-failure -j 2' sh "$root" "$work"
