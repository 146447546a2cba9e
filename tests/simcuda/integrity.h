/* integrity.h -- the answer by which NVIDIA's runtime recognises its driver (simulated-driver.md,
 * section 2). */
#ifndef GPUSHIM_TESTS_SIMCUDA_INTEGRITY_H
#define GPUSHIM_TESTS_SIMCUDA_INTEGRITY_H

#include <stdint.h>

/* Slot 1 of the INTEGRITY_CHECK table. */
unsigned int integrity_check(uint32_t version, uint64_t unix_seconds, uint64_t answer[2]);

#endif
