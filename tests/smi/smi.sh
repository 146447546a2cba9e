#!/bin/sh
# smi.sh NVIDIA_SMI plain|shim: NVIDIA's own nvidia-smi on the simulated NVML. Plainly: it lists the four cards and sees
# that cards of one kind reach each other. With the shim (preloaded by ctest) under peer_access = deny: none does.
set -eu
smi=$1 way=$2
if [ ! -x "$smi" ]; then
    echo "nvidia-smi is not there; tests/smi/fetch.sh fetches it"
    [ "${GPUSHIM_MUST_RUN:-}" = 1 ] && exit 1
    exit 77
fi
[ "$("$smi" -L | grep -c '^GPU [0-3]: Simulated .* (UUID: GPU-0[0-3]51c0da-')" -eq 4 ]
"$smi" --query-gpu=memory.total --format=csv,noheader | tr '\n' ' ' | grep -x '24576 MiB 81920 MiB 24576 MiB 81920 MiB '

reachable=$("$smi" topo -p2p r | grep '^ *GPU[0-9]' | grep -o 'OK' | wc -l)
echo "$reachable pairs reach each other"
case $way in
plain) [ "$reachable" -eq 4 ] ;;
shim) [ "$reachable" -eq 0 ] ;;
esac
