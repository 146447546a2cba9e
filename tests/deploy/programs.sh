#!/bin/sh
# programs.sh OUT: runs, inside a system, programs that have nothing to do with GPUs and much with how a process begins:
# what each printed and how it ended is left in OUT/NAME.out, .err and .status. The run with the shim is like the one without.
set -eu
out=$1
mkdir -p "$out"

# try NAME COMMAND
try()
{
    status=0
    timeout 60 sh -c "$2" >"$out/$1.out" 2>"$out/$1.err" </dev/null 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&- || status=$?
    echo "$status" >"$out/$1.status"
}

as_alice='setpriv --reuid=alice --regid=alice --init-groups'
printf 'alice:secret1\nbob:secret2\n' | chpasswd
full=$(mktemp -d)
mount -t tmpfs -o size=64k tmpfs "$full"
cat /dev/zero >"$full/filler" 2>/dev/null || true

try shell "bash -lc 'echo \$((6 * 7)); exit 5'"
try login "su - alice -c 'echo \$HOME \$LOGNAME; ls -d ~; exit 3'"
try su-with-password "$as_alice sh -c 'echo secret2 | su bob -c id'"
try su-with-wrong-password "$as_alice sh -c 'echo wrong | su bob -c id'"
try sudo "$as_alice sudo -n sh -c 'id; env | grep SUDO_USER; exit 4'"
try sudo-to-another "sudo -n -u bob id"
try sudo-refused "setpriv --reuid=bob --regid=bob --init-groups sudo -n true"
try passwd "printf 'second3\nsecond3\n' | passwd alice"
try passwd-of-oneself "printf 'second3\nthird44\nthird44\n' | $as_alice passwd"
try passwd-refused "printf 'wrong\n' | $as_alice passwd"

# The daemons start anew each time.
/usr/sbin/sshd -o PidFile=/run/sshd.pid 2>"$out/sshd.err" || true
key='-i /root/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR'
try ssh "ssh $key alice@127.0.0.1 'id; echo error >&2; exit 6'"
try ssh-terminal "ssh -tt $key alice@127.0.0.1 'echo \$TERM; exit 7'"
try sftp "echo 'ls /etc/passwd' | sftp -q $key -b - alice@127.0.0.1"
kill "$(cat /run/sshd.pid)" || true
rm -f /run/crond.reboot /tmp/cron.*
printf '@reboot alice id >/tmp/cron.alice 2>&1\n@reboot root echo done >/tmp/cron.root 2>&1\n' >/etc/cron.d/jobs
cron -f >"$out/cron.out" 2>&1 &
try cron "for i in \$(seq 100); do [ -s /tmp/cron.alice ] && [ -s /tmp/cron.root ] && break; sleep 0.1; done
    cat /tmp/cron.alice /tmp/cron.root"
kill $!

try python "python3 -c 'import ctypes, ssl, subprocess; print(ctypes.CDLL(None).abs(-7), subprocess.run([\"id\"]).returncode)'"
try perl "perl -MSocket -e 'print 6 * 7, qq(\n); exit 9'"
try gdb "gdb -nx -q -batch -ex 'break exit' -ex run -ex 'info sharedlibrary libc' -ex continue --args /bin/sh -c 'exit 3' |
    grep -v gpushim | sed 's/process [0-9]*/process N/; s/0x[0-9a-f]*/0x/g'"
try valgrind "valgrind -q --error-exitcode=9 --leak-check=full /bin/echo checked"
try node "node -e 'console.log(6 * 7); process.exit(8)'"
try java "java -version"
try go "gosu alice id"
try i386 "hello"
# musl's loader does not know /etc/ld.so.preload, and obeys LD_PRELOAD.
try musl "$([ -e /etc/ld.so.preload ] && echo env LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libgpushim.so) /work/musl"

try closed "exec 0<&- 1>&- 2>&-; exec /bin/true"
try descriptors "exec 3>/tmp/descriptors 0<&- 1>&- 2>&-
    perl -e 'opendir D, \"/proc/self/fd\"; open F, \">&=3\"; print F join(\" \", sort grep /\d/, readdir D), \"\n\"'"
cp /tmp/descriptors "$out/descriptors.out"
try seccomp "/work/bin/seccomp_exec /bin/true"
try seccomp-is-strict "/work/bin/seccomp_exec /usr/bin/id"
try full-disk "cd $full && HOME=$full TMPDIR=$full bash -c 'echo more >here; ls -l filler | wc -w; python3 -c \"print(42)\"'"
try full-output "echo lost >/dev/full"
try few-descriptors "ulimit -n 4; exec /bin/true"
try no-file-size "ulimit -f 0; exec /bin/true"
try little-stack "ulimit -s 64; exec /bin/ls -d /"
try signal "kill -TERM \$\$"
try not-there "exec /bin/not-there"
try environment "env -i /usr/bin/env"
try timeout "timeout 0.2 sleep 5"
umount "$full"
rmdir "$full"
