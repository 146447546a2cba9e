/* backing.h -- the host memory that stands for device memory.
 *
 * Knows: mmap. Must not know: cards, contexts, accounting. Never reserves swap: only touched pages
 * cost. Under the driver's lock.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_BACKING_H
#define GPUSHIM_TESTS_SIMCUDA_BACKING_H

#include <stddef.h>

/* Memory aligned to at least 512 B, to a page from half a page on; NULL where there is none. */
void *backing_take(size_t bytes);
/* The same below 2 GiB, of pages of its own: for the calls of CUDA 3.1, whose addresses have 32
 * bits. */
void *backing_take_low(size_t bytes);
/* bytes as asked for */
void backing_give(void *memory, size_t bytes);

/* Makes the memory shareable without moving it: a descriptor that stays this process's, and the
 * range in it that stands for `memory` and some around it. -1 where that fails. */
struct backing_share {
    int fd;
    size_t length; /* to map from the start of fd */
    size_t offset; /* of `memory` in it */
};
int backing_share(void *memory, size_t bytes, struct backing_share *share);

/* Sets bytes to 0 without touching whole pages. */
void backing_zero(void *memory, size_t bytes);

#endif
