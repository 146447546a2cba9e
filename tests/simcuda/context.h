/* context.h -- contexts, the stack of each thread, and what goes with a context when it ends.
 *
 * Knows: lifetimes. Must not know: what memory, streams or modules are; it only has them emptied.
 * Under the driver's lock.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_CONTEXT_H
#define GPUSHIM_TESTS_SIMCUDA_CONTEXT_H

#include "abi_more.h"

struct device;
struct range;
struct local;

enum { CONTEXT_LIMITS = 16 };

struct CUctx_st {
    struct device *device;
    int alive;
    int is_primary;
    unsigned int flags;
    unsigned long long id;
    uint64_t overhead_bytes; /* charged as USE_CONTEXT */
    uint64_t peers;          /* a bit for each device ordinal whose memory it may reach */
    size_t limits[CONTEXT_LIMITS];
    int cache_config, bank_config;
    unsigned int attached;
    struct CUctx_st
        *home;            /* of a green context: the primary one, whose is all that is made in it */
    struct range *memory; /* ranges.h */
    struct local *locals; /* local_storage.h */
    struct CUctx_st *next; /* of those that are not primary ones */
};

/* The current context of this thread, or NULL; alive or not. A green one is its primary one. */
CUcontext context_current(void);
/* The device of the current context; only where context_check_current has succeeded. */
struct device *context_current_device(void);
CUresult context_check_current(void);
/* Is the pointer a context, alive or an inactive primary one? */
int context_known(const struct CUctx_st *context);
/* 201 or 709 for what isn't a live context. */
CUresult context_check(const struct CUctx_st *context);

/* Brings a context to life on a device, or 2 where its overhead doesn't fit. */
CUresult context_start(CUcontext context, struct device *device, unsigned int flags);
/* What cuCtxFromGreenCtx gives; it is never freed, only not alive any more. */
CUcontext context_new_green(struct device *device);
/* Ends it, and all that goes with it. The memory of a primary context's struct stays. */
void context_end(CUcontext context);

/* More or less of the memory that no allocation call shows: 0 or 2. */
CUresult context_take_overhead(CUcontext context, uint64_t bytes);
void context_give_overhead(CUcontext context, uint64_t bytes);

#endif
