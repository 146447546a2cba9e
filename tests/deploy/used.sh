#!/bin/sh
# used.sh: inside a system, what the package has installed is what the README's first command then shows at work.
set -eu
dpkg -i /work/package/gpushim.deb >/dev/null
cp -r /work/quickstart /tmp/quickstart
mkdir /tmp/quickstart/build
cp -r /work/system/examples /work/system/simcuda /tmp/quickstart/build/
QUICKSTART_SHIM=/usr/lib/x86_64-linux-gnu/libgpushim.so QUICKSTART_API=driver QUICKSTART_GPUS=simulated \
    /tmp/quickstart/examples/quickstart.sh

# And for every program, by the line that the command writes.
cp /tmp/quickstart/build/quickstart.conf /etc/gpushim.conf
gpushim-site enable
cd /tmp/quickstart
CUDA_DEVICE_ORDER=PCI_BUS_ID LD_LIBRARY_PATH=$PWD/build/simcuda build/examples/tour-driver 12288 2 >/tmp/tour
grep -q '^GPUs: 2$' /tmp/tour && grep -q 'out of memory' /tmp/tour || { cat /tmp/tour; exit 1; }
gpushim-site disable
CUDA_DEVICE_ORDER=PCI_BUS_ID LD_LIBRARY_PATH=$PWD/build/simcuda build/examples/tour-driver 12288 2 | grep -q '^GPUs: 4$'
