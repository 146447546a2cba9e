#!/bin/sh
# missing.sh PACKAGE [SCRIPT]: stands in for the tests of a package that was not there when the build was configured: a
# skip, with the reason and the script that fetches it, or a failure where everything has to run.
echo "$1 was not there at configuration; ${2:-tests/fetch-runtimes.sh} fetches it"
[ "${GPUSHIM_MUST_RUN:-}" = 1 ] && exit 1
exit 77
