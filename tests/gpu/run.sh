#!/bin/sh
# On a machine with NVIDIA GPUs, by hand: what only hardware can show (claims.c), the quickstart on the real driver, and
# PyTorch. Prints a line for each claim with its figures, a table of what the hooks cost, and 'N passed, N failed' last.
#
#     tests/gpu/run.sh                 some minutes
#     tests/gpu/run.sh --simulated     the claims alone, on the simulated driver: a test of this script, not of hardware
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$here/../.."
simulated=${1:-}
build=${GPUSHIM_BUILD:-build}
if [ "$simulated" = --simulated ]; then
    LD_LIBRARY_PATH=$PWD/$build/simcuda
    [ "${build#/}" = "$build" ] || LD_LIBRARY_PATH=$build/simcuda
    export LD_LIBRARY_PATH
elif ! nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then
    echo "no GPU here: nvidia-smi lists none"
    [ "${GPUSHIM_MUST_RUN:-}" = 1 ] && exit 1
    exit 77
else
    cmake --preset default >/dev/null && cmake --build --preset default --target gpushim claims tour-driver >/dev/null
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
figures=
passed=0
failed=0
check()
{
    what=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        passed=$((passed + 1))
        echo "ok: $what"
        [ -z "$figures" ] || sed 's/^/    /' "$work/out"
    else
        failed=$((failed + 1))
        echo "FAILED: $what"
        sed 's/^/    /' "$work/out"
    fi
}

# under POLICY COMMAND...: with the shim. LD_PRELOAD takes no path with spaces.
shim=$(cd "$build" && pwd)/libgpushim.so
under()
{
    policy=$1
    shift
    (cd "$(dirname "$shim")" && LD_PRELOAD=./libgpushim.so GPUSHIM_POLICY="$policy" exec "$@")
}
claims=$(cd "$build" && pwd)/tests/gpu/claims
reversed() { "$claims" list | sed '1!G;h;$!d'; }
joined() { tr '\n' ',' | sed 's/,$//'; }

# The driver filters and orders by the list that the shim hands it in cuInit, whatever the program's own variable says.
view()
{
    # shellcheck disable=SC2046
    under "devices = $(reversed | joined)" "$claims" view $(reversed)
}
one_of_view()
{
    CUDA_VISIBLE_DEVICES=0
    export CUDA_VISIBLE_DEVICES
    under "devices = $(reversed | joined)" "$claims" view "$(reversed | head -n 1)"
}
addresses() { "$claims" addresses; }
cap() { under "devices = $(reversed | head -n 1); memory = $1MiB" "$claims" cap "$1"; }

# What the calls take with the shim beside what they take without, in nanoseconds.
cost()
{
    "$claims" cost >"$work/bare" && under "memory = 4GiB" "$claims" cost >"$work/shim" &&
        printf '%-40s %12s %12s %12s\n' "ns a round" driver "with gpushim" more &&
        paste -d ' ' "$work/bare" "$work/shim" |
        awk '$1 == $3 { printf "%-40s %12d %12d %12d\n", $1, $2, $4, $4 - $2; rows++ } END { exit rows < 6 }'
}

figures=yes
check "the driver shows what the policy grants, in its order, and cuInit reads CUDA_VISIBLE_DEVICES" view
check "CUDA_VISIBLE_DEVICES counts within the grant" one_of_view
check "cuGetProcAddress and the symbol table give the same addresses" addresses
check "a cap of 1 GiB holds by NVML's word, contexts included" cap 1024
check "a cap of 3 GiB holds by NVML's word, contexts included" cap 3072
check "what the hooks cost" cost
figures=
if [ "$simulated" != --simulated ]; then
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
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
