#!/bin/sh
# Stands in for the tests of a runtime that was not there when the build was configured: a skip, with the
# reason, or a failure where everything has to run.
echo "$1 was not there at configuration; tests/fetch-runtimes.sh fetches it"
[ "${GPUSHIM_MUST_RUN:-}" = 1 ] && exit 1
exit 77
