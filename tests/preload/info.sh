#!/bin/sh
# info.sh SHIM PROBE: at log_level = info the first cuInit says which GPU each CUDA device is: nvidia-smi's number, name,
# UUID, PCI id and cap. Run in the shim's folder; SHIM is its bare name. Nothing is said at warn, the default.
set -eu
shim=$1 probe=$2
status=0

# says ENVIRONMENT... -- the lines that a program which initialises CUDA twice gets on standard error, from standard input.
says()
{
    right=$(cat)
    got=$(env "$@" LD_PRELOAD="./$shim" "$probe" init init 2>&1 >/dev/null)
    [ "$got" = "$right" ] && return
    printf '%s says\n%s\nnot\n%s\n' "$*" "$got" "$right"
    status=1
}

info='[gpushim];log_level=info'
says "GPUSHIM_POLICY=devices=3,1;memory=1GiB;memory.1=none;$info" <<'END'
gpushim: CUDA device 0 = GPU 3, Simulated Tesla, GPU-0351c0da-51c0-4da0-8000-000000000003, 0000:0A:00.0, memory cap 1 GiB
gpushim: CUDA device 1 = GPU 1, Simulated Tesla, GPU-0151c0da-51c0-4da0-8000-000000000001, 0000:06:00.0, memory cap none
END
# a share is of what the card has; the program's own choice counts within the grant
says CUDA_VISIBLE_DEVICES=1,0 "GPUSHIM_POLICY=devices=2,1,0;memory=25%;$info" <<'END'
gpushim: CUDA device 0 = GPU 1, Simulated Tesla, GPU-0151c0da-51c0-4da0-8000-000000000001, 0000:06:00.0, memory cap 20 GiB
gpushim: CUDA device 1 = GPU 2, Simulated GeForce, GPU-0251c0da-51c0-4da0-8000-000000000002, 0000:08:00.0, memory cap 6 GiB
END
# without a view CUDA's own order stays, the faster cards first, and nvidia-smi's numbers are the same as ever
says CUDA_VISIBLE_DEVICES=0,2 "GPUSHIM_POLICY=memory=8GiB;$info" <<'END'
gpushim: CUDA device 0 = GPU 1, Simulated Tesla, GPU-0151c0da-51c0-4da0-8000-000000000001, 0000:06:00.0, memory cap 8 GiB
gpushim: CUDA device 1 = GPU 0, Simulated GeForce, GPU-0051c0da-51c0-4da0-8000-000000000000, 0000:04:00.0, memory cap 8 GiB
END
says SIMCUDA_GPUS=24GiB@geforce,80GiB@tesla/mig=2 SIMCUDA_STATE="$SIMCUDA_STATE.mig" \
    "GPUSHIM_POLICY=devices=MIG-0151c0da-51c0-4da0-8000-000000004d01;memory=4GiB;$info" <<'END'
gpushim: CUDA device 0 = a MIG device of GPU 1, Simulated Tesla MIG 1g, MIG-0151c0da-51c0-4da0-8000-000000004d01, 0000:06:00.0, memory cap 4 GiB
END
says "GPUSHIM_POLICY=devices=3,1;memory=1GiB" </dev/null
exit "$status"
