#!/bin/sh
# Shows gpushim at work: builds it, then runs an unmodified CUDA program (tour.c) without it and with it.
# On this machine's GPUs if there are any, else on four simulated ones; needs no GPU and no CUDA toolkit.
# On a fresh Debian or Ubuntu machine it installs what is missing (as root; otherwise it prints the one
# line to run). Exit status 0 only if everything that it shows has really happened.
#
# QUICKSTART_GPUS=simulated   simulated GPUs even where there are real ones
# QUICKSTART_API=driver       the program on the bare driver API, without a CUDA runtime
# QUICKSTART_SHIM=PATH        an installed library; nothing is built, so the programs have to be there
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$here/.."
. tests/packages.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CUDA_VISIBLE_DEVICES GPUSHIM_POLICY GPUSHIM_CONF

say() { printf '%s\n' "$@"; }
die()
{
    say "" "quickstart: $*" >&2
    exit 1
}
quietly()
{
    "$@" >"$work/log" 2>&1 </dev/null || { cat "$work/log" >&2; die "that did not work: $*"; }
}

# --- Which GPUs -------------------------------------------------------------------------------------
gpus=0
driver=""
if [ "${QUICKSTART_GPUS:-}" != simulated ] && nvidia-smi -L >"$work/smi" 2>/dev/null; then
    gpus=$(grep -c '^GPU ' "$work/smi") || true
    driver=$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9]*\)\..*/\1/p')
    PATH=$PATH:/sbin ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1 ' || gpus=0
fi
if [ "$gpus" -gt 0 ]; then
    case $gpus in
    1) devices=0 granted=1 ;;
    2) devices=1 granted=1 ;;
    3) devices=2,1 granted=2 ;;
    *) devices=3,1 granted=2 ;;
    esac
    memory=1GiB ask=1536
    about="this machine's GPUs"
    library_path=${LD_LIBRARY_PATH:-}
else
    gpus=4 devices=3,1 granted=2 memory=8GiB ask=12288 driver=13
    about="four simulated GPUs"
    library_path=$PWD/build/simcuda
    SIMCUDA_STATE=$work/simulated
    export SIMCUDA_STATE
    unset SIMCUDA_GPUS SIMCUDA_DRIVER SIMCUDA_FAIL SIMCUDA_MISSING
fi

# --- Build ------------------------------------------------------------------------------------------
program=tour-driver
build()
{
    need cc=gcc,libc6-dev gcc=gcc cmake=cmake make=make "<stdio.h>=libc6-dev"
    if [ "${QUICKSTART_API:-}" != driver ]; then
        case $driver in
        11) runtime=11 package=nvidia-cuda-runtime-cu11 ;;
        12) runtime=12 package=nvidia-cuda-runtime-cu12 ;;
        *) runtime=13 package=nvidia-cuda-runtime ;;
        esac
        if ! need_has python:pip && [ "$(id -u)" -eq 0 ]; then
            need python3=python3 python:pip=python3-pip || true
        fi
        tests/fetch-runtimes.sh $package || true
        program=tour-$runtime
    fi
    say "Building gpushim"
    werror=""
    [ -f build/CMakeCache.txt ] || werror=-DGPUSHIM_WERROR=OFF # a newcomer's compiler may know more warnings
    quietly cmake --preset default $werror
    quietly cmake --build build --target help
    if ! grep -q "$program\$" "$work/log"; then
        say "No CUDA runtime could be had; the program speaks the driver API instead."
        program=tour-driver
    fi
    quietly cmake --build build --parallel "$(nproc)" --target gpushim simcuda_13_0 simcuda_nvml_13_0 "$program"
}
shim=${QUICKSTART_SHIM:-}
if [ -z "$shim" ]; then
    build
    shim=./build/libgpushim.so # relative: LD_PRELOAD takes no spaces, and this folder's name may have some
fi

# --- Run --------------------------------------------------------------------------------------------
policy=build/quickstart.conf
cat >"$policy" <<END
[default]
devices = $devices
memory = $memory
peer_access = deny
END

# CUDA's own order of GPUs is fastest first; nvidia-smi's, which policies use, is by PCI bus.
CUDA_DEVICE_ORDER=PCI_BUS_ID
export CUDA_DEVICE_ORDER
status=0
LD_LIBRARY_PATH=$library_path "build/examples/$program" "$ask" "$granted" \
    >"$work/without" 2>"$work/without.err" </dev/null || status=$?
