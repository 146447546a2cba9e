#!/bin/sh
# same.sh PROGRAM SHIM POLICY STATE [BARE_CARDS CARDS]: the program says the same on the bare driver and with the shim under
# the policy, whose lines have a space between; on these cards (SIMCUDA_GPUS).
set -eu
program=$1 shim=$2 policy=$(echo "$3" | tr " " ";") state=$4
cards()
{
    [ -z "$1" ] || export SIMCUDA_GPUS="$1"
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUDA_DEVICE_ORDER=PCI_BUS_ID # with `devices`, the shim's order; without the shim it has to be asked for
export SIMCUDA_STATE="$state.bare"
cards "${5:-}"
"$program" >"$work/bare" 2>&1 || { tail "$work/bare"; echo "fails on the bare driver"; exit 1; }
cards "${6:-}"
export SIMCUDA_STATE="$state.shim"
LD_PRELOAD=$shim GPUSHIM_POLICY=$policy "$program" >"$work/shim" 2>"$work/log" ||
    { tail "$work/shim"; cat "$work/log"; echo "fails with the shim"; exit 1; }
echo "$(wc -l <"$work/bare") lines"
diff -U0 "$work/bare" "$work/shim" || { echo "-: the bare driver; +: with the shim, $policy"; cat "$work/log"; exit 1; }
