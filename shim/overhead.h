/* overhead.h -- the device memory that no call shows: contexts, modules' code and variables, heaps.
 *
 * Knows: `overhead` of the policy, and when it is time to measure. Must not know: which entry
 * points make contexts and load modules, what is allocated.
 *
 * Measured: what NVML says this process uses on a device, less what is tracked. Where NVML does not
 * list this process (a container, MPS), by how much the card's use grew while a context was made.
 * Where NVML cannot be asked, nothing. Of a fixed size: charged while the process has a context on
 * the device. In every case a part of account_held(). Thread-safe; no lock is held while NVML or
 * the driver is asked. The figure is as old as the last of these calls; memory that a kernel's
 * first launch takes is seen by the next one.
 */
#ifndef GPUSHIM_SHIM_OVERHEAD_H
#define GPUSHIM_SHIM_OVERHEAD_H

#include "cuda_abi.h"
#include "usage.h"

#include <stdbool.h>

/* The making of one context. */
struct overhead_birth {
    int device; /* where one is counted, else -1 */
    bool whole;
    bool first; /* the process had none, on any device */
    struct usage before;
    uint64_t asked; /* bytes that calls had asked for, at that time */
};

/* Before the driver makes a context on a device, `whole` unless it shares the memory of the
 * device's primary context (a green one): false where a fixed size does not fit under the
 * cap. Then one of the other two: it was not made; or it was, and false means that it took the
 * process past the cap: end it. */
bool overhead_context_begins(struct overhead_birth *birth, int device, bool whole);
void overhead_context_failed(const struct overhead_birth *birth);
bool overhead_context_made(const struct overhead_birth *birth);
/* After the end of a context that had begun here. */
void overhead_context_ended(int device, bool whole);

/* A call that may take memory in the current context, such as the load of a module. The second half
 * measures if the card's free memory changed, and is false where the process is past the cap. */
struct overhead_watch {
    int device;
    size_t free_bytes;
};
void overhead_watch(struct overhead_watch *watch);
bool overhead_watched(const struct overhead_watch *watch);

/* Before a grant: measures if it would pass 7/8 of the cap, at most every 100 ms. */
void overhead_look(int device, uint64_t bytes);

#endif
