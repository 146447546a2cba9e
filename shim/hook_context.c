/* hook_context.c -- contexts: on how many devices a process may have them, and what their end gives
 * back.
 *
 * Knows: which device has how many live contexts, and when a primary context's last holder leaves.
 * Must not know: what is in the tables of memory.
 */
#include "fork.h"
#include "hook.h"
#include "log.h"
#include "once.h"
#include "posture.h"
#include "track.h"

/* Learned as the process retains them; the handle of a primary context stays the same. */
static struct {
    uint64_t context;
    int holders;
    struct owner_lock lock; /* held while it is retained, released or reset */
} primary[ACCOUNT_DEVICES_MAX];

/* Live contexts of a device: created ones, green ones, and each holder of the primary one. */
static int live[ACCOUNT_DEVICES_MAX];
static struct track_table created; /* created and green contexts -> device */
static struct short_lock lock;

static bool is_device(CUdevice device) { return device >= 0 && device < ACCOUNT_DEVICES_MAX; }

void context_forget(void)
{
    lock = (struct short_lock){0};
    track_forget(&created);
    for (int i = 0; i < ACCOUNT_DEVICES_MAX; i++) {
        live[i] = 0;
        primary[i].holders = 0;
        primary[i].lock = (struct owner_lock){0};
    }
}

/* Takes a place for one more context on a device, before the driver makes it. Otherwise `*other` is
 * a device that has one. */
static bool claim(CUdevice device, uint32_t devices_max, int *other)
{
    uint32_t in_use = 0;
    *other = NO_DEVICE;
    short_lock_take(&lock);
    for (int i = 0; i < ACCOUNT_DEVICES_MAX; i++) {
        if (live[i] > 0 && i != device) {
            in_use++;
            *other = i;
        }
    }
    bool may = devices_max == 0 || live[device] > 0 || in_use < devices_max;
    if (may)
        live[device]++;
    short_lock_drop(&lock);
    return may;
}

static void unclaim(CUdevice device, int count)
{
    short_lock_take(&lock);
    live[device] = live[device] > count ? live[device] - count : 0;
    short_lock_drop(&lock);
}

static CUresult refuse(const char *call, CUdevice device, int other, uint32_t devices_max,
                       const struct policy_settings *layer)
{
    struct text_line line;
    if (hook_start_refusal(&line, "devices_per_process", call, device, other)) {
        text_add(&line, " on CUDA device ");
        text_add_number(&line, (uint64_t)device);
        text_add(&line, " refused: this process has a context on CUDA device ");
        text_add_number(&line, (uint64_t)other);
        text_add(&line, ", and ");
        policy_describe_rule(&line, layer, layer->devices_per_process_line);
        text_add(&line, " says devices_per_process = ");
        text_add_number(&line, devices_max);
        text_add(&line,
                 "; often a checkpoint loaded without map_location, or a default device of 0");
        log_write(POLICY_LOG_WARN, &line);
    }
    return CUDA_ERROR_NOT_PERMITTED;
}

/* CUDA_SUCCESS: go on, and say with entered() how it went. */
static CUresult enter(const char *call, CUdevice device)
{
    const struct posture_decision *decided = posture();
    size_t layer;
    int other;
    const uint32_t devices_max =
        policy_devices_per_process(decided->layers, decided->layer_count, &layer);
    if (!is_device(device) || claim(device, devices_max, &other))
        return CUDA_SUCCESS;
    return refuse(call, device, other, devices_max, &decided->layers[layer]);
}

/* `context` is NULL for a primary context, whose holders are counted instead. */
static CUresult entered(CUresult rc, CUdevice device, const void *context)
{
    const struct track_entry entry = {.key = (uint64_t)(uintptr_t)context,
                                      .device = (uint16_t)device};
    if (!is_device(device))
        return rc;
    if (rc != CUDA_SUCCESS)
        unclaim(device, 1);
    else if (context)
        track_put(&created, &entry); /* without memory for it the place stays taken */
    return rc;
}

CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
    HOOK_ENTER(cuCtxCreate, (context, flags, device));
    CUresult rc = enter("cuCtxCreate", device);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuCtxCreate(context, flags, device);
    return entered(rc, device, rc == CUDA_SUCCESS && context ? *context : NULL);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    HOOK_ENTER(cuCtxCreate_v2, (context, flags, device));
    CUresult rc = enter("cuCtxCreate", device);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuCtxCreate_v2(context, flags, device);
    return entered(rc, device, rc == CUDA_SUCCESS && context ? *context : NULL);
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count,
                        unsigned int flags, CUdevice device)
{
    HOOK_ENTER(cuCtxCreate_v3, (context, affinity, count, flags, device));
    CUresult rc = enter("cuCtxCreate", device);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuCtxCreate_v3(context, affinity, count, flags, device);
    return entered(rc, device, rc == CUDA_SUCCESS && context ? *context : NULL);
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned int flags,
                        CUdevice device)
{
    HOOK_ENTER(cuCtxCreate_v4, (context, params, flags, device));
    CUresult rc = enter("cuCtxCreate", device);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuCtxCreate_v4(context, params, flags, device);
    return entered(rc, device, rc == CUDA_SUCCESS && context ? *context : NULL);
}

