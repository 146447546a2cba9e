#!/bin/sh
# names.sh FOLDER|LIBRARY: the names of the driver's functions that cuda.h and its companions in a folder declare, or that
# a libcuda exports; one a line. For list_test.c.
set -eu
if [ -d "$1" ]; then
    # Declarations; then the macros by which a name stands for another variant, with the suffix of the per-thread stream.
    for header in cuda.h cudaGL.h cudaEGL.h cudaVDPAU.h cudaProfiler.h; do
        [ ! -f "$1/$header" ] || cat "$1/$header"
    done | sed -nE \
        -e 's/.*CUDAAPI[ *]+(cu[A-Z][A-Za-z0-9_]*) *\(.*/\1/p' \
        -e 's/^ *# *define +cu[A-Z][A-Za-z0-9_]* +(cu[A-Z][A-Za-z0-9_]*) *$/\1/p' \
        -e 's/^ *# *define +cu[A-Z][A-Za-z0-9_]* +__CUDA_API_PT(DS|SZ)\((cu[A-Z][A-Za-z0-9_]*)\) *$/\2\n\2_pt\1/p' |
        sed -e 's/_ptDS$/_ptds/' -e 's/_ptSZ$/_ptsz/' | sort -u
else
    # Not the debugger's: cudbg...
    readelf -W --dyn-syms "$1" | awk '$4 == "FUNC" && $7 != "UND" && $8 ~ /^cu[A-Z]/ { sub(/@.*/, "", $8); print $8 }' | sort -u
fi
