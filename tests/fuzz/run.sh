#!/bin/sh
# Fuzzes what reads other people's bytes, with clang's libFuzzer, all targets at once:
#
#     tests/fuzz/run.sh [SECONDS [TARGET...]]      a minute each; policy, visible, match
#
# What was found interesting is kept in build/fuzz/TARGET.corpus and goes on from there the next time. An input that
# breaks a promise, or that a sanitizer dislikes, is left in build/fuzz and named at the end.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$here/../.."
. tests/packages.sh
need clang=clang
need fuzzer:clang="libclang-rt-$(clang -dumpversion | cut -d . -f 1)-dev"

seconds=${1:-60}
[ "$#" -eq 0 ] || shift
[ "$#" -gt 0 ] || set -- policy visible match
work=build/fuzz
mkdir -p "$work"

# Every word of the language, from the list of keys.
dictionary()
{
    printf '#define POLICY_KEY(identifier, section, name, now, later, fallback, prose) name now later\n#include "keys.def"\n' |
        clang -E -P -x c -I policy - | grep -o '[a-z_.][a-z_.]*' |
        cat - tests/fuzz/words | sort -u | sed 's/.*/"&"/'
}
dictionary >"$work/dictionary"

# The sources and the folders of seeds of a target.
sources()
{
    echo "tests/fuzz/$1_fuzz.c"
    if [ "$1" = visible ]; then echo shim/visible.c; else ls policy/*.c; fi
}
seeds()
{
    if [ "$1" = policy ]; then echo tests/unit/policies/good tests/unit/policies/bad; else echo "tests/fuzz/seeds/$1"; fi
}

for target in "$@"; do
    # shellcheck disable=SC2046
    clang -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
        -I policy -I shim -o "$work/$target" $(sources "$target")
done

running=""
for target in "$@"; do
    mkdir -p "$work/$target.corpus"
    # shellcheck disable=SC2046
    "$work/$target" -max_total_time="$seconds" -max_len=4096 -timeout=10 -dict="$work/dictionary" \
        -artifact_prefix="$work/$target-" "$work/$target.corpus" $(seeds "$target") >"$work/$target.log" 2>&1 </dev/null &
    running="$running $target=$!"
done

status=0
for pair in $running; do
    target=${pair%=*}
    if wait "${pair#*=}"; then
        echo "$target: $(sed -n 's/^Done \(.*\)/\1/p' "$work/$target.log")"
    else
        echo "$target: failed; $work/$target.log ends with"
        tail -n 30 "$work/$target.log"
        status=1
    fi
done
exit "$status"
