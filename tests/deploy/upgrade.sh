#!/bin/sh
# upgrade.sh: inside a system, programs start all the time while the package is installed, enabled, upgraded, downgraded and
# removed: none fails, none prints anything, and one that has the old library goes on with it.
set -eu
. /tests/people.sh
printf '[default]\ndevices = 3,1\nmemory = 1GiB\n' >/etc/gpushim.conf

# Programs, one after the other, until there is a file: how many, how many failed; what they print is kept.
load()
{
    count=0 failed=0
    while [ ! -e /tmp/stop ]; do
        for program in /bin/true '/bin/sh -c :' '/usr/bin/env -i /bin/true' '/usr/bin/sudo -n -u alice true' hello-quietly; do
            count=$((count + 1))
            $program || failed=$((failed + 1))
        done
    done >"/tmp/load.$1.said" 2>&1
    echo "$count $failed" >"/tmp/load.$1"
}
printf '#!/bin/sh\nexec hello >/dev/null\n' >/usr/bin/hello-quietly
chmod 755 /usr/bin/hello-quietly
load 1 &
load 2 &

# maps PID PATTERN: soon (it may just be beginning), the process has that mapped.
maps()
{
    for _ in $(seq 50); do
        grep -q "$2" "/proc/$1/maps" && return
        sleep 0.1
    done
    echo "there is no $2 in:"
    cat "/proc/$1/maps"
    return 1
}
library='libgpushim\.so$' old_library='libgpushim\.so.*(deleted)$'

dpkg -i /work/package/gpushim.deb >/dev/null
gpushim-site enable
mkfifo /tmp/go && : >/tmp/job
SIMCUDA_STATE=/tmp/gpus /work/bin/probe init devices device=0 alloc=1048576 wait alloc=2147483648 alloc=1048576 free </tmp/go >/tmp/job 2>&1 &
job=$!
exec 3>/tmp/go
until grep -q '^alloc: 0' /tmp/job || ! kill -0 $job; do sleep 0.1; done
maps $job "$library"
for round in 1 2 3; do
    dpkg -i /work/package/newer.deb >/dev/null
    [ "$(gpushim-site status)" = enabled ]
    maps $job "$old_library"
    sleep 6 3>&- &
    maps $! "$library"
    kill $!
    dpkg -i /work/package/gpushim.deb >/tmp/downgrade 2>&1
    if [ "$round" = 2 ]; then
        dpkg -r gpushim >/dev/null
        [ ! -e /etc/ld.so.preload ]
        dpkg -i /work/package/gpushim.deb >/dev/null
        [ ! -e /etc/ld.so.preload ] # installing it enables nothing
        gpushim-site enable
    fi
done
exec 3>&-
wait $job
gpushim-site disable
dpkg -P gpushim >/dev/null
touch /tmp/stop
wait

status=0
cat /tmp/load.1 /tmp/load.2 | while read -r count failed; do
    echo "$count programs started, $failed failed"
    [ "$failed" = 0 ] && [ "$count" -ge 50 ]
done || status=1
cat /tmp/load.1.said /tmp/load.2.said
[ ! -s /tmp/load.1.said ] && [ ! -s /tmp/load.2.said ] || status=1
# The job: its own policy to the end, 1 GiB.
paste -sd ' ' /tmp/job | grep -q 'devices: 0, 2 .*alloc: 0 .*alloc: 2 .*alloc: 0 free: 0' || { cat /tmp/job; status=1; }
find / -xdev -name '*gpushim*' -not -path '/work/*' -not -path '/tests/*' | grep -v -e '^/etc/gpushim.conf$' && status=1
exit "$status"
