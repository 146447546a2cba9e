#!/bin/sh
# nccl.sh PROGRAM NCCL P2P|SHM: NCCL on two simulated devices works without a word of gpushim's, and every channel between
# them goes that way: from memory to memory, or through the host's. Exit status 77: there is no NCCL on this machine.
set -eu
program=$1 nccl=$2 right=$3
if [ ! -f "$nccl" ]; then
    echo "no libnccl.so.2 on this machine; it comes with a CUDA toolkit's NCCL"
    exit 77
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! NCCL_DEBUG=INFO "$program" "$nccl" >"$log" 2>&1; then
    cat "$log"
    exit 1
fi
ways=$(sed -n 's,.* via \([A-Z0-9]*\)/.*,\1,p' "$log" | sort -u)
if [ "$ways" != "$right" ] || grep '^gpushim:' "$log"; then
    cat "$log"
    echo "channels go by way of '$ways', not $right"
    exit 1
fi
