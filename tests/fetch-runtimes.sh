#!/bin/sh
# Fetches NVIDIA's CUDA runtimes and the tools that show GPUs (from PyPI, of the versions in runtimes.txt) into a cache
# outside the tree, so that the tests and the example can run the real thing. Nothing of them is ever installed.
#
#     tests/fetch-runtimes.sh [PACKAGE ...]      only these; default: all of runtimes.txt
#     tests/fetch-runtimes.sh --where            only prints the cache's folder
#
# Prints nothing when all are there; needs no network then. Exit status: 0, or 1 when one of them could
# not be had (each is named on stderr with pip's reason). GPUSHIM_CACHE names another cache.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cache=${GPUSHIM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/gpushim}/runtimes

if [ "${1:-}" = --where ]; then
    echo "$cache"
    exit 0
fi

# unpack FOLDER: what pip has put there, a wheel or, of a tool that has none, the sources of a Python package.
unpack()
{
    mkdir "$1/tree"
    case $(echo "$1"/download/*) in
    *.whl) python3 -m zipfile -e "$1"/download/*.whl "$1/tree" ;;
    *) tar -xzf "$1"/download/*.tar.gz -C "$1/tree" --strip-components=1 ;;
    esac
}

# fetch PACKAGE==VERSION: unpacked at $cache/PACKAGE-VERSION, which appears whole or not at all.
fetch()
{
    target=$cache/$(echo "$1" | sed 's/==/-/')
    [ ! -d "$target" ] || return 0
    if ! mkdir -p "$cache" 2>/dev/null || ! work=$(mktemp -d "$cache/.fetch.XXXXXX" 2>/dev/null); then
        echo "Could not fetch $1: $cache cannot be written to; GPUSHIM_CACHE names another folder" >&2
        return 1
    fi
    echo "Fetching $1" >&2
    for attempt in 1 2 3; do
        if python3 -m pip download --quiet --disable-pip-version-check --no-input --no-deps --prefer-binary \
               --retries 3 --dest "$work/download" "$1" >"$work/log" 2>&1 </dev/null; then
            unpack "$work" || break
            # Another run may have been faster; its tree is as good as ours.
            mv -T "$work/tree" "$target" 2>/dev/null || [ -d "$target" ]
            rm -rf "$work"
            return 0
        fi
        [ "$attempt" = 3 ] || sleep $((attempt * 2))
    done
    # pip's last line only says that nothing was found; what kept it from looking stands before.
    reason=$(grep -i 'could not fetch' "$work/log" | head -n 1)
    [ -n "$reason" ] || reason=$(grep -v '^WARNING' "$work/log" | tail -n 1)
    echo "Could not fetch $1: $reason" >&2
    rm -rf "$work"
    return 1
}

status=0
for runtime in $(grep -v '^#' "$here/runtimes.txt"); do
    wanted=${1:-}
    if [ "$#" -gt 0 ]; then
        wanted=""
        for package in "$@"; do
            [ "$package" != "${runtime%%==*}" ] || wanted=yes
        done
        [ -n "$wanted" ] || continue
    fi
    fetch "$runtime" || status=1
done
exit "$status"
