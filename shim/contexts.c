/* contexts.c -- see contexts.h. */
#include "contexts.h"
#include "fork.h"
#include "hook.h"
#include "log.h"
#include "posture.h"
#include "view.h"

struct primary_context primary_contexts[ACCOUNT_DEVICES_MAX];

/* Live contexts of a device: created ones, green ones, and each holder of the primary one. */
static int live[ACCOUNT_DEVICES_MAX];
static struct track_table created; /* created and green contexts -> device, kind */
enum { WHOLE, SHARED };
static struct short_lock lock;

bool context_is_device(CUdevice device) { return device >= 0 && device < ACCOUNT_DEVICES_MAX; }

void context_forget(void)
{
    lock = (struct short_lock){0};
    track_forget(&created);
    for (int i = 0; i < ACCOUNT_DEVICES_MAX; i++) {
        live[i] = 0;
        primary_contexts[i].holders = 0;
        primary_contexts[i].lock = (struct owner_lock){0};
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

/* CUDA_SUCCESS: go on, and say with context_entered() how it went. */
CUresult context_enter(const char *call, CUdevice device, bool whole, struct overhead_birth *birth)
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
    if (!context_is_device(device))
        return CUDA_SUCCESS;
    if (!claim(device, devices_max, &other))
        return refuse(call, device, other, devices_max, &decided->layers[layer]);
    if (overhead_context_begins(birth, device, whole))
        return CUDA_SUCCESS;
    unclaim(device, 1);
    hook_say_over_cap(call, device, 0);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void context_entered(CUresult rc, CUdevice device, const void *context,
                     const struct overhead_birth *birth)
{
    const struct track_entry entry = {.key = (uint64_t)(uintptr_t)context,
                                      .device = (uint16_t)device,
                                      .kind = birth->whole ? WHOLE : SHARED};
    if (!context_is_device(device))
        return;
    if (rc != CUDA_SUCCESS) {
        unclaim(device, 1);
        overhead_context_failed(birth);
    } else if (context) {
        track_put(&created, &entry); /* without memory for it the place stays taken */
    }
}

bool context_leave(const void *context, struct track_entry *entry)
{
    return track_take(&created, (uint64_t)(uintptr_t)context, entry);
}

bool context_find(const void *context, struct track_entry *entry)
{
    return track_find(&created, (uint64_t)(uintptr_t)context, entry);
}

void context_left(const struct track_entry *entry, bool gone)
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
static bool primary_is_inactive(CUdevice device)
{
    unsigned int flags;
    int active = 1;
    if (real.cuDevicePrimaryCtxGetState &&
        real.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS)
        return !active;
    return primary_contexts[device].holders <= 1;
}

struct context_ending context_ends(uint64_t context, int pools)
{
    const struct context_ending ending = {context, pools, memory_end()};
    if (context) {
        memory_owners_end(track_owner(context), ending.end);
        array_owner_ends(context, ending.end);
    }
    if (pools != NO_DEVICE)
        pool_memory_ends(pools, ending.end);
    return ending;
}

void context_ended(const struct context_ending *ending, bool gone)
{
    if (ending->context) {
        memory_owners_ended(track_owner(ending->context), ending->end, gone);
        array_owner_ended(ending->context, ending->end, gone);
    }
    if (ending->pools != NO_DEVICE)
        pool_memory_ended(ending->pools, ending->end, gone && primary_is_inactive(ending->pools));
}

bool context_are_last(CUdevice device, int leaving)
{
    short_lock_take(&lock);
    bool last = live[device] <= leaving;
    short_lock_drop(&lock);
    return last;
}

struct context_ending primary_context_ends(CUdevice device)
{
    return context_ends(primary_contexts[device].context,
                        context_are_last(device, primary_contexts[device].holders) ? device
                                                                                   : NO_DEVICE);
}

void holder_leaves(CUdevice device, struct holder_leaving *leaving)
{
    owner_lock_take(&primary_contexts[device].lock);
    leaving->last = primary_contexts[device].holders <= 1;
    if (leaving->last)
        leaving->ending = primary_context_ends(device);
}

void holder_left(CUdevice device, const struct holder_leaving *leaving, bool done)
{
    if (leaving->last) {
        context_ended(&leaving->ending, done && primary_is_inactive(device));
        hook_refresh(device);
    }
    if (done && primary_contexts[device].holders > 0) {
        primary_contexts[device].holders--;
        unclaim(device, 1);
        overhead_context_ended(device, !primary_contexts[device].holders);
    }
    owner_lock_drop(&primary_contexts[device].lock);
}

void holders_gone(CUdevice device)
{
    unclaim(device, primary_contexts[device].holders);
    for (; primary_contexts[device].holders > 0; primary_contexts[device].holders--)
        overhead_context_ended(device, primary_contexts[device].holders == 1);
}
