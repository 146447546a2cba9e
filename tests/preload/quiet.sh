#!/bin/bash
# quiet.sh SHIM SYSTEM_SHIM SYSTEM_POLICY -- programs that don't use CUDA behave to the letter as without
# the shim, silently, whatever the policy: none, malformed, writable by others, a FIFO, a directory.
set -u
policy=$3
work=$(mktemp -d)
trap 'rm -rf "$work" "$policy"' EXIT
# Where every user can read them, in a path without spaces, which LD_PRELOAD does not take.
chmod 755 "$work"
shim=$work/shim.so system_shim=$work/system-shim.so
install -m 755 "$1" "$shim"
install -m 755 "$2" "$system_shim"
failures=0 runs=0

programs=(
    '/bin/true'
    '/bin/false'
    'bash -c "echo \$((6 * 7)); exit 3"'
    'sh -c "ls / | head -3; exit 7"'
    'python3 -c "import ctypes, ssl, socket; print(ctypes.CDLL(None).getpid() > 0)"'
    'perl -e "print qq(perl\n)"'
    'su -s /bin/sh -c "id -u; exit 4" nobody'
    'env -i /bin/echo empty environment'
    'cat /nonexistent'
    'bash -c "exec 0<&- 1>&- 2>&-; exit 5"'
    'find /bin -maxdepth 0 -newer /nonexistent'
)

run() { # run OUTPUT PRELOAD COMMAND
    if [ -n "$2" ]; then
        LD_PRELOAD=$2 bash -c "$3" >"$1.out" 2>"$1.err" </dev/null
    else
        bash -c "$3" >"$1.out" 2>"$1.err" </dev/null
    fi
    echo $? >"$1.status"
}

compare() { # compare WHAT PRELOAD
    for program in "${programs[@]}"; do
        command -v "${program%% *}" >/dev/null || continue
        [[ $program == su* && $(id -u) != 0 ]] && continue
        run "$work/bare" "" "$program"
        run "$work/shim" "$2" "$program"
        runs=$((runs + 1))
        for part in out err status; do
            if ! diff "$work/bare.$part" "$work/shim.$part" >"$work/diff"; then
                echo "$1: $program: $part differs:" && cat "$work/diff"
                failures=$((failures + 1))
            fi
        done
    done
}

compare 'no policy' "$shim"
GPUSHIM_POLICY='devices=3,1;memory=4GiB' compare 'a policy' "$shim"
GPUSHIM_POLICY='devices==;nonsense' compare 'a malformed policy' "$shim"
GPUSHIM_CONF=/nonexistent compare 'a missing GPUSHIM_CONF' "$shim"

printf '[default]\nmemory = lots\n' >"$policy"
compare 'a malformed system policy' "$system_shim"
chmod 666 "$policy"
compare 'a system policy writable by others' "$system_shim"
rm -f "$policy" && mkfifo "$policy"
compare 'a FIFO for a system policy' "$system_shim"
rm -f "$policy" && mkdir "$policy"
compare 'a directory for a system policy' "$system_shim"
rmdir "$policy"
ln -s "$policy" "$policy"
compare 'a symbolic link to itself for a system policy' "$system_shim"

# Nothing about CUDA is needed to load the object.
if readelf -d "$shim" | grep NEEDED | grep -v 'libc\.so\.6'; then
    echo 'the object needs more than libc'
    failures=$((failures + 1))
fi
echo "$runs runs, $failures differences"
[ "$failures" = 0 ]
