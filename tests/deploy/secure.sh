#!/bin/sh
# secure.sh: inside a system with gpushim in every program: a program whose caller gave it an environment, and the kernel more
# rights than its caller's (AT_SECURE), obeys no GPUSHIM_* variable. One that gets none does.
set -eu
. /tests/people.sh
failures=0
dpkg -i /work/package/gpushim.deb >/dev/null
printf '[default]\ndevices = 3,1\n' >/etc/gpushim.conf
printf '[default]\ndevices = none\n' >/tmp/none.conf
gpushim-site enable

install -m 755 /work/bin/probe /usr/bin/plain
install -m 4755 /work/bin/probe /usr/bin/setuid
install -g bob -m 2755 /work/bin/probe /usr/bin/setgid
install -m 755 /work/bin/probe /usr/bin/capable
setcap cap_net_bind_service+ep /usr/bin/capable

# meets WHAT WANTED COMMAND...: what a program of alice prints, on one line.
meets()
{
    what=$1 wanted=$2
    shift 2
    rm -f /tmp/gpus*
    got=$(setpriv --reuid=alice --regid=alice --init-groups env SIMCUDA_STATE=/tmp/gpus "$@" 2>&1 | grep -v '^  \|^gpushim:' | paste -sd ' ') || true
    [ "$got" = "$wanted" ] && return
    printf '%s: \n    %s\nnot %s\n' "$what" "$got" "$wanted"
    failures=$((failures + 1))
}

obeyed='secure: 0 init: 100 devices: 3, -1' not_obeyed='secure: 1 init: 0 devices: 0, 2'
for variable in GPUSHIM_POLICY='[default];devices = none' GPUSHIM_CONF=/tmp/none.conf; do
    meets 'an ordinary program' "$obeyed" env "$variable" plain secure init devices
    for program in setuid setgid capable; do
        meets "a $program program" "$not_obeyed" env "$variable" $program secure init devices
    done
    # Where the kernel gives no rights, there is nothing to be careful about; of capabilities it says so all the same.
    for program in plain setuid setgid; do
        meets "a $program program without new rights" "$obeyed" env "$variable" setpriv --no-new-privs $program secure init devices
    done
    meets 'a capable program without new rights' "$not_obeyed" env "$variable" setpriv --no-new-privs capable secure init devices
done
# Policies that are no policies are not even looked at.
for program in setuid setgid capable; do
    meets "a $program program" "$not_obeyed" env GPUSHIM_POLICY=nonsense GPUSHIM_CONF=/not/there $program secure init devices
done
exit "$failures"
