# shellcheck shell=sh
# packages.sh -- sourced by the scripts that need tools: looks for them, and installs what is missing.
#
# Knows: which Debian or Ubuntu package brings which tool. Must not know: what the tools are for.
# Nothing is touched where nothing is missing, so it is quiet and works offline the second time.

# need_has TOOL: is it here? TOOL is a command, a header `<name.h>`, `python:module`, or `fuzzer:COMPILER`.
need_has()
{
    case $1 in
    "<"*) printf '#include <stddef.h>\n#include <stdint.h>\n#include <stdarg.h>\n#include <setjmp.h>\n#include %s\n' "$1" |
              cc -fsyntax-only -x c - >/dev/null 2>&1 ;;
    fuzzer:*) echo 'int LLVMFuzzerTestOneInput(const char *b, unsigned long n); int LLVMFuzzerTestOneInput(const char *b, unsigned long n) { return b && !n; }' |
                  "${1#fuzzer:}" -fsanitize=fuzzer,address,undefined -x c -o /dev/null - >/dev/null 2>&1 ;;
    python:*) python3 -c "import ${1#python:}" >/dev/null 2>&1 ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

# need TOOL=PACKAGE[,PACKAGE]...: installs the packages of the tools that are missing, as root by apt;
# otherwise prints the one line that does it and returns 1.
need()
{
    need_missing=""
    for need_pair in "$@"; do
        need_has "${need_pair%%=*}" || need_missing="$need_missing $(echo "${need_pair#*=}" | tr ',' ' ')"
    done
    [ -n "$need_missing" ] || return 0
    need_missing=$(printf '%s\n' $need_missing | sort -u | tr '\n' ' ' | sed 's/ $//')

    if ! command -v apt-get >/dev/null 2>&1; then
        echo "Missing here, by their Debian names: $need_missing" >&2
        echo "Install what your distribution calls them, then run this again." >&2
        return 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        echo "A few packages are missing. This line installs them:" >&2
        echo >&2
        echo "    sudo apt-get update && sudo apt-get install -y --no-install-recommends $need_missing" >&2
        echo >&2
        echo "Then run this again." >&2
        return 1
    fi
    echo "Installing: $need_missing" >&2
    need_log=$(mktemp)
    if DEBIAN_FRONTEND=noninteractive apt-get update -qq >"$need_log" 2>&1 </dev/null &&
       DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $need_missing >>"$need_log" 2>&1 </dev/null; then
        rm -f "$need_log"
        return 0
    fi
    cat "$need_log" >&2
    rm -f "$need_log"
    echo "apt-get could not install: $need_missing" >&2
    return 1
}
