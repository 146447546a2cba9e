#!/bin/sh
# Builds everything and runs every test. On a fresh Debian or Ubuntu machine it installs what is missing
# (as root; otherwise it prints the one line to run). Arguments go to ctest: tests/run.sh -R policy
#
# GPUSHIM_PRESET=clang|asan|tsan   another preset than `default` (CMakePresets.json)
# GPUSHIM_MUST_RUN=1               a test that cannot run here is a failure, not a skip
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$here/.."
. tests/packages.sh

preset=${GPUSHIM_PRESET:-default}
clang=""
case $preset in clang*) clang=clang=clang ;; esac
need cc=gcc,libc6-dev gcc=gcc cmake=cmake make=make "<stdio.h>=libc6-dev" "<cmocka.h>=libcmocka-dev" python3=python3 \
    python:pip=python3-pip valgrind=valgrind strace=strace readelf=binutils $clang

# What cannot be fetched is skipped, or fails, by name in ctest's own summary.
tests/fetch-runtimes.sh || true
tests/smi/fetch.sh || true
tests/doors/fetch.sh || true
# Gigabytes: fetched where everything must run, else it is said how.
[ "${GPUSHIM_MUST_RUN:-}" = 1 ] || tests/frameworks/run.sh --need || true

jobs=${GPUSHIM_JOBS:-$(nproc 2>/dev/null || echo 2)}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly()
{
    "$@" >"$log" 2>&1 </dev/null || { cat "$log" >&2; exit 1; }
}
echo "Building ($preset)"
quietly cmake --preset "$preset" ${GPUSHIM_MUST_RUN:+-DGPUSHIM_WERROR=ON}
quietly cmake --build --preset "$preset" --parallel "$jobs"
ctest --preset "$preset" --parallel "$jobs" "$@"
