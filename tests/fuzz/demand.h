/* demand.h -- what a fuzzing target ends with when a promise is broken. */
#ifndef GPUSHIM_TESTS_FUZZ_DEMAND_H
#define GPUSHIM_TESTS_FUZZ_DEMAND_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define demand(promise)                                                                            \
    do {                                                                                           \
        if (!(promise)) {                                                                          \
            (void)fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #promise);            \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
