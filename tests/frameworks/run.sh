#!/bin/sh
# The frameworks that people install, unmodified, from PyPI, on the simulated driver: plainly and under the shim.
# Each folder here is an environment (requirements.txt) with its scripts, each script a list of scenes (scenes.py).
#
#     tests/frameworks/run.sh [--way WAY] [NAME...]    runs them; NAME is pytorch or pytorch/memory, WAY is plain or shim
#     tests/frameworks/run.sh --fetch [NAME...]        installs what they need, gigabytes, into a cache outside the tree
#     tests/frameworks/run.sh --need [NAME...]         fetches where everything must run (GPUSHIM_MUST_RUN=1), else tells how to
#     tests/frameworks/run.sh --write-table            writes docs/compatibility.md, which lists what is asked
#
# Status 77: not installed, or no registry answers. FRAMEWORKS_VERBOSE=1 shows all that was seen. GPUSHIM_CACHE names another
# cache, FRAMEWORKS_BUILD another build folder, FRAMEWORKS_PYTHON a Python that has it all; FRAMEWORKS_REAL=1 takes the
# machine's own GPUs instead of simulated ones.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$here"
cache=${GPUSHIM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/gpushim}/frameworks
FRAMEWORKS_BUILD=${FRAMEWORKS_BUILD:-$(cd ../.. && pwd)/build}
export FRAMEWORKS_BUILD

# is_there ENVIRONMENT: made of these very requirements, by a Python that is still there.
is_there() { cmp -s "$1/requirements.txt" "$cache/$1/made-of" && "$cache/$1/bin/python" -c '' 2>/dev/null; }

# size ENVIRONMENT: what its requirements say of downloading them.
size() { sed -n 's/^# Downloads //p' "$1/requirements.txt"; }

# fetch ENVIRONMENT: 0 when it is there, 77 when no registry answers, else 1.
fetch()
{
    # One at a time: another run that wants the same waits, and then finds it there.
    mkdir -p "$cache" && exec 9>"$cache/.lock" && flock 9 || return 1
    ! is_there "$1" || return 0
    . ../packages.sh
    # Triton compiles a module for Python at run time.
    need python3=python3 python:ensurepip=python3-venv cc=gcc,libc6-dev \
        "<$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h>=python3-dev" || return 1
    echo "Fetching $1: $(size "$1")" >&2
    rm -rf "${cache:?}/$1"
    mkdir -p "$cache/.tmp" && python3 -m venv "$cache/$1" || return 1
    for attempt in 1 2 3; do
        if TMPDIR="$cache/.tmp" "$cache/$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
               --no-cache-dir --progress-bar off --only-binary :all: -r "$1/requirements.txt" \
               >"$cache/$1/log" 2>&1 </dev/null; then
            cp "$1/requirements.txt" "$cache/$1/made-of"
            return 0
        fi
        rm -rf "$cache/.tmp"
        mkdir -p "$cache/.tmp"
        [ "$attempt" = 3 ] || sleep $((attempt * 5))
    done
    tail -n 5 "$cache/$1/log" >&2
    if grep -q -i -E 'connection|incompleteread|timed out|name resolution|max retries|HTTP error 5' "$cache/$1/log"; then
        echo "SKIPPED: no registry answers, so $1 could not be fetched" >&2
        return 77
    fi
    echo "Could not fetch $1" >&2
    return 1
}

# tell ENVIRONMENT: 0 when it is there, else 77.
tell()
{
    ! is_there "$1" || return 0
    echo "Skipping what needs $1; tests/frameworks/run.sh --fetch $1 downloads $(size "$1")" >&2
    return 77
}

# play SCRIPT WAY
play()
{
    [ -n "${FRAMEWORKS_PYTHON:-}" ] || tell "${1%%/*}" || return 77
    echo "== $1, $2"
    "${FRAMEWORKS_PYTHON:-$cache/${1%%/*}/bin/python}" scenes.py run "$1.py" "$2"
}

ways="plain shim"
act=play
while :; do
    case ${1:-} in
    --way) ways=$2; shift 2 ;;
    --fetch) act=fetch; shift ;;
    --need)
        act=tell
        [ "${GPUSHIM_MUST_RUN:-}" != 1 ] || act=fetch
        shift ;;
    --write-table) exec python3 scenes.py table >../../docs/compatibility.md ;;
    -*) sed -n 's/^# *\(tests\/frameworks\/run.sh\)/\1/p' "$0" >&2; exit 2 ;;
    *) break ;;
    esac
done
[ "$#" -gt 0 ] || set -- */requirements.txt

status=0
note() { [ "$1" = 0 ] || [ "$status" = 1 ] || status=$1; }
for name in "$@"; do
    environment=${name%%/*}
    [ -f "$environment/requirements.txt" ] || { echo "run.sh: nothing is called $name" >&2; exit 2; }
    if [ "$act" != play ]; then
        ("$act" "$environment") || note "$?"
        continue
    fi
    case $name in
    */requirements.txt | "$environment") set -- "$environment"/*.py ;;
    *) set -- "${name%.py}.py" ;;
    esac
    for script in "$@"; do
        for way in $ways; do
            play "${script%.py}" "$way" || note "$?"
        done
    done
done
exit "$status"
