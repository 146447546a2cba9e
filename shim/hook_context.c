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
#include "overhead.h"
#include "posture.h"
#include "track.h"
#include "view.h"

/* Learned as the process retains them; the handle of a primary context stays the same. */
static struct {
    uint64_t context;
    int holders;
    struct owner_lock lock; /* held while it is retained, released or reset */
} primary[ACCOUNT_DEVICES_MAX];

/* Live contexts of a device: created ones, green ones, and each holder of the primary one. */
static int live[ACCOUNT_DEVICES_MAX];
static struct track_table created; /* created and green contexts -> device, kind */
enum { WHOLE, SHARED };
/* What cuCtxFromGreenCtx gave -> device, green context (owner). */
static struct track_table converted;
static int conversions;
static struct track_table attached; /* contexts -> references by cuCtxAttach (count) */
static struct short_lock lock;

static bool is_device(CUdevice device) { return device >= 0 && device < ACCOUNT_DEVICES_MAX; }

void context_forget(void)
{
    lock = (struct short_lock){0};
    track_forget(&created);
    track_forget(&converted);
    track_forget(&attached);
    conversions = 0;
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
static CUresult enter(const char *call, CUdevice device, bool whole, struct overhead_birth *birth)
{
    const struct posture_decision *decided = posture();
    CUresult refusal;
    size_t layer;
    int other;
    const uint32_t devices_max =
        policy_devices_per_process(decided->layers, decided->layer_count, &layer);
    *birth = (struct overhead_birth){.device = NO_DEVICE, .whole = whole};
    if (!view_ready(&refusal) && refusal != CUDA_SUCCESS)
        return refusal;
    if (!is_device(device))
        return CUDA_SUCCESS;
    if (!claim(device, devices_max, &other))
        return refuse(call, device, other, devices_max, &decided->layers[layer]);
    if (overhead_context_begins(birth, device, whole))
        return CUDA_SUCCESS;
    unclaim(device, 1);
    hook_say_over_cap(call, device, 0);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* `context` is NULL for a primary context, whose holders are counted instead. */
static void entered(CUresult rc, CUdevice device, const void *context,
                    const struct overhead_birth *birth)
{
    const struct track_entry entry = {.key = (uint64_t)(uintptr_t)context,
                                      .device = (uint16_t)device,
                                      .kind = birth->whole ? WHOLE : SHARED};
    if (!is_device(device))
        return;
    if (rc != CUDA_SUCCESS) {
        unclaim(device, 1);
        overhead_context_failed(birth);
    } else if (context) {
        track_put(&created, &entry); /* without memory for it the place stays taken */
    }
}

/* The place of a context that is about to go: taken out before the driver may give its handle to
 * another, put back if it stays. */
static bool leave(const void *context, struct track_entry *entry)
{
    return track_take(&created, (uint64_t)(uintptr_t)context, entry);
}

static void left(const struct track_entry *entry, bool gone)
{
    if (gone) {
        unclaim(entry->device, 1);
        overhead_context_ended(entry->device, entry->kind == WHOLE);
    } else {
        track_put(&created, entry);
    }
}

/* Is the primary context gone? The runtime may hold it by a door that we do not see, so the driver
 * is asked; where it does not say, our own count, with the one that has just been released, has to
 * do. */
static bool is_inactive(CUdevice device)
{
    unsigned int flags;
    int active = 1;
    if (real.cuDevicePrimaryCtxGetState &&
        real.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS)
        return !active;
    return primary[device].holders <= 1;
}

/* The end of a context, in two halves around the driver's call. What is in it goes with it, and,
 * with the last one of a device, what is in the device's pools. */
struct ending {
    uint64_t context;
    int pools; /* the device, or NO_DEVICE */
    uint32_t end;
};

static struct ending context_ends(uint64_t context, int pools)
{
    const struct ending ending = {context, pools, memory_end()};
    if (context) {
        memory_owners_end(track_owner(context), ending.end);
        array_owner_ends(context, ending.end);
    }
    if (pools != NO_DEVICE)
        pool_memory_ends(pools, ending.end);
    return ending;
}

static void context_ended(const struct ending *ending, bool gone)
{
    if (ending->context) {
        memory_owners_ended(track_owner(ending->context), ending->end, gone);
        array_owner_ended(ending->context, ending->end, gone);
    }
    if (ending->pools != NO_DEVICE)
        pool_memory_ended(ending->pools, ending->end, gone && is_inactive(ending->pools));
}

/* Are these the last of a device's contexts? Under its lock, so that of two that end one is last.
 */
static bool are_last(CUdevice device, int leaving)
{
    short_lock_take(&lock);
    bool last = live[device] <= leaving;
    short_lock_drop(&lock);
    return last;
}

/* Under the device's lock, if that is known. */
static CUresult end_context(CUresult (*original)(CUcontext context), CUcontext context, int device)
{
    const struct ending ending =
        context_ends((uint64_t)(uintptr_t)context,
                     device != NO_DEVICE && are_last(device, 1) ? device : NO_DEVICE);
    CUresult rc = original(context);
    context_ended(&ending, rc == CUDA_SUCCESS);
    if (ending.pools != NO_DEVICE)
        hook_refresh(device);
    return rc;
}

static CUresult destroy(CUresult (*original)(CUcontext context), CUcontext context)
{
    struct track_entry entry, references;
    bool known = leave(context, &entry),
         has_references = track_take(&attached, (uint64_t)(uintptr_t)context, &references);
    CUresult rc;
    if (known) {
        owner_lock_take(&primary[entry.device].lock);
        rc = end_context(original, context, entry.device);
        left(&entry, rc == CUDA_SUCCESS);
        owner_lock_drop(&primary[entry.device].lock);
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
    entered(rc, device, made, birth);
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
    CUresult rc = enter("cuCtxCreate", device, true, &birth);
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
    CUresult rc = enter("cuCtxCreate", device, true, &birth);
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
    CUresult rc = enter("cuCtxCreate", device, true, &birth);
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
    CUresult rc = enter("cuCtxCreate", device, true, &birth);
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
    CUresult rc = enter(call, device, !primary[device].holders, &birth);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuDevicePrimaryCtxRetain(&made, device);
    entered(rc, device, NULL, &birth);
    if (rc != CUDA_SUCCESS)
        return rc;
    primary[device].context = (uint64_t)(uintptr_t)made;
    primary[device].holders++;
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
    if (!is_device(device) || !context)
        return real.cuDevicePrimaryCtxRetain(context, device);
    owner_lock_take(&primary[device].lock);
    CUresult rc = retain(context, device);
    owner_lock_drop(&primary[device].lock);
    return rc;
}

/* The primary context of a device goes, with all its holders. Under the device's lock. */
static struct ending primary_ends(CUdevice device)
{
    return context_ends(primary[device].context,
                        are_last(device, primary[device].holders) ? device : NO_DEVICE);
}

/* One holder of the primary context less, in two halves around the driver's call. */
struct leaving {
    bool last;
    struct ending ending;
};

static void holder_leaves(CUdevice device, struct leaving *leaving)
{
    owner_lock_take(&primary[device].lock);
    leaving->last = primary[device].holders <= 1;
    if (leaving->last)
        leaving->ending = primary_ends(device);
}

static void holder_left(CUdevice device, const struct leaving *leaving, bool done)
{
    if (leaving->last) {
        context_ended(&leaving->ending, done && is_inactive(device));
        hook_refresh(device);
    }
    if (done && primary[device].holders > 0) {
        primary[device].holders--;
        unclaim(device, 1);
        overhead_context_ended(device, !primary[device].holders);
    }
    owner_lock_drop(&primary[device].lock);
}

static CUresult release(CUresult (*original)(CUdevice device), CUdevice device)
{
    struct leaving leaving;
    if (!is_device(device))
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
    if (!is_device(device))
        return original(device);
    owner_lock_take(&primary[device].lock);
    const struct ending ending = primary_ends(device);
    CUresult rc = original(device);
    context_ended(&ending, rc == CUDA_SUCCESS);
    if (rc == CUDA_SUCCESS) {
        /* runtimes retain anew after a reset and never release what was before it */
        unclaim(device, primary[device].holders);
        for (; primary[device].holders > 0; primary[device].holders--)
            overhead_context_ended(device, primary[device].holders == 1);
        hook_refresh(device);
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

/* A green context is a holder of its device's primary context, and what is allocated while it is
 * current is the primary context's ("CUDA Driver API", green contexts). */

/* The driver's handle of the primary context, while a green context keeps it alive. */
static CUresult learn_primary(CUdevice device)
{
    CUcontext context;
    if (primary[device].context)
        return CUDA_SUCCESS;
    if (!real.cuDevicePrimaryCtxRetain || !real.cuDevicePrimaryCtxRelease_v2)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult rc = real.cuDevicePrimaryCtxRetain(&context, device);
    if (rc == CUDA_SUCCESS) {
        primary[device].context = (uint64_t)(uintptr_t)context;
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
    CUresult rc = enter(call, device, !primary[device].holders, &birth);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuGreenCtxCreate(context, resources, device, flags);
    entered(rc, device, rc == CUDA_SUCCESS ? *context : NULL, &birth);
    if (rc != CUDA_SUCCESS)
        return rc;
    bool fits = overhead_context_made(&birth);
    rc = learn_primary(device);
    if (rc != CUDA_SUCCESS) { /* whose memory is whose could not be told */
        if (real.cuGreenCtxDestroy && real.cuGreenCtxDestroy(*context) == CUDA_SUCCESS &&
            leave(*context, &entry))
            left(&entry, true);
        return rc;
    }
    primary[device].holders++;
    if (fits)
        return CUDA_SUCCESS;
    hook_say_over_cap(call, device, 0);
    return cuGreenCtxDestroy(*context) == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx *context, CUdevResourceDesc resources, CUdevice device,
                          unsigned int flags)
{
    HOOK_ENTER(cuGreenCtxCreate, (context, resources, device, flags));
    if (!is_device(device) || !context)
        return real.cuGreenCtxCreate(context, resources, device, flags);
    owner_lock_take(&primary[device].lock);
    CUresult rc = create_green(context, resources, device, flags);
    owner_lock_drop(&primary[device].lock);
    return rc;
}

static bool keep_conversion(const struct track_entry *entry)
{
    (void)entry;
    return true;
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
    struct leaving leaving;
    struct track_entry entry;
    HOOK_ENTER(cuGreenCtxDestroy, (context));
    if (!leave(context, &entry))
        return real.cuGreenCtxDestroy(context);
    const uint32_t end = memory_end();
    holder_leaves(entry.device, &leaving);
    track_set_aside(&converted, track_owner(green), end);
    CUresult rc = real.cuGreenCtxDestroy(context);
    bool gone = rc == CUDA_SUCCESS;
    track_settle(&converted, track_owner(green), end, gone ? end_conversion : keep_conversion);
    holder_left(entry.device, &leaving, gone);
    if (!gone)
        track_put(&created, &entry);
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
    if (track_take(&created, (uint64_t)(uintptr_t)green, &entry)) {
        track_put(&created, &entry);
        entry.owner = entry.key;
        entry.key = (uint64_t)(uintptr_t)*context;
        if (!track_take(&converted, entry.key, &before))
            __atomic_fetch_add(&conversions, 1, __ATOMIC_RELAXED);
        track_put(&converted, &entry);
    }
    short_lock_drop(&lock);
    return rc;
}

uint64_t context_owner(uint64_t context)
{
    struct track_entry entry;
    if (!context || __atomic_load_n(&conversions, __ATOMIC_RELAXED) == 0)
        return context;
    short_lock_take(&lock);
    bool green = track_take(&converted, context, &entry);
    if (green)
        track_put(&converted, &entry);
    short_lock_drop(&lock);
    return green ? primary[entry.device].context : context;
}
