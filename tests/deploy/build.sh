#!/bin/sh
# build.sh SOURCE WORK: what the other tests here take into their systems, in WORK:
#     package/gpushim.deb, newer.deb   the Debian package, and the same of a later version
#     system/                          the programs, built for the C library of 2020 (the bullseye of roots.sh), which run on
#                                      later ones too; bin, simcuda: links into it
#     quickstart/                      examples/quickstart.sh, with what it reads
#     musl                             a program of another C library
#     noisy.so, ending.so              libraries that do harm (harm.c)
set -eu
source=$1 work=$2
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
sysroot=$("$here/roots.sh" --where bullseye)
if [ ! -d "$sysroot" ]; then
    echo "There is no bullseye system; tests/deploy/roots.sh makes it"
    [ "${GPUSHIM_MUST_RUN:-}" = 1 ] && exit 1
    exit 77
fi
mkdir -p "$work/package"
cd "$work"

cmake -S "$source" --preset package -B build-package >log
cmake --build build-package --target package >>log
dpkg-deb -R build-package/gpushim_*.deb tree
sed -i 's/^Version: .*/Version: 99/' tree/DEBIAN/control
dpkg-deb -b tree newer.deb >>log
rm -rf tree
mv newer.deb package/newer.deb
cp build-package/gpushim_*.deb package/gpushim.deb

# -B: gcc looks for the C library beside itself before it looks into another system.
sysroot=$(realpath "$sysroot")
cat >system.cmake <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $(uname -m))
set(CMAKE_SYSROOT "$sysroot")
set(CMAKE_C_FLAGS_INIT "-B$sysroot/usr/lib/$(gcc -print-multiarch)")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_CROSSCOMPILING_EMULATOR unshare "--root=$work/root" "--wd=$work/system")
END
cmake -S "$source" -B system --toolchain "$work/system.cmake" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DGPUSHIM_WERROR=OFF >>log
cmake --build system --target route_programs probe seccomp_exec tour-driver >>log
ln -sfn system/simcuda simcuda
mkdir -p quickstart/examples quickstart/tests
cp "$source/examples/quickstart.sh" quickstart/examples/
cp "$source/tests/packages.sh" quickstart/tests/
mkdir -p bin
ln -sf ../system/tests/preload/probe ../system/tests/deploy/seccomp_exec bin
musl-gcc -o musl "$here/musl.c"
gcc -D_GNU_SOURCE -shared -fPIC -o noisy.so "$here/harm.c"
gcc -D_GNU_SOURCE -DENDING -shared -fPIC -o ending.so "$here/harm.c"
