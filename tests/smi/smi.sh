#!/bin/sh
# smi.sh NVIDIA_SMI plain|shim: NVIDIA's own nvidia-smi on the simulated NVML. Plainly it lists the four cards, and sees
# that cards of one kind reach each other. With the shim (preloaded by ctest) under tests/runtime/runtime.conf it shows
# GPUs 3 and 1 as 0 and 1, of 64 MiB each, neither of which reaches the other.
set -eu
smi=$1 way=$2
if [ ! -x "$smi" ]; then
    echo "nvidia-smi is not there; tests/smi/fetch.sh fetches it"
    [ "${GPUSHIM_MUST_RUN:-}" = 1 ] && exit 1
    exit 77
fi

# is WHAT EXPECTED: standard input is the text EXPECTED.
is()
{
    got=$(cat)
    [ "$got" = "$2" ] && return
    printf '%s is\n%s\nnot\n%s\n' "$1" "$got" "$2"
    exit 1
}

case $way in
plain)
    "$smi" -L | sed 's/c0da-.*/.../' | is 'nvidia-smi -L' "GPU 0: Simulated GeForce (UUID: GPU-0051...
GPU 1: Simulated Tesla (UUID: GPU-0151...
GPU 2: Simulated GeForce (UUID: GPU-0251...
GPU 3: Simulated Tesla (UUID: GPU-0351..."
    "$smi" --query-gpu=index,pci.bus_id,memory.total --format=csv,noheader | is 'the query' "0, 00000000:04:00.0, 24576 MiB
1, 00000000:06:00.0, 81920 MiB
2, 00000000:08:00.0, 24576 MiB
3, 00000000:0A:00.0, 81920 MiB"
    reach=4 ;;
shim)
    "$smi" -L | sed 's/c0da-.*/.../' | is 'nvidia-smi -L' "GPU 0: Simulated Tesla (UUID: GPU-0351...
GPU 1: Simulated Tesla (UUID: GPU-0151..."
    "$smi" --query-gpu=index,pci.bus_id,memory.total,memory.free,memory.used --format=csv,noheader |
        is 'the query' "0, 00000000:0A:00.0, 64 MiB, 64 MiB, 0 MiB
1, 00000000:06:00.0, 64 MiB, 64 MiB, 0 MiB"
    "$smi" | grep -c '0MiB /    64MiB' | is 'number of rows in the table' 2
    "$smi" -i 1 --query-gpu=pci.bus_id --format=csv,noheader | is 'GPU 1' '00000000:06:00.0'
    "$smi" -i 00000000:04:00.0 -L 2>&1 | grep -c '^GPU' | is 'what a GPU outside the grant gives' 0
    reach=0 ;;
esac
"$smi" topo -p2p r | grep '^ *GPU[0-9]' | grep -o 'OK' | wc -l | is 'number of pairs that reach each other' "$reach"
