/* print.c -- see print.h. */
#include "print.h"
#include "settings.h"
#include "slice.h"

static void put(const struct policy_sink *sink, struct policy_slice slice)
{
    sink->write(sink->context, slice.start, slice.length);
}

static void put_string(const struct policy_sink *sink, const char *string)
{
    put(sink, policy_slice_of(string));
}

static void put_header(const struct policy_sink *sink, struct policy_slice rule)
{
    put_string(sink, "[rule ");
    put(sink, rule);
    put_string(sink, "]\n");
}

/* Exact, in the largest unit that divides it. */
static void add_size(struct text_line *line, const struct policy_size *size)
{
    static const char units[][4] = {"", "KiB", "MiB", "GiB", "TiB"};
    uint64_t value = size->value;
    size_t unit = 0;
    switch (size->kind) {
    case POLICY_SIZE_UNSET:
        return;
    case POLICY_SIZE_NONE:
        text_add(line, "none");
        return;
    case POLICY_SIZE_MEASURED:
        text_add(line, "measured");
        return;
    case POLICY_SIZE_PERCENT:
        text_add_number(line, value);
        text_add(line, "%");
        return;
    default:
        break;
    }
    for (; value % 1024 == 0 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        value /= 1024;
    text_add_number(line, value);
    text_add(line, units[unit]);
}

/* The value of a key, in the settings' text or in `room`; start NULL where it is not given. */
static struct policy_slice value_of(const struct policy_settings *settings, enum policy_key key,
                                    struct text_line *room)
{
    text_start(room);
    switch (key) {
    case POLICY_KEY_LOG:
        return settings->log;
    case POLICY_KEY_LOG_LEVEL:
        text_add(room, policy_level_word(settings->log_level));
        break;
    case POLICY_KEY_DEVICES:
        return settings->devices;
    case POLICY_KEY_MEMORY:
        add_size(room, &settings->memory);
        break;
    case POLICY_KEY_OVERHEAD:
        add_size(room, &settings->overhead);
        break;
    case POLICY_KEY_MANAGED:
        text_add(room, policy_switch_word(settings->managed.value));
        break;
    case POLICY_KEY_PEER_ACCESS:
        text_add(room, policy_switch_word(settings->peer_access.value));
        break;
    case POLICY_KEY_CROSS_DEVICE_COPY:
        text_add(room, policy_switch_word(settings->cross_device_copy.value));
        break;
    case POLICY_KEY_IPC:
        text_add(room, policy_switch_word(settings->ipc.value));
        break;
    case POLICY_KEY_DEVICES_PER_PROCESS:
        if (settings->devices_per_process != 0)
            text_add_number(room, settings->devices_per_process);
        break;
    case POLICY_KEY_CUDA_VISIBLE_DEVICES:
        text_add(room, policy_switch_word(settings->cuda_visible_devices.value));
        break;
    case POLICY_KEY_NVML:
        text_add(room, policy_switch_word(settings->nvml.value));
        break;
    default:
        break;
    }
    return (struct policy_slice){room->length ? room->bytes : NULL, room->length};
}

static void put_assignment(const struct policy_sink *sink, struct policy_slice name,
                           struct policy_slice value)
{
    put(sink, name);
    put_string(sink, " = ");
    put(sink, value);
    put_string(sink, "\n");
}

static void put_positions(const struct policy_sink *sink, const struct policy_size *sizes)
{
    struct text_line name, value;
    for (unsigned int k = 0; k < POLICY_GPUS_MAX; k++) {
        text_start(&name);
        text_start(&value);
        text_add(&name, "memory.");
        text_add_number(&name, k);
        add_size(&value, &sizes[k]);
        if (value.length)
            put_assignment(sink, policy_slice_of(name.bytes), policy_slice_of(value.bytes));
    }
}

static bool any_set(const struct policy_size *sizes)
{
    for (size_t k = 0; k < POLICY_GPUS_MAX; k++) {
        if (sizes[k].kind != POLICY_SIZE_UNSET)
            return true;
    }
    return false;
}

/* The given keys of one home; `memory` only where it is wanted. */
static void put_keys(const struct policy_settings *settings, const struct policy_sink *sink,
                     enum policy_section section, bool memory)
{
    struct text_line room;
    for (int i = 0; i < POLICY_KEYS; i++) {
        const enum policy_key key = (enum policy_key)i;
        if (!policy_key_belongs(key, section) || (key == POLICY_KEY_MEMORY && !memory))
            continue;
        struct policy_slice value = value_of(settings, key, &room);
        if (key == POLICY_KEY_MEMORY_OF)
            put_positions(sink, settings->memory_of);
        else if (value.start)
            put_assignment(sink, policy_slice_of(policy_key_name(key)), value);
    }
}

/* What [default] says of memory by the positions of its own list, which a rule with another list
 * leaves in force. */
static void put_base(const struct policy_settings *settings, const struct policy_sink *sink)
{
    struct policy_settings base = {
        .devices = settings->base_devices,
        .memory = settings->memory,
    };
    for (size_t k = 0; k < POLICY_GPUS_MAX; k++)
        base.memory_of[k] = settings->base_memory_of[k];
    put_string(sink, "[default]\n");
    put_keys(&base, sink, POLICY_SECTION_DEFAULT, true);
}

void policy_print(const struct policy_settings *settings, const struct policy_sink *sink)
{
    const bool has_base = any_set(settings->base_memory_of);
    put_string(sink, "[gpushim]\n");
    put_keys(settings, sink, POLICY_SECTION_GPUSHIM, true);
    if (has_base)
        put_base(settings, sink);
    if (settings->rule.start)
        put_header(sink, settings->rule);
    else
        put_string(sink, "[default]\n");
    put_keys(settings, sink, POLICY_SECTION_DEFAULT, !has_base);
}
