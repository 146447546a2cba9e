/* hook_green.c -- green contexts: each holds its device's primary context, and what is allocated
 * while it is current is the primary context's ("CUDA Driver API", green contexts).
 *
 * Knows: the doors, and which contexts are green ones in disguise. Must not know: who else has a
 * context (contexts.h), what is in the tables of memory.
 */
#include "contexts.h"
#include "fork.h"
#include "hook.h"

/* What cuCtxFromGreenCtx gave -> device, green context (owner). */
static struct track_table converted;
static int conversions;
static struct short_lock lock; /* for changes of these */

void green_forget(void)
{
    lock = (struct short_lock){0};
    track_forget(&converted);
    conversions = 0;
}

/* The driver's handle of the primary context, while a green context keeps it alive. */
static CUresult learn_primary(CUdevice device)
{
    CUcontext context;
    if (primary_contexts[device].context)
        return CUDA_SUCCESS;
    if (!real.cuDevicePrimaryCtxRetain || !real.cuDevicePrimaryCtxRelease_v2)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult rc = real.cuDevicePrimaryCtxRetain(&context, device);
    if (rc == CUDA_SUCCESS) {
        primary_contexts[device].context = (uint64_t)(uintptr_t)context;
        rc = real.cuDevicePrimaryCtxRelease_v2(device);
    }
    return rc;
}

/* Under the device's lock. Only the first holder brings the primary context to life. */
static CUresult create_green(CUgreenCtx *context, CUdevResourceDesc resources, CUdevice device,
                             unsigned int flags)
{
    static const char call[] = "cuGreenCtxCreate";
    struct overhead_birth birth;
    struct track_entry entry;
    CUresult rc = context_enter(call, device, !primary_contexts[device].holders, &birth);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuGreenCtxCreate(context, resources, device, flags);
    context_entered(rc, device, rc == CUDA_SUCCESS ? *context : NULL, &birth);
    if (rc != CUDA_SUCCESS)
        return rc;
    bool fits = overhead_context_made(&birth);
    rc = learn_primary(device);
    if (rc != CUDA_SUCCESS) { /* whose memory is whose could not be told */
        if (real.cuGreenCtxDestroy && real.cuGreenCtxDestroy(*context) == CUDA_SUCCESS &&
            context_leave(*context, &entry))
            context_left(&entry, true);
        return rc;
    }
    primary_contexts[device].holders++;
    if (fits)
        return CUDA_SUCCESS;
    hook_say_over_cap(call, device, 0);
    return cuGreenCtxDestroy(*context) == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx *context, CUdevResourceDesc resources, CUdevice device,
                          unsigned int flags)
{
    HOOK_ENTER(cuGreenCtxCreate, (context, resources, device, flags));
    if (!context_is_device(device) || !context)
        return real.cuGreenCtxCreate(context, resources, device, flags);
    owner_lock_take(&primary_contexts[device].lock);
    CUresult rc = create_green(context, resources, device, flags);
    owner_lock_drop(&primary_contexts[device].lock);
    return rc;
}

static bool end_conversion(const struct track_entry *entry)
{
    (void)entry;
    __atomic_fetch_sub(&conversions, 1, __ATOMIC_RELAXED);
    return false;
}

CUresult cuGreenCtxDestroy(CUgreenCtx context)
{
    const uint64_t green = (uint64_t)(uintptr_t)context;
    struct holder_leaving leaving;
    struct track_entry entry;
    HOOK_ENTER(cuGreenCtxDestroy, (context));
    if (!context_leave(context, &entry))
        return real.cuGreenCtxDestroy(context);
    const uint32_t end = memory_end();
    holder_leaves(entry.device, &leaving);
    track_set_aside(&converted, track_owner(green), end);
    CUresult rc = real.cuGreenCtxDestroy(context);
    bool gone = rc == CUDA_SUCCESS;
    track_settle(&converted, track_owner(green), end, gone ? end_conversion : NULL);
    holder_left(entry.device, &leaving, gone);
    if (!gone)
        context_left(&entry, false);
    return rc;
}

CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green)
{
    struct track_entry entry, before;
    HOOK_ENTER(cuCtxFromGreenCtx, (context, green));
    CUresult rc = real.cuCtxFromGreenCtx(context, green);
    if (rc != CUDA_SUCCESS || !context)
        return rc;
    short_lock_take(&lock);
    if (context_find(green, &entry)) {
        entry.owner = entry.key;
        entry.key = (uint64_t)(uintptr_t)*context;
        if (!track_find(&converted, entry.key, &before) || before.owner != entry.owner) {
            if (!track_take(&converted, entry.key, &before))
                __atomic_fetch_add(&conversions, 1, __ATOMIC_RELAXED);
            track_put(&converted, &entry);
        }
    }
    short_lock_drop(&lock);
    return rc;
}

uint64_t context_owner(uint64_t context)
{
    struct track_entry entry;
    if (!context || __atomic_load_n(&conversions, __ATOMIC_RELAXED) == 0)
        return context;
    return track_find(&converted, context, &entry) ? primary_contexts[entry.device].context
                                                   : context;
}
