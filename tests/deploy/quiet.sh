#!/bin/sh
# quiet.sh: inside a system, with gpushim in every program by its package: programs that don't use CUDA print and end as
# without it (programs.sh), whatever the policy is, and one that uses CUDA feels it.
set -eu
. /tests/people.sh
failures=0

# feels USER STATUS WANTED: what the CUDA program prints, errors included, has a line like WANTED.
feels()
{
    rm -f /tmp/gpus*
    got=$(setpriv --reuid="$1" --regid="$1" --init-groups env SIMCUDA_STATE=/tmp/gpus /work/bin/probe init devices 2>&1) || true
    if ! printf '%s\n' "$got" | grep -q -e "$2"; then
        printf '%s: a CUDA program of %s meets\n%s\nwithout a line like: %s\n' "$what" "$1" "$got" "$2"
        failures=$((failures + 1))
    fi
}

# same WHAT: the programs under the policy that lies there now.
same()
{
    what=$1
    /tests/programs.sh "/tmp/$1"
    if ! diff -r /tmp/without "/tmp/$1"; then
        failures=$((failures + 1))
    fi
}

/tests/programs.sh /tmp/without
# A comparison is worth what is compared: these are known.
for known in shell=5 login=3 su-with-password=0 su-with-wrong-password=1 sudo=4 sudo-to-another=0 sudo-refused=1 passwd=0 \
    passwd-of-oneself=0 passwd-refused=10 ssh=6 ssh-terminal=7 sftp=0 cron=0 python=0 perl=9 gdb=0 valgrind=0 node=8 java=0 go=0 \
    i386=0 musl=0 closed=0 descriptors=0 seccomp=0 seccomp-is-strict=159 full-output=1 few-descriptors=0 no-file-size=0 \
    little-stack=0 signal=143 not-there=127 environment=0 timeout=124; do
    status=$(cat "/tmp/without/${known%=*}.status")
    [ "$status" = "${known#*=}" ] && continue
    echo "without the shim, ${known%=*} ends with $status, not ${known#*=}:"
    cat "/tmp/without/${known%=*}.out" "/tmp/without/${known%=*}.err"
    failures=$((failures + 1))
done
[ -s /tmp/without/cron.out ] && [ -s /tmp/without/descriptors.out ]
what='without the shim'
feels alice '^devices: 0, 4'

dpkg -i /work/package/gpushim.deb >/dev/null
gpushim-site enable 2>&1 | grep -q 'no program is restricted'

same 'no policy'
feels alice '^devices: 0, 4'

printf '[default]\ndevices = 3,1\n[rule root]\nmatch.user = 0\ndevices = 2\n' >/etc/gpushim.conf
same 'a policy'
feels alice '^devices: 0, 2'
feels root '^devices: 0, 1'

printf '[default]\nmemory = lots\n' >/etc/gpushim.conf
same 'a malformed policy'
feels alice '^init: 800'
feels alice '^gpushim: .*/etc/gpushim.conf:2:'

printf '[default]\ndevices = 3,1\n' >/etc/gpushim.conf
chmod 666 /etc/gpushim.conf
same 'a policy that everyone can write to'
feels alice '^init: 800'
feels root '^gpushim: .*/etc/gpushim.conf'

chmod 600 /etc/gpushim.conf
same 'a policy that users cannot read'
feels alice '^init: 800'
feels alice '^gpushim: .*/etc/gpushim.conf'
feels root '^devices: 0, 2'

dpkg -r gpushim >/dev/null
same 'gone again'
[ ! -e /etc/ld.so.preload ]
[ -e /etc/gpushim.conf ]
exit "$failures"
