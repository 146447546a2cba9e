/* hook_context.c -- contexts that a program creates, and a device's primary one: made, held and
 * ended.
 *
 * Knows: the doors. Must not know: who else has a context (contexts.h), green contexts, what is in
 * the tables of memory.
 */
#include "contexts.h"
#include "fork.h"
#include "hook.h"

static struct track_table attached; /* contexts -> references by cuCtxAttach (count) */
static struct short_lock lock;      /* of these */

void attached_forget(void)
{
    lock = (struct short_lock){0};
    track_forget(&attached);
}

/* Under the device's lock, if that is known. */
static CUresult end_context(CUresult (*original)(CUcontext context), CUcontext context, int device)
{
    const struct context_ending ending =
        context_ends((uint64_t)(uintptr_t)context,
                     device != NO_DEVICE && context_are_last(device, 1) ? device : NO_DEVICE);
    CUresult rc = original(context);
    context_ended(&ending, rc == CUDA_SUCCESS);
    if (ending.pools != NO_DEVICE)
        hook_refresh(device);
    return rc;
}

static CUresult destroy(CUresult (*original)(CUcontext context), CUcontext context)
{
    struct track_entry entry, references;
    bool known = context_leave(context, &entry),
         has_references = track_take(&attached, (uint64_t)(uintptr_t)context, &references);
    CUresult rc;
    if (known) {
        owner_lock_take(&primary_contexts[entry.device].lock);
        rc = end_context(original, context, entry.device);
        context_left(&entry, rc == CUDA_SUCCESS);
        owner_lock_drop(&primary_contexts[entry.device].lock);
    } else {
        rc = end_context(original, context, NO_DEVICE);
    }
    if (has_references && rc != CUDA_SUCCESS)
        track_put(&attached, &references);
    return rc;
}

/* A context that the driver has made, or not: hands it to the caller, or ends it again where it
 * took the process past its cap. */
static CUresult finish(const char *call, CUresult rc, CUdevice device, CUcontext made,
                       CUcontext *context, const struct overhead_birth *birth)
{
    context_entered(rc, device, made, birth);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (!overhead_context_made(birth) && real.cuCtxDestroy_v2) {
        hook_say_over_cap(call, device, 0);
        if (destroy(real.cuCtxDestroy_v2, made) == CUDA_SUCCESS)
            return CUDA_ERROR_OUT_OF_MEMORY; /* else it is there, and counts */
    }
    *context = made;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
    struct overhead_birth birth;
    CUcontext made = NULL;
    HOOK_ENTER(cuCtxCreate, (context, flags, device));
    if (!context)
        return real.cuCtxCreate(context, flags, device);
    CUresult rc = context_enter("cuCtxCreate", device, true, &birth);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuCtxCreate(&made, flags, device);
    return finish("cuCtxCreate", rc, device, made, context, &birth);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    struct overhead_birth birth;
    CUcontext made = NULL;
    HOOK_ENTER(cuCtxCreate_v2, (context, flags, device));
    if (!context)
        return real.cuCtxCreate_v2(context, flags, device);
    CUresult rc = context_enter("cuCtxCreate", device, true, &birth);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuCtxCreate_v2(&made, flags, device);
    return finish("cuCtxCreate", rc, device, made, context, &birth);
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count,
                        unsigned int flags, CUdevice device)
{
    struct overhead_birth birth;
    CUcontext made = NULL;
    HOOK_ENTER(cuCtxCreate_v3, (context, affinity, count, flags, device));
    if (!context)
        return real.cuCtxCreate_v3(context, affinity, count, flags, device);
    CUresult rc = context_enter("cuCtxCreate", device, true, &birth);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuCtxCreate_v3(&made, affinity, count, flags, device);
    return finish("cuCtxCreate", rc, device, made, context, &birth);
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned int flags,
                        CUdevice device)
{
    struct overhead_birth birth;
    CUcontext made = NULL;
    HOOK_ENTER(cuCtxCreate_v4, (context, params, flags, device));
    if (!context)
        return real.cuCtxCreate_v4(context, params, flags, device);
    CUresult rc = context_enter("cuCtxCreate", device, true, &birth);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuCtxCreate_v4(&made, params, flags, device);
    return finish("cuCtxCreate", rc, device, made, context, &birth);
}

