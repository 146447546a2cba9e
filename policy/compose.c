/* compose.c -- what holds over all texts, and by which rule. GPUs and their caps: grant.c. */
#include "policy.h"
#include "slice.h"

static int strictness(enum policy_switch value)
{
    switch (value) {
    case POLICY_DENY:
        return 2;
    case POLICY_COUNT:
        return 1;
    default:
        return 0;
    }
}

static struct policy_choice stricter(struct policy_choice outer, struct policy_choice inner,
                                     size_t inner_layer, size_t *layer)
{
    if (inner.value == POLICY_UNSET || strictness(inner.value) <= strictness(outer.value))
        return outer;
    *layer = inner_layer;
    return inner;
}

/* The strictest of one setting, which lies at `offset` in each layer. */
static struct policy_choice strictest(const struct policy_settings *layers, size_t layer_count,
                                      size_t offset, enum policy_switch fallback, size_t *layer)
{
    struct policy_choice holds = {fallback, 0};
    *layer = 0;
    for (size_t i = 0; i < layer_count; i++) {
        const char *settings = (const char *)&layers[i];
        const struct policy_choice *choice = (const void *)(settings + offset);
        if (i == 0 && choice->value != POLICY_UNSET)
            holds = *choice;
        holds = stricter(holds, *choice, i, layer);
    }
    return holds;
}

struct policy_choice policy_peer_access(const struct policy_settings *layers, size_t layer_count,
                                        size_t *layer)
{
    return strictest(layers, layer_count, offsetof(struct policy_settings, peer_access),
                     POLICY_ALLOW, layer);
}

struct policy_choice policy_cross_device_copy(const struct policy_settings *layers,
                                              size_t layer_count, size_t *layer)
{
    return strictest(layers, layer_count, offsetof(struct policy_settings, cross_device_copy),
                     POLICY_ALLOW, layer);
}

struct policy_choice policy_ipc(const struct policy_settings *layers, size_t layer_count,
                                size_t *layer)
{
    return strictest(layers, layer_count, offsetof(struct policy_settings, ipc), POLICY_ALLOW,
                     layer);
}

struct policy_choice policy_managed(const struct policy_settings *layers, size_t layer_count,
                                    size_t *layer)
{
    return strictest(layers, layer_count, offsetof(struct policy_settings, managed), POLICY_COUNT,
                     layer);
}

uint32_t policy_devices_per_process(const struct policy_settings *layers, size_t layer_count,
                                    size_t *layer)
{
    uint32_t holds = 0;
    *layer = 0;
    for (size_t i = 0; i < layer_count; i++) {
        const uint32_t count = layers[i].devices_per_process;
        if (count == 0 || (holds != 0 && holds <= count))
            continue;
        holds = count;
        *layer = i;
    }
    return holds;
}

struct policy_size policy_overhead(const struct policy_settings *layers, size_t layer_count)
{
    for (size_t i = 0; i < layer_count; i++) {
        if (layers[i].overhead.kind != POLICY_SIZE_UNSET)
            return layers[i].overhead;
        if (policy_caps_memory(&layers[i]))
            break; /* an inner text cannot loosen this cap's default */
    }
    return (struct policy_size){.kind = POLICY_SIZE_MEASURED};
}

enum policy_switch policy_cuda_visible_devices(const struct policy_settings *layers,
                                               size_t layer_count)
{
    for (size_t i = 0; i < layer_count; i++) {
        if (layers[i].cuda_visible_devices.value != POLICY_UNSET)
            return layers[i].cuda_visible_devices.value;
    }
    return POLICY_WITHIN;
}

enum policy_switch policy_nvml(const struct policy_settings *layers, size_t layer_count)
{
    const bool physical = policy_cuda_visible_devices(layers, layer_count) == POLICY_PHYSICAL;
    for (size_t i = 0; i < layer_count; i++) {
        if (layers[i].nvml.value != POLICY_UNSET)
            return layers[i].nvml.value;
        if (physical && layers[i].cuda_visible_devices.value != POLICY_UNSET)
            return POLICY_PHYSICAL;
    }
    return POLICY_FOLLOW;
}

struct policy_slice policy_log(const struct policy_settings *layers, size_t layer_count)
{
    for (size_t i = 0; i < layer_count; i++) {
        if (layers[i].log.start)
            return layers[i].log;
    }
    return (struct policy_slice){NULL, 0};
}

enum policy_log_level policy_log_level(const struct policy_settings *layers, size_t layer_count)
{
    enum policy_log_level level = POLICY_LOG_WARN;
    if (layer_count > 0 && layers[0].log_level != POLICY_LOG_UNSET)
        level = layers[0].log_level;
    for (size_t i = 1; i < layer_count; i++) {
        if (layers[i].log_level > level)
            level = layers[i].log_level;
    }
    return level;
}

static bool is_cap(const struct policy_size *size)
{
    return size->kind == POLICY_SIZE_BYTES || size->kind == POLICY_SIZE_PERCENT;
}

bool policy_caps_memory(const struct policy_settings *settings)
{
    if (is_cap(&settings->memory))
        return true;
    for (size_t k = 0; k < POLICY_GPUS_MAX; k++) {
        if (is_cap(&settings->memory_of[k]) || is_cap(&settings->base_memory_of[k]))
            return true;
    }
    return false;
}

bool policy_caps_by_position(const struct policy_settings *settings)
{
    for (size_t k = 0; k < POLICY_GPUS_MAX; k++) {
        if (settings->memory_of[k].kind != POLICY_SIZE_UNSET ||
            settings->base_memory_of[k].kind != POLICY_SIZE_UNSET)
            return true;
    }
    return false;
}

bool policy_grants_all(const struct policy_settings *settings)
{
    return !settings->devices.start || policy_slice_is(settings->devices, "all");
}

bool policy_grants_none(const struct policy_settings *settings)
{
    return settings->devices.start && policy_slice_is(settings->devices, "none");
}

void policy_describe_rule(struct text_line *line, const struct policy_settings *settings,
                          uint32_t at_line)
{
    bool in_rule =
        settings->rule.start &&
        (at_line == 0 || (at_line >= settings->rule_line && at_line <= settings->rule_end));
    if (in_rule) {
        text_add(line, "rule ");
        policy_slice_show(line, settings->rule);
        text_add(line, " of ");
    } else if (at_line != 0) {
        text_add(line, "[default] of ");
    }
    text_add(line, settings->source);
    if (at_line != 0) {
        text_add(line, ":");
        text_add_number(line, at_line);
    }
}
