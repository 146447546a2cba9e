#!/bin/sh
# inside.sh WORK NAME SCRIPT [ARGUMENT...]: runs tests/deploy/SCRIPT as root inside a copy-on-write copy of the system
# NAME (roots.sh), in mounts, processes and a network of its own, so that nothing outside is touched. WORK is what build.sh
# made. Inside, /tests is this folder, /work is WORK; both can only be read. The copy is forgotten afterwards.
#
# Exit status 77: that cannot be done here (GPUSHIM_MUST_RUN=1: 1).
set -eu
work=$1 name=$2 script=$3
shift 3
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

cannot()
{
    echo "$1" >&2
    [ "${GPUSHIM_MUST_RUN:-}" = 1 ] && exit 1
    exit 77
}
[ "$(id -u)" = 0 ] || cannot "This takes root"
root=$("$here/roots.sh" --where "$name")
[ -d "$root" ] || cannot "There is no $name system; tests/deploy/roots.sh makes it"
unshare --mount --pid --fork --net true 2>/dev/null || cannot "Namespaces cannot be made here"

place=$(mktemp -d)
trap 'rmdir "$place"' EXIT
# shellcheck disable=SC2016
GPUSHIM_MUST_RUN='' unshare --mount --pid --fork --net --kill-child sh -euc '
    place=$1 root=$2 work=$3 here=$4
    shift 4
    mount -t tmpfs tmpfs "$place"
    mkdir "$place/changes" "$place/kernel" "$place/root"
    mount -t overlay -o "lowerdir=$root,upperdir=$place/changes,workdir=$place/kernel" overlay "$place/root"
    cd "$place/root"
    mkdir -p tests work
    mount --bind -o ro "$here" tests
    mount --bind -o ro "$work" work
    mount -t proc proc proc
    mount -t tmpfs -o mode=755 tmpfs dev
    for device in null zero full random urandom tty; do
        : >"dev/$device"
        mount --bind "/dev/$device" "dev/$device"
    done
    mkdir dev/pts dev/shm
    mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
    ln -s pts/ptmx dev/ptmx
    ln -s /proc/self/fd dev/fd
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root chroot . "/tests/$@"
' sh "$place" "$root" "$work" "$here" "$script" "$@"
