#!/bin/sh
# booted.sh WORK: a system that boots, with services in systemd's sandboxes, without gpushim and with it in every program: the
# services print and end alike, no unit fails that did not, and nothing speaks of the library.
set -eu
work=$1
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

cannot()
{
    echo "$1" >&2
    [ "${GPUSHIM_MUST_RUN:-}" = 1 ] && exit 1
    exit 77
}
[ "$(id -u)" = 0 ] || cannot "This takes root"
root=$("$here/roots.sh" --where bookworm)
[ -d "$root" ] || cannot "There is no bookworm system; tests/deploy/roots.sh makes it"
command -v systemd-nspawn >/dev/null || cannot "systemd-nspawn is not installed"

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place/without" "$place/with"
# boot OUT enabled|disabled
boot()
{
    # shellcheck disable=SC2016
    unshare --mount sh -euc '
        root=$1 place=$2 work=$3 here=$4 out=$5
        mkdir "$place/system"
        mount -t tmpfs tmpfs "$place/system"
        cd "$place/system"
        mkdir changes kernel root
        mount -t overlay -o "lowerdir=$root,upperdir=changes,workdir=kernel" overlay root
        cp "$here"/units/* root/etc/systemd/system/
        mkdir -p root/etc/systemd/system/multi-user.target.wants root/out
        ln -s ../proof.service root/etc/systemd/system/multi-user.target.wants/
        cp "$work/package/gpushim.deb" root/
        rm root/lib/ld-linux.so.2 # no 32-bit programs, and the tightest sandboxes
        if [ "$6" = enabled ]; then
            chroot root dpkg -i gpushim.deb >/dev/null
            printf "[default]\nmemory = lots\n" >root/etc/gpushim.conf
            mount -t proc proc root/proc
            chroot root gpushim-site enable
            umount root/proc
        fi
        timeout 120 systemd-nspawn --quiet --boot --directory=root --bind="$out:/out" --private-network --register=no --keep-unit \
            --console=pipe </dev/null' sh "$root" "$place" "$work" "$here" "$1" "$2"  >"$1/console" 2>&1 ||
        { cat "$1/console"; echo "the system did not boot and end"; exit 1; }
    rmdir "$place/system"
}
boot "$place/without" disabled
boot "$place/with" enabled

failures=0
grep -q '^services: done' "$place/without/summary" || { echo 'not all has run:'; cat "$place/without/"*; failures=1; }
for file in "$place"/without/*; do
    name=$(basename "$file")
    case $name in
    console | journal | maps) continue ;;
    esac
    diff "$file" "$place/with/$name" || { echo "$name differs"; failures=1; }
done
grep -l libgpushim "$place/without/maps" && { echo 'it is loaded without being enabled'; failures=1; }
grep -q libgpushim "$place/with/maps" || { echo 'the sandboxed service has no library'; failures=1; }
grep -i -e gpushim -e 'ld\.so' "$place/with/journal" && failures=1
exit "$failures"
