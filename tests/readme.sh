#!/bin/sh
# readme.sh README SHIM SIMCUDA PROGRAM: the policy that the README shows is one that works: PROGRAM, an ordinary CUDA
# program, runs under it on the simulated driver, and nothing is wrong with the policy.
set -eu
readme=$1 shim=$2 simcuda=$3 program=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sed -n '/^```ini$/,/^```$/p' "$readme" | grep -v '^```' >"$work/policy"
[ -s "$work/policy" ]
LD_LIBRARY_PATH=$simcuda LD_PRELOAD=$shim GPUSHIM_CONF=$work/policy SIMCUDA_STATE=$work/state \
    "$program" 12288 >"$work/out" 2>"$work/err" || { cat "$work/out" "$work/err"; exit 1; }
# 8 GiB by [default]: a request of 12 GiB is refused, one of 6 GiB is not.
grep -q 'cudaMalloc 12.0 GiB: out of memory' "$work/out"
grep -q 'cudaMalloc 6.0 GiB: ok' "$work/out"
