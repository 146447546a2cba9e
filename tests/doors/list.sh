#!/bin/sh
# list.sh LIST_TEST FOLDER|LIBRARY: every function of that folder's cuda.h, or that libcuda, is known (list_test.c).
set -eu
names=$(mktemp)
trap 'rm -f "$names"' EXIT
"$(dirname -- "$0")/names.sh" "$2" >"$names"
"$1" "$2" <"$names"