[ "$status" -eq 0 ] || { cat "$work/without" "$work/without.err" >&2; die "the program itself does not run here; QUICKSTART_GPUS=simulated shows it on simulated GPUs"; }
LD_LIBRARY_PATH=$library_path LD_PRELOAD=$shim GPUSHIM_CONF=$policy \
    "build/examples/$program" "$ask" "$granted" >"$work/with" 2>"$work/with.err" </dev/null || status=$?

# --- Show -------------------------------------------------------------------------------------------
width=${COLUMNS:-}
[ -n "$width" ] || width=$({ stty size </dev/tty | cut -d " " -f 2; } 2>/dev/null) || true
[ "${width:-0}" -gt 0 ] 2>/dev/null || width=80

say "" "The policy, $policy:" ""
sed 's/^/    /' "$policy"
say "" "The program: examples/tour.c, an ordinary CUDA program, on $about." ""
left=$(awk '{ if (length($0) > n) n = length($0) } END { print n }' "$work/without")
right=$(awk '{ if (length($0) > n) n = length($0) } END { print n }' "$work/with")
if [ $((left + right + 3)) -le "$width" ]; then
    awk -v n="$left" -v other="$work/with" '
        function show(a, b) { line = sprintf("%-" n "s | %s", a, b); sub(/ +$/, "", line); print line }
        BEGIN { show("WITHOUT gpushim", "WITH gpushim"); rule = sprintf("%" n "s", ""); gsub(/ /, "-", rule); print rule "-+-" rule }
        { if ((getline b < other) <= 0) b = ""; show($0, b) }
        END { while ((getline b < other) > 0) show("", b) }' "$work/without"
else
    say "WITHOUT gpushim" "---------------"
    cat "$work/without"
    say "" "WITH gpushim" "------------"
    cat "$work/with"
fi
say "" "What gpushim said meanwhile, on standard error:" ""
fold -s -w $((width > 24 ? width - 4 : 20)) "$work/with.err" | sed 's/^/    /'

# --- Was all of that true? --------------------------------------------------------------------------
# check WHAT COMMAND...: says which of the things that should have happened did not.
check()
{
    what=$1
    shift
    "$@" || die "this should have happened and did not: $what"
}
has() { grep -q -e "$2" "$work/$1"; }
lacks() { ! grep -q -e "$2" "$work/$1"; }
# Bus ids in the order in which a run saw its GPUs.
buses() { sed -n 's/^ *\([0-9a-f]\{4\}:[0-9a-f]\{2\}:[0-9a-f]\{2\}\.0\) .*/\1/p' "$work/$1"; }
sees_the_granted()
{
    for index in $(echo "$devices" | tr ',' ' '); do
        buses without | sed -n "$((index + 1))p"
    done >"$work/expected"
    buses with | cmp -s - "$work/expected"
}
check "the program ran to its end under the policy" [ "$status" -eq 0 ]
check "without the shim it sees $gpus GPUs" has without "^GPUs: $gpus\$"
check "with it, $granted" has with "^GPUs: $granted\$"
check "those are GPUs $devices, in this order" sees_the_granted
check "an allocation over the cap is out of memory" has with "cudaMalloc .* GiB: out of memory"
check "a smaller one is not" has with "cudaMalloc .* GiB: ok"
check "its memory works" has with "used it, freed it"
check "GPU $granted is an invalid ordinal" has with "invalid device ordinal"
check "peer access is refused" has with "no GPU can reach another"
check "the program goes on" has with "^Done"
check "a line explains the refused memory" has with.err "^gpushim: .*out of memory"
check "a line explains the ordinal" has with.err "^gpushim: .*invalid device ordinal"
if [ "$about" = "four simulated GPUs" ]; then
    check "without the shim there is memory enough" lacks without "out of memory"
    check "and the ordinal is valid" lacks without "invalid device ordinal"
    check "and GPUs reach each other" lacks without "no GPU can reach another"
    check "and nothing is complained about" [ ! -s "$work/without.err" ]
fi

say "" "All of this was checked, by what the program itself said."
say "" "What next"
say "  A policy of your own:    cp gpushim.conf.example my.conf   (docs/gpushim.conf.5 explains it)"
say "  Run a program in it:     GPUSHIM_CONF=my.conf LD_PRELOAD=\"$PWD/build/libgpushim.so\" PROGRAM"
say "  For a whole machine:     README.md, \"Use it\""
case $PWD in
*[:\ ]*) say "  (LD_PRELOAD takes no spaces: copy the library to a path without them first.)" ;;
esac
