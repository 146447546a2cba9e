#!/bin/sh
# compare.sh CC INCLUDE: compares shim/cuda_abi.h and the signatures of shim/hooks.def with INCLUDE/cuda.h; with
# INCLUDE/nvml.h where that is there, shim/nvml_abi.h too.
set -eu
cc=$1
official=$2
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
shim=$here/../../shim
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# compare WHAT DEFINES...
compare()
{
    what=$1
    shift
    "$cc" -std=gnu11 "$@" -DABI_OFFICIAL -I"$here" -I"$here/../runtime/include" -isystem "$official" -c "$here/abi.c" -o "$work/official.o"
    "$cc" -std=gnu11 "$@" -I"$here" -I"$shim" -c "$here/abi.c" -o "$work/ours.o"
    "$cc" -std=gnu11 -I"$here" "$here/main.c" "$work/official.o" "$work/ours.o" -o "$work/compare"
    echo "$what"
    "$work/compare"
    "$cc" -std=gnu11 "$@" -fsyntax-only -I"$shim" -I"$here/../runtime/include" -isystem "$official" "$here/signatures.c"
    echo "signatures agree"
}

if [ -f "$official/cuda.h" ]; then
    version=$(sed -n 's/^#define CUDA_VERSION *\([0-9]*\).*/\1/p' "$official/cuda.h")
    compare "$official/cuda.h, CUDA $version" -DABI_VERSION="$version"
fi
if [ -f "$official/nvml.h" ]; then
    compare "$official/nvml.h" -DABI_NVML
fi