CUresult cuCtxDestroy(CUcontext context)
{
    HOOK_ENTER(cuCtxDestroy, (context));
    return destroy(real.cuCtxDestroy, context);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    HOOK_ENTER(cuCtxDestroy_v2, (context));
    return destroy(real.cuCtxDestroy_v2, context);
}

/* One reference by cuCtxAttach more, or less; false where there is none to take off. */
static bool attach(CUcontext context, int change)
{
    struct track_entry entry = {.key = (uint64_t)(uintptr_t)context};
    short_lock_take(&lock);
    bool found = track_take(&attached, entry.key, &entry);
    entry.count += (uint32_t)change;
    if ((found || change > 0) && entry.count > 0)
        track_put(&attached,
                  &entry); /* without memory for it the last detach is taken for the end */
    short_lock_drop(&lock);
    return found;
}

CUresult cuCtxAttach(CUcontext *context, unsigned int flags)
{
    HOOK_ENTER(cuCtxAttach, (context, flags));
    CUresult rc = real.cuCtxAttach(context, flags);
    if (rc == CUDA_SUCCESS && context)
        attach(*context, 1);
    return rc;
}

/* The one that takes the last reference off is a destruction. */
CUresult cuCtxDetach(CUcontext context)
{
    HOOK_ENTER(cuCtxDetach, (context));
    if (!attach(context, -1))
        return destroy(real.cuCtxDetach, context);
    CUresult rc = real.cuCtxDetach(context);
    if (rc != CUDA_SUCCESS)
        attach(context, 1);
    return rc;
}

static CUresult release(CUresult (*original)(CUdevice device), CUdevice device);

/* Under the device's lock. Only the first holder brings the context to life. */
static CUresult retain(CUcontext *context, CUdevice device)
{
    static const char call[] = "cuDevicePrimaryCtxRetain";
    struct overhead_birth birth;
    CUcontext made = NULL;
    CUresult rc = context_enter(call, device, !primary_contexts[device].holders, &birth);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuDevicePrimaryCtxRetain(&made, device);
    context_entered(rc, device, NULL, &birth);
    if (rc != CUDA_SUCCESS)
        return rc;
    primary_contexts[device].context = (uint64_t)(uintptr_t)made;
    primary_contexts[device].holders++;
    if (!overhead_context_made(&birth) && real.cuDevicePrimaryCtxRelease_v2) {
        hook_say_over_cap(call, device, 0);
        if (release(real.cuDevicePrimaryCtxRelease_v2, device) == CUDA_SUCCESS)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *context = made;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    HOOK_ENTER(cuDevicePrimaryCtxRetain, (context, device));
    if (!context_is_device(device) || !context)
        return real.cuDevicePrimaryCtxRetain(context, device);
    owner_lock_take(&primary_contexts[device].lock);
    CUresult rc = retain(context, device);
    owner_lock_drop(&primary_contexts[device].lock);
    return rc;
}

static CUresult release(CUresult (*original)(CUdevice device), CUdevice device)
{
    struct holder_leaving leaving;
    if (!context_is_device(device))
        return original(device);
    holder_leaves(device, &leaving);
    CUresult rc = original(device);
    holder_left(device, &leaving, rc == CUDA_SUCCESS);
    return rc;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    HOOK_ENTER(cuDevicePrimaryCtxRelease, (device));
    return release(real.cuDevicePrimaryCtxRelease, device);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    HOOK_ENTER(cuDevicePrimaryCtxRelease_v2, (device));
    return release(real.cuDevicePrimaryCtxRelease_v2, device);
}

static CUresult reset(CUresult (*original)(CUdevice device), CUdevice device)
{
    if (!context_is_device(device))
        return original(device);
    owner_lock_take(&primary_contexts[device].lock);
    const struct context_ending ending = primary_context_ends(device);
    CUresult rc = original(device);
    context_ended(&ending, rc == CUDA_SUCCESS);
    if (rc == CUDA_SUCCESS) {
        /* runtimes retain anew after a reset and never release what was before it */
        holders_gone(device);
        hook_refresh(device);
    }
    owner_lock_drop(&primary_contexts[device].lock);
    return rc;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    HOOK_ENTER(cuDevicePrimaryCtxReset, (device));
    return reset(real.cuDevicePrimaryCtxReset, device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    HOOK_ENTER(cuDevicePrimaryCtxReset_v2, (device));
    return reset(real.cuDevicePrimaryCtxReset_v2, device);
}
