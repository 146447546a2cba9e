/* calls.h -- the rows of calls.def as a table. For one file of a program. */
#ifndef GPUSHIM_TESTS_DOORS_CALLS_H
#define GPUSHIM_TESTS_DOORS_CALLS_H

struct row {
    const char *symbol, *odd, *before, *good, *after;
};
static const struct row rows[] = {
#define CALL(symbol, odd, before, good, after) {#symbol, odd, before, good, after},
#include "calls.def"
#undef CALL
};
enum { ROWS = sizeof rows / sizeof rows[0] };

#endif
