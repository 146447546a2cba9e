/* granted.c -- see granted.h. */
#include "granted.h"
#include "machine.h"
#include "once.h"
#include "posture.h"

#include <string.h>

static struct once once;
static struct granted on_machine;

const char *granted_uuid(const struct granted *granted, size_t position)
{
    return granted->gpus[granted->grants[position].gpu].uuid;
}

uint8_t granted_card(const struct granted *granted, size_t position)
{
    const uint8_t gpu = granted->grants[position].gpu;
    return granted->gpus[gpu].is_mig ? granted->gpus[gpu].parent : gpu;
}

uint64_t granted_cap(const struct granted *granted, size_t position, uint64_t total_bytes,
                     size_t *layer, uint32_t *line)
{
    const struct policy_grant *grant = &granted->grants[position];
    uint64_t cap = UINT64_MAX;
    if (grant->cap.kind == POLICY_SIZE_BYTES) {
        cap = grant->cap.value;
        *layer = grant->cap_layer;
        *line = grant->cap.line;
    }
    if (grant->share.kind == POLICY_SIZE_PERCENT) {
        const uint64_t percent = grant->share.value;
        const uint64_t share = total_bytes / 100 * percent + total_bytes % 100 * percent / 100;
        if (share < cap) {
            cap = share;
            *layer = grant->share_layer;
            *line = grant->share.line;
        }
    }
    return cap;
}

static bool is_granted(const struct granted *granted, size_t gpu)
{
    for (size_t i = 0; i < granted->count; i++) {
        if (granted->grants[i].gpu == gpu)
            return true;
    }
    return false;
}

static bool is_part_of(const struct granted *granted, size_t part, size_t gpu)
{
    return granted->gpus[part].is_mig && granted->gpus[part].parent == gpu;
}

/* Puts the MIG devices of the GPU at `position` in its place, but for those that are granted by
 * themselves, and returns the position behind them. */
static size_t divide(struct granted *granted, size_t position)
{
    const struct policy_grant whole = granted->grants[position];
    struct policy_grant *at = &granted->grants[position];
    size_t part = 0;
    while (part < granted->gpu_count && !is_part_of(granted, part, whole.gpu))
        part++;
    if (part == granted->gpu_count)
        return position + 1;
    granted->count--;
    memmove(at, at + 1, (granted->count - position) * sizeof *at);
    for (; part < granted->gpu_count; part++) {
        if (!is_part_of(granted, part, whole.gpu) || is_granted(granted, part))
            continue;
        at = &granted->grants[position];
        memmove(at + 1, at, (granted->count - position) * sizeof *at);
        *at = whole;
        at->gpu = (uint8_t)part;
        granted->count++;
        position++;
    }
    return position;
}

static void list_cards(struct granted *granted)
{
    bool listed[POLICY_GPUS_MAX] = {false};
    granted->card_count = 0;
    for (size_t i = 0; i < granted->count; i++) {
        const uint8_t card = granted_card(granted, i);
        if (!listed[card])
            granted->cards[granted->card_count++] = card;
        listed[card] = true;
    }
}

enum granted_status granted_of(struct granted *granted, struct text_line *why)
{
    const struct posture_decision *decided = posture();
    struct policy_error error;
    size_t layer = 0;
    int count = policy_grant(decided->layers, decided->layer_count, granted->gpus,
                             granted->gpu_count, granted->grants, &error, &layer);
    if (count < 0) {
        policy_describe_error(why, decided->layers[layer].source, &error);
        return GRANTED_REFUSED;
    }
    granted->count = (size_t)count;
    for (size_t i = 0; i < granted->count;)
        i = divide(granted, i);
    list_cards(granted);
    return GRANTED_OK;
}

enum granted_status granted_on_machine(const struct granted **granted, struct text_line *why)
{
    enum granted_status status = GRANTED_OK;
    bool done;
    *granted = &on_machine;
    text_start(why);
    if (once_is_done(&once))
        return GRANTED_OK;
    if (!once_begin(&once, &done)) {
        if (!done)
            text_add(why, "NVML asks while it is being asked");
        return done ? GRANTED_OK : GRANTED_UNLISTED;
    }
    int count = machine_list(on_machine.gpus, why);
    on_machine.gpu_count = count < 0 ? 0 : (size_t)count;
    status = count < 0 ? GRANTED_UNLISTED : granted_of(&on_machine, why);
    if (status == GRANTED_OK)
        once_done(&once);
    else
        once_undo(&once);
    return status;
}
