#!/bin/sh
# run.sh: the tests of this folder, on a Debian or Ubuntu machine as root. Installs what is missing, makes the systems that it
# looks at where they are not yet there, and hands its arguments to ctest. What cannot be had is skipped, and says why;
# GPUSHIM_MUST_RUN=1 makes that a failure.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$here/../.."
. tests/packages.sh
need debootstrap=debootstrap,debian-archive-keyring unshare=util-linux dpkg-deb=dpkg musl-gcc=musl-tools systemd-nspawn=systemd-container \
    aarch64-linux-gnu-gcc=gcc-aarch64-linux-gnu,libc6-dev-arm64-cross qemu-aarch64-static=qemu-user-static || true
tests/deploy/roots.sh || true
exec tests/run.sh -C Site -L site "$@"
