#!/bin/bash
# budget.sh SHIM HOOKS_DEF -- what the object costs every process of a machine, by exact counts (a time
# would only be an opinion): instructions and system calls of an exec, relocations, libraries needed,
# symbol versions, exports. The limits are those of the design, section 11.
set -u
shim=$1 hooks=$2
failures=0

need() {
    command -v "$1" >/dev/null && return
    echo "$1 is not installed"
    if [ "${GPUSHIM_MUST_RUN:-0}" = 1 ]; then exit 1; else exit 77; fi
}
for tool in valgrind strace readelf objdump; do need $tool; done
[ -e /etc/gpushim.conf ] && { echo "/etc/gpushim.conf exists: counts would include it" && exit 77; }

at_most() { # at_most WHAT COUNT LIMIT
    printf '%-58s %7d  (at most %d)\n' "$1" "$2" "$3"
    [ "$2" -le "$3" ] || failures=$((failures + 1))
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$shim" "$work/shim.so"
strip --strip-debug "$work/shim.so"

instructions() {
    env -i ${1:+LD_PRELOAD="$1"} valgrind --tool=callgrind --callgrind-out-file=/dev/null /bin/true 2>&1 |
        sed -n 's/.*Collected : //p'
}
calls() {
    env -i ${1:+LD_PRELOAD="$1"} strace -o "$work/calls" /bin/true
    grep -cv -e '^+++' "$work/calls"
}

bare=$(instructions '') preloaded=$(instructions "$work/shim.so")
at_most 'instructions of an exec of /bin/true, beyond none' $((preloaded - bare)) 16000
bare=$(calls '') preloaded=$(calls "$work/shim.so")
at_most 'system calls of an exec of /bin/true, beyond none' $((preloaded - bare)) 9
at_most 'relocations that need a base address' "$(readelf -rW "$shim" | grep -c _RELATIVE)" 3
at_most 'symbols looked up at load' "$(readelf -rW "$shim" | grep -c GLOB_DAT)" 2
at_most 'libraries needed beside libc' "$(readelf -dW "$shim" | grep NEEDED | grep -vc 'libc\.so\.6')" 0
at_most 'symbol versions newer than GLIBC_2.17' \
    "$(objdump -T "$shim" | grep -oE 'GLIBC_[0-9.]+' | sort -Vu | awk -F'[_.]' '$3 > 17' | wc -l)" 0
at_most 'thread-local storage beyond the initial-exec model' "$(readelf -rW "$shim" | grep -c -e DTPMOD -e TLSDESC)" 0
at_most 'executable stacks' "$(readelf -lW "$shim" | awk '/GNU_STACK/ && /RWE/' | wc -l)" 0

# The exports are the hook table, dlsym and dlvsym, and nothing else.
{ sed -nE 's/^(DRIVER|NVML|RUNTIME)_HOOK\(([A-Za-z0-9_]+),.*/\2/p' "$hooks"; echo dlsym; echo dlvsym; } | sort >"$work/table"
objdump -T "$shim" | awk '/ \.text/ {print $NF}' | sort >"$work/exports"
if diff "$work/table" "$work/exports"; then
    printf '%-58s %7d\n' 'exports, each a row of hooks.def' "$(wc -l <"$work/exports")"
else
    echo 'exports and hooks.def differ (< table, > exports)'
    failures=$((failures + 1))
fi
[ "$failures" = 0 ]
