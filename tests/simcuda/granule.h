/* granule.h -- the one place that knows how the driver rounds (simulated-driver.md, section 8:
 * assumed). */
#ifndef GPUSHIM_TESTS_SIMCUDA_GRANULE_H
#define GPUSHIM_TESTS_SIMCUDA_GRANULE_H

#include <stddef.h>

#define GRANULE_SMALL ((size_t)512)
#define GRANULE_LARGE ((size_t)2 << 20)
#define GRANULE_LARGE_FROM ((size_t)1 << 20)
#define GRANULE_PITCH ((size_t)512)
#define GRANULE_POOL ((size_t)32 << 20)

/* Rounds up to a multiple of a power of two; 0 where that doesn't fit a size_t. */
static inline size_t granule_up(size_t bytes, size_t multiple)
{
    return (bytes + multiple - 1) & ~(multiple - 1);
}

/* What an allocation of so many bytes takes; 0 where the size is absurd. */
static inline size_t granule_of(size_t bytes)
{
    return granule_up(bytes, bytes < GRANULE_LARGE_FROM ? GRANULE_SMALL : GRANULE_LARGE);
}

#endif
