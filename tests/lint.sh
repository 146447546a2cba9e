#!/bin/sh
# Reads the code instead of running it: clang-format (.clang-format), clang-tidy (.clang-tidy), cppcheck, groff for
# the man pages and shellcheck for the scripts, over what git tracks. Installs them if need be. Prints only what is wrong.
#
#     tests/lint.sh [format|tidy|cppcheck|pages|scripts ...]      only these
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$here/.."
. tests/packages.sh
need clang-format=clang-format clang-tidy=clang-tidy cppcheck=cppcheck shellcheck=shellcheck groff=groff git=git

jobs=${GPUSHIM_JOBS:-$(nproc 2>/dev/null || echo 2)}
status=0
tracked() { git ls-files -z -- "$@"; }

# Tables are laid out by hand: *.def is not formatted.
format()
{
    tracked '*.c' '*.h' | xargs -0 -r -n 1 -P "$jobs" sh -c \
        'clang-format --dry-run --Werror "$1" 2>/dev/null || { echo "wants clang-format -i: $1"; exit 1; }' sh
}

tidy()
{
    [ -f build/compile_commands.json ] || cmake --preset default >/dev/null
    tracked 'shim/*.c' 'policy/*.c' | xargs -0 -r -n 4 -P "$jobs" clang-tidy -p build --quiet 2>/dev/null
}

cppcheck_all()
{
    mkdir -p build
    tracked 'shim/*.c' 'policy/*.c' | tr '\0' '\n' >build/cppcheck-files
    cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
        --suppress=missingIncludeSystem -I shim -I policy -j "$jobs" --file-list=build/cppcheck-files
}

# Man pages that groff has something to say about.
pages()
{
    for page in docs/*.[1-9]; do
        groff -Tutf8 -mandoc -ww -z "$page" 2>&1
    done | { ! grep .; }
}

scripts()
{
    { tracked '*.sh' packaging/gpushim-site packaging/postinst packaging/prerm; printf '.ci/run\0'; } | xargs -0 shellcheck -x -S warning
}

[ "$#" -gt 0 ] || set -- format tidy cppcheck pages scripts
for part in "$@"; do
    case $part in
    format) format ;;
    tidy) tidy ;;
    cppcheck) cppcheck_all ;;
    pages) pages ;;
    scripts) scripts ;;
    *) echo "lint.sh: no such part: $part" >&2; exit 2 ;;
    esac || { echo "lint: $part has complaints" >&2; status=1; }
done
exit "$status"
