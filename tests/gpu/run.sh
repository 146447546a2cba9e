#!/bin/sh
# On a machine with NVIDIA GPUs, by hand: the quickstart's claims on the real driver, through the runtime API and through
# the bare driver API, and that without a policy the shim leaves no trace. Prints 'N passed, N failed' last.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$here/../.."
if ! nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then
    echo "no GPU here: nvidia-smi lists none"
    [ "${GPUSHIM_MUST_RUN:-}" = 1 ] && exit 1
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
check()
{
    what=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        passed=$((passed + 1))
        echo "ok: $what"
    else
        failed=$((failed + 1))
        echo "FAILED: $what"
        sed 's/^/    /' "$work/out"
    fi
}

on_real_gpus() { examples/quickstart.sh | tee "$work/shown" && ! grep -q simulated "$work/shown"; }
on_driver_api() { QUICKSTART_API=driver on_real_gpus; }
# Without a policy: the same output, and silence.
leaves_no_trace()
{
    build/examples/tour-driver 64 >"$work/without"
    LD_PRELOAD="$PWD/build/libgpushim.so" build/examples/tour-driver 64 >"$work/with" 2>"$work/err"
    [ ! -s "$work/err" ] && sed '/free/d' "$work/without" >"$work/a" && sed '/free/d' "$work/with" | cmp - "$work/a"
}
check "quickstart, runtime API, real GPUs" on_real_gpus
check "quickstart, driver API, real GPUs" on_driver_api
check "no policy, no trace" leaves_no_trace

# PyTorch: python3's own if it has one, else the one that tests/frameworks/run.sh --fetch pytorch has installed.
pytorch() { FRAMEWORKS_REAL=1 tests/frameworks/run.sh --way shim pytorch/devices pytorch/memory; }
if python3 -c 'import torch' 2>/dev/null; then
    FRAMEWORKS_PYTHON=python3
    export FRAMEWORKS_PYTHON
    check "PyTorch, real GPUs" pytorch
elif tests/frameworks/run.sh --need pytorch; then
    check "PyTorch, real GPUs" pytorch
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
