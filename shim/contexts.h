/* contexts.h -- who has a context where: on how many devices a process may have them, who holds a
 * device's primary context, and what goes when a context does.
 *
 * Knows: devices, handles, `devices_per_process`. Must not know: by which calls contexts are made.
 * Thread-safe. What says "under the device's lock" is called with primary_contexts[device].lock
 * held, the one lock that is held across calls into the driver, which serialises them itself.
 */
#ifndef GPUSHIM_SHIM_CONTEXTS_H
#define GPUSHIM_SHIM_CONTEXTS_H

#include "account.h"
#include "cuda_abi.h"
#include "once.h"
#include "overhead.h"
#include "track.h"

#include <stdbool.h>
#include <stdint.h>

/* Learned as the process retains them; the handle of a primary context stays the same. */
extern struct primary_context {
    uint64_t context;
    int holders; /* retained, or green contexts */
    struct owner_lock lock;
} primary_contexts[ACCOUNT_DEVICES_MAX];

bool context_is_device(CUdevice device);

/* Before the driver makes a context: CUDA_SUCCESS, and context_entered() is to say how it went;
 * else the hook's answer. `whole`: with memory of its own (overhead.h). `context` is NULL for a
 * primary one, whose holders are counted instead. */
CUresult context_enter(const char *call, CUdevice device, bool whole, struct overhead_birth *birth);
void context_entered(CUresult rc, CUdevice device, const void *context,
                     const struct overhead_birth *birth);

/* The place of a context that is about to go: taken out before the driver may give its handle to
 * another, and put back if it stays. False: it was not made here. */
bool context_leave(const void *context, struct track_entry *entry);
void context_left(const struct track_entry *entry, bool gone);
/* Its place as it is. */
bool context_find(const void *context, struct track_entry *entry);

/* The end of a context, in two halves around the driver's call. What is in it goes with it, and,
 * with the last one of a device, what is in the device's pools. */
struct context_ending {
    uint64_t context;
    int pools; /* the device, or NO_DEVICE */
    uint32_t end;
};
struct context_ending context_ends(uint64_t context, int pools);
void context_ended(const struct context_ending *ending, bool gone);
/* Are these the last of a device's contexts? Under its lock, so that of two that end one is last.
 */
bool context_are_last(CUdevice device, int leaving);

/* The primary context of a device goes, with all its holders. Under the device's lock. */
struct context_ending primary_context_ends(CUdevice device);

/* One holder of the primary context less, in two halves around the driver's call; takes the
 * device's lock, and drops it. */
struct holder_leaving {
    bool last;
    struct context_ending ending;
};
void holder_leaves(CUdevice device, struct holder_leaving *leaving);
void holder_left(CUdevice device, const struct holder_leaving *leaving, bool done);
/* Gives all places of the primary context's holders back, after its reset. Under the device's lock.
 */
void holders_gone(CUdevice device);

#endif
