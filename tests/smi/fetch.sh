#!/bin/sh
# Fetches NVIDIA's own nvidia-smi, as Debian packages it in non-free, into the cache of fetch-runtimes.sh, without
# touching the machine's packages or sources. Prints nothing when it is there. Exit status 1: it could not be had.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
target=$("$here/../fetch-runtimes.sh" --where)/nvidia-smi
[ ! -x "$target" ] || exit 0
if ! grep -q '^ID=debian' /etc/os-release 2>/dev/null || ! command -v apt-get >/dev/null; then
    echo "nvidia-smi is fetched from Debian's non-free; this is not Debian" >&2
    exit 1
fi

mkdir -p "$(dirname "$target")"
work=$(mktemp -d "$(dirname "$target")/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/sources" "$work/lists/partial" "$work/cache/archives/partial"

# The machine's own sources, with non-free added.
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ ! -f "$list" ] || sed -E '/^deb /s/ main( .*)?$/ main contrib non-free/' "$list" >"$work/sources/$(basename "$list" .list).list"
done
for list in /etc/apt/sources.list.d/*.sources; do
    [ ! -f "$list" ] || sed -E 's/^(Components:.*)/\1 contrib non-free/' "$list" >"$work/sources/$(basename "$list")"
done

echo "Fetching nvidia-smi" >&2
cd "$work"
apt()
{
    apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/sources" -o Dir::State::Lists="$work/lists" \
        -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root "$@" >"$work/log" 2>&1 </dev/null
}
if apt update && apt download nvidia-smi && dpkg -x nvidia-smi_*.deb tree; then
    mv "$(find tree -type f -path '*/lib/nvidia/*' -name nvidia-smi)" "$target"
else
    echo "Could not fetch nvidia-smi: $(tail -n 1 "$work/log")" >&2
    exit 1
fi
