/* granted.c -- see granted.h. */
#include "granted.h"
#include "machine.h"
#include "once.h"
#include "posture.h"

static struct once once;
static struct granted on_machine;

const char *granted_uuid(const struct granted *granted, size_t position)
{
    return granted->gpus[granted->grants[position].gpu].uuid;
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

enum granted_status granted_of(struct granted *granted, size_t gpu_count, struct text_line *why)
{
    const struct posture_decision *decided = posture();
    struct policy_error error;
    size_t layer = 0;
    int count = policy_grant(decided->layers, decided->layer_count, granted->gpus, gpu_count,
                             granted->grants, &error, &layer);
    if (count < 0) {
        policy_describe_error(why, decided->layers[layer].source, &error);
        return GRANTED_REFUSED;
    }
    granted->count = (size_t)count;
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
    status = count < 0 ? GRANTED_UNLISTED : granted_of(&on_machine, (size_t)count, why);
    if (status == GRANTED_OK)
        once_done(&once);
    else
        once_undo(&once);
    return status;
}
