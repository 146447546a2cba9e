/* memory.h -- linear memory of contexts.
 *
 * Knows: taking from a card and giving back. Must not know: pools' and handles' rules. Under the
 * driver's lock.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_MEMORY_H
#define GPUSHIM_TESTS_SIMCUDA_MEMORY_H

#include "ranges.h"

/* Takes bytes of a device's card as allocation; where they don't fit, after its pools have given
 * back what they hold idle. 0 or 2. */
CUresult memory_charge(struct device *device, size_t bytes);
void memory_refund(struct device *device, size_t bytes);

/* Allocates in a context; the range's base is the result. */
CUresult memory_allocate(CUcontext context, enum range_kind kind, size_t bytes, unsigned int flags,
                         CUdeviceptr *address);
/* Ends a range of any kind that cuMemFree takes, whatever its context. */
void memory_release(struct range *range);
/* Ends all that goes with a context. */
void memory_empty(CUcontext context);

#endif
