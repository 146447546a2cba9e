#!/bin/sh
# same.sh PROGRAM SHIM POLICY STATE: the program says the same on the bare driver and with the shim under the policy.
set -eu
program=$1 shim=$2 policy=$3 state=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUDA_DEVICE_ORDER=PCI_BUS_ID # with `devices`, the shim's order; without the shim it has to be asked for
export SIMCUDA_STATE="$state"
"$program" >"$work/bare" 2>&1 || { tail "$work/bare"; echo "fails on the bare driver"; exit 1; }
LD_PRELOAD=$shim GPUSHIM_POLICY=$policy "$program" >"$work/shim" 2>"$work/log" ||
    { tail "$work/shim"; cat "$work/log"; echo "fails with the shim"; exit 1; }
echo "$(wc -l <"$work/bare") lines"
diff -U0 "$work/bare" "$work/shim" || { echo "-: the bare driver; +: with the shim, $policy"; cat "$work/log"; exit 1; }
