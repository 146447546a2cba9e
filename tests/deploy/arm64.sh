#!/bin/sh
# arm64.sh SOURCE WORK: the object for aarch64, and every route to every hook by ctest, under an emulator of its processor.
set -eu
source=$1 work=$2
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(realpath "$("$here/roots.sh" --where arm64)")
for tool in aarch64-linux-gnu-gcc qemu-aarch64-static "$root/usr/include/cmocka.h"; do
    if ! command -v "$tool" >/dev/null && [ ! -e "$tool" ]; then
        echo "$tool is not there; tests/deploy/run.sh installs it"
        [ "${GPUSHIM_MUST_RUN:-}" = 1 ] && exit 1
        exit 77
    fi
done
library=$root/usr/lib/aarch64-linux-gnu
mkdir -p "$work"
cd "$work"
cmake -S "$source" -B arm64 -DCMAKE_BUILD_TYPE=RelWithDebInfo -DGPUSHIM_WERROR=OFF -DCMAKE_SYSTEM_NAME=Linux \
    -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_C_FLAGS="-I$root/usr/include" \
    -DCMAKE_EXE_LINKER_FLAGS="-L$library -Wl,-rpath,$library" \
    -DCMAKE_CROSSCOMPILING_EMULATOR="qemu-aarch64-static;-L;/usr/aarch64-linux-gnu" >arm64.log
cmake --build arm64 --target route_programs >>arm64.log
ctest --test-dir arm64/tests/preload -L route --output-on-failure -j 2
