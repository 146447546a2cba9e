/* hook_context.c -- the end of a context, which gives back what was allocated in it.
 *
 * Knows: which context is a device's primary one, and when its last holder leaves. Must not know:
 * what is in the tables.
 */
#include "hook.h"

/* Learned as the process retains them; the handle of a primary context stays the same. */
static struct {
    uint64_t context;
    int holders;
} primary[ACCOUNT_DEVICES_MAX];

static bool is_device(CUdevice device) { return device >= 0 && device < ACCOUNT_DEVICES_MAX; }

static CUresult destroy(CUresult (*original)(CUcontext context), CUcontext context)
{
    const uint64_t owner = (uint64_t)(uintptr_t)context;
    memory_owner_ends(owner);
    CUresult rc = original(context);
    memory_owner_ended(owner, rc == CUDA_SUCCESS);
    return rc;
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

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    HOOK_ENTER(cuDevicePrimaryCtxRetain, (context, device));
    CUresult rc = real.cuDevicePrimaryCtxRetain(context, device);
    if (rc == CUDA_SUCCESS && context && is_device(device)) {
        __atomic_store_n(&primary[device].context, (uint64_t)(uintptr_t)*context, __ATOMIC_RELAXED);
        __atomic_add_fetch(&primary[device].holders, 1, __ATOMIC_RELAXED);
    }
    return rc;
}

static bool is_inactive(CUdevice device)
{
    unsigned int flags;
    int active = 1;
    return real.cuDevicePrimaryCtxGetState &&
           real.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && !active;
}

static CUresult release(CUresult (*original)(CUdevice device), CUdevice device)
{
    if (!is_device(device))
        return original(device);
    const bool last = __atomic_load_n(&primary[device].holders, __ATOMIC_RELAXED) <= 1;
    const uint64_t owner = __atomic_load_n(&primary[device].context, __ATOMIC_RELAXED);
    if (last)
        memory_owner_ends(owner);
    CUresult rc = original(device);
    if (rc == CUDA_SUCCESS && __atomic_load_n(&primary[device].holders, __ATOMIC_RELAXED) > 0)
        __atomic_sub_fetch(&primary[device].holders, 1, __ATOMIC_RELAXED);
    if (last)
        memory_owner_ended(owner, rc == CUDA_SUCCESS && is_inactive(device));
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
    if (!is_device(device))
        return original(device);
    const uint64_t owner = __atomic_load_n(&primary[device].context, __ATOMIC_RELAXED);
    memory_owner_ends(owner);
    CUresult rc = original(device);
    memory_owner_ended(owner, rc == CUDA_SUCCESS);
    if (rc == CUDA_SUCCESS) {
        /* runtimes retain anew after a reset and never release what was before it */
        __atomic_store_n(&primary[device].holders, 0, __ATOMIC_RELAXED);
        pool_refresh(device);
    }
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