CUresult cuGreenCtxCreate(CUgreenCtx *context, CUdevResourceDesc resources, CUdevice device,
                          unsigned int flags)
{
    HOOK_ENTER(cuGreenCtxCreate, (context, resources, device, flags));
    CUresult rc = enter("cuGreenCtxCreate", device);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuGreenCtxCreate(context, resources, device, flags);
    return entered(rc, device, rc == CUDA_SUCCESS && context ? *context : NULL);
}

/* The place of a context that is about to go: taken out before the driver may give its handle to
 * another, put back if it stays. */
static bool leave(const void *context, struct track_entry *entry)
{
    return track_take(&created, (uint64_t)(uintptr_t)context, entry);
}

static void left(const struct track_entry *entry, bool gone)
{
    if (gone)
        unclaim(entry->device, 1);
    else
        track_put(&created, entry);
}

CUresult cuGreenCtxDestroy(CUgreenCtx context)
{
    struct track_entry entry;
    HOOK_ENTER(cuGreenCtxDestroy, (context));
    bool known = leave(context, &entry);
    CUresult rc = real.cuGreenCtxDestroy(context);
    if (known)
        left(&entry, rc == CUDA_SUCCESS);
    return rc;
}

static CUresult destroy(CUresult (*original)(CUcontext context), CUcontext context)
{
    const uint64_t owner = (uint64_t)(uintptr_t)context;
    struct track_entry entry;
    bool known = leave(context, &entry);
    memory_owner_ends(owner);
    CUresult rc = original(context);
    memory_owner_ended(owner, rc == CUDA_SUCCESS);
    if (known)
        left(&entry, rc == CUDA_SUCCESS);
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

static CUresult retain(CUcontext *context, CUdevice device)
{
    CUresult rc = enter("cuDevicePrimaryCtxRetain", device);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = entered(real.cuDevicePrimaryCtxRetain(context, device), device, NULL);
    if (rc == CUDA_SUCCESS) {
        primary[device].context = (uint64_t)(uintptr_t)*context;
        primary[device].holders++;
    }
    return rc;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    HOOK_ENTER(cuDevicePrimaryCtxRetain, (context, device));
    if (!is_device(device) || !context)
        return real.cuDevicePrimaryCtxRetain(context, device);
    owner_lock_take(&primary[device].lock);
    CUresult rc = retain(context, device);
    owner_lock_drop(&primary[device].lock);
    return rc;
}

static bool is_inactive(CUdevice device)
{
    unsigned int flags;
    int active = 1;
    return real.cuDevicePrimaryCtxGetState &&
           real.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && !active;
}

/* The primary context of a device goes, and with it what is in it and in the device's pools. */
static void device_ends(CUdevice device, uint64_t context)
{
    memory_owner_ends(context);
    pool_memory_ends(device);
}

static void device_ended(CUdevice device, uint64_t context, bool gone)
{
    memory_owner_ended(context, gone);
    pool_memory_ended(device, gone);
}

static CUresult release(CUresult (*original)(CUdevice device), CUdevice device)
{
    if (!is_device(device))
        return original(device);
    owner_lock_take(&primary[device].lock);
    const bool last = primary[device].holders <= 1;
    const uint64_t owner = primary[device].context;
    if (last)
        device_ends(device, owner);
    CUresult rc = original(device);
    if (last)
        device_ended(device, owner, rc == CUDA_SUCCESS && is_inactive(device));
    if (rc == CUDA_SUCCESS && primary[device].holders > 0) {
        primary[device].holders--;
        unclaim(device, 1);
    }
    owner_lock_drop(&primary[device].lock);
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
    owner_lock_take(&primary[device].lock);
    const uint64_t owner = primary[device].context;
    device_ends(device, owner);
    CUresult rc = original(device);
    device_ended(device, owner, rc == CUDA_SUCCESS);
    if (rc == CUDA_SUCCESS) {
        /* runtimes retain anew after a reset and never release what was before it */
        unclaim(device, primary[device].holders);
        primary[device].holders = 0;
        pool_refresh(device);
    }
    owner_lock_drop(&primary[device].lock);
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
