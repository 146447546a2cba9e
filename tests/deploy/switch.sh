#!/bin/sh
# switch.sh: inside a system, gpushim-site: what becomes of /etc/ld.so.preload, and what it refuses.
set -eu
failures=0
preload=/etc/ld.so.preload
object=/usr/lib/x86_64-linux-gnu/libgpushim.so
dpkg -i /work/package/gpushim.deb >/dev/null
cp $object /tmp/good
cp $object /usr/lib/x86_64-linux-gnu/other.so # somebody else's
echo '[default]' >/etc/gpushim.conf

wrong()
{
    printf '%s\n' "$@"
    failures=$((failures + 1))
}

# gives WHAT STATUS COMMAND...: the command ends so, silently where that is 0.
gives()
{
    what=$1 wanted=$2
    shift 2
    status=0
    said=$("$@" 2>&1) || status=$?
    [ "$status" = "$wanted" ] || wrong "$what: $* ends with $status, not $wanted: $said"
    [ "$status" != 0 ] || [ -z "$said" ] || wrong "$what: $* prints: $said"
}

# holds WHAT TEXT: what is in the file; nothing: there is none.
holds()
{
    [ "$(cat $preload 2>/dev/null)" = "$2" ] || wrong "$1: $preload holds" "$(cat $preload)" "not" "$2"
    [ -n "$2" ] || [ ! -e $preload ] || wrong "$1: $preload is still there"
    [ -z "$2" ] || [ "$(stat -c '%u %a' $preload)" = '0 644' ] || wrong "$1: mode and owner of $preload"
    [ -z "$(find /etc -name '*ld.so.preload.*')" ] || wrong "$1: there is something left in /etc"
}

# shellcheck disable=SC2016
line='/usr/$LIB/libgpushim.so' braces='/usr/${LIB}/libgpushim.so'
[ "$(gpushim-site status)" = disabled ] || wrong 'a new package is enabled'
gives 'to begin with' 0 gpushim-site disable
holds 'to begin with' ''
gives enable 0 gpushim-site enable
holds enable "$line"
[ "$(gpushim-site status)" = enabled ] || wrong 'the status after it'
[ "$(bash -c 'grep -c libgpushim /proc/self/maps')" -gt 0 ] || wrong 'it is not loaded'
gives 'enable again' 0 gpushim-site enable
holds 'enable again' "$line"
gives disable 0 gpushim-site disable
holds disable ''
gives 'disable again' 0 gpushim-site disable

# Where nothing runs 32-bit programs there is no need for $LIB; where that changes, it is enabled again.
mv /lib/ld-linux.so.2 /tmp/loader
gives '64-bit programs alone' 0 gpushim-site enable
holds '64-bit programs alone' "$object"
mv /tmp/loader /lib/ld-linux.so.2
gives '32-bit programs too' 0 gpushim-site enable
holds '32-bit programs too' "$line"
gives '32-bit programs too' 0 gpushim-site disable

# Others' entries and comments stay. (ld.so takes spaces and colons for ends too.)
before='# ours
other.so   # that of another

other.so:other.so'
printf '%s' "$before" >$preload # no end of line
gives others 0 gpushim-site enable
holds others "$before
$line"
gives others 0 gpushim-site disable
holds others "$before"
mkdir -p /other/usr/lib/x86_64-linux-gnu
cp $object /other$object # an entry that only ends like ours
printf '%s\n' "other.so $braces:other.so # two" "$object" "/other$object:$line" >$preload
[ "$(gpushim-site status)" = enabled ] || wrong 'an entry written otherwise is not seen'
gives 'every way to write it' 0 gpushim-site disable
holds 'every way to write it' "other.so :other.so # two
/other$object"
echo "# $line" >$preload
[ "$(gpushim-site status)" = disabled ] || wrong 'a comment is taken for an entry'
gives 'a comment' 0 gpushim-site enable
holds 'a comment' "# $line
$line"
rm $preload

# Reasons to refuse, each of which leaves everything as it was.
refuses()
{
    gives "$1" 1 gpushim-site enable
    printf '%s' "$said" | grep -q -e "$2" || wrong "$1: the reason is: $said"
    holds "$1" ''
}
put() { cp "$1" $object.new && chmod "${2:-755}" $object.new && mv $object.new $object; }
head -c 20000 /tmp/good >/tmp/bad && put /tmp/bad
refuses 'a truncated library' 'libgpushim'
echo nothing >/tmp/bad && put /tmp/bad
refuses 'no library' 'libgpushim'
cp /work/noisy.so /tmp/bad && put /tmp/bad
refuses 'a library that prints' 'prints .noise'
cp /work/ending.so /tmp/bad && put /tmp/bad
refuses 'a library that ends shells' 'ends with 99'
put /tmp/good 777
refuses 'a library that others can write to' 'others can write'
put /tmp/good && chown daemon $object
refuses 'a library of another user' 'others can write'
rm $object
refuses 'no library at all' 'libgpushim'
put /tmp/good
mv /usr/lib/i386-linux-gnu/libgpushim.so /tmp/stub
refuses 'none for 32-bit programs' 'ld-linux.so.2'
mv /tmp/stub /usr/lib/i386-linux-gnu/libgpushim.so
gives 'an ordinary user' 1 setpriv --reuid=daemon --clear-groups gpushim-site enable
gives 'an ordinary user, status' 1 setpriv --reuid=daemon --clear-groups gpushim-site status
gives 'nothing to do' 2 gpushim-site
gives 'something else to do' 2 gpushim-site perhaps
mount --bind /etc /etc && mount -o remount,bind,ro /etc
refuses 'an /etc that cannot be written to' 'nothing was changed'
umount /etc
: >$preload && mount --bind $preload $preload
gives 'a file that cannot be replaced' 1 gpushim-site enable
[ ! -s $preload ] || wrong 'a file that cannot be replaced has been'
umount $preload && rm $preload

# A policy that would refuse CUDA is told of.
chmod 666 /etc/gpushim.conf
gpushim-site enable 2>&1 | grep -q 'CUDA is refused' || wrong 'nothing is said of a policy that anyone can write to'
rm /etc/gpushim.conf
gpushim-site enable 2>&1 | grep -q 'no program is restricted' || wrong 'nothing is said of a policy that is not there'

# An upgrade to a library that does harm: it is found out, and taken out.
mkdir /tmp/tree && dpkg-deb -R /work/package/newer.deb /tmp/tree && cp /work/noisy.so /tmp/tree$object && dpkg-deb -b /tmp/tree /tmp/bad.deb >/dev/null
status=0
dpkg -i /tmp/bad.deb >/tmp/said 2>&1 || status=$?
[ "$status" != 0 ] && grep -q 'prints .noise' /tmp/said || wrong 'a bad upgrade is not refused' "$(cat /tmp/said)"
holds 'a bad upgrade' ''
exit "$failures"
