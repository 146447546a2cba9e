/* settings.c -- see settings.h. */
#include "settings.h"
#include "size.h"

static const char switch_words[][12] = {[POLICY_UNSET] = "",
                                        [POLICY_ALLOW] = "allow",
                                        [POLICY_DENY] = "deny",
                                        [POLICY_COUNT] = "count",
                                        [POLICY_IGNORE] = "ignore",
                                        [POLICY_FOLLOW] = "follow",
                                        [POLICY_PHYSICAL] = "physical",
                                        [POLICY_WITHIN] = "within"};

static const char level_words[][8] = {[POLICY_LOG_UNSET] = "",
                                      [POLICY_LOG_ERROR] = "error",
                                      [POLICY_LOG_WARN] = "warn",
                                      [POLICY_LOG_INFO] = "info",
                                      [POLICY_LOG_DEBUG] = "debug"};

const char *policy_switch_word(enum policy_switch value) { return switch_words[value]; }

const char *policy_level_word(enum policy_log_level level) { return level_words[level]; }

static enum policy_switch switch_of(struct policy_slice word)
{
    int value = POLICY_WITHIN;
    while (value > POLICY_UNSET && !policy_slice_is(word, switch_words[value]))
        value--;
    return (enum policy_switch)value;
}

static enum policy_log_level level_of(struct policy_slice word)
{
    int level = POLICY_LOG_DEBUG;
    while (level > POLICY_LOG_UNSET && !policy_slice_is(word, level_words[level]))
        level--;
    return (enum policy_log_level)level;
}

static struct policy_size size_of(struct policy_slice value, uint32_t line)
{
    struct policy_size size = {.kind = POLICY_SIZE_NONE};
    const char *why;
    (void)policy_parse_size(value, &size, &why); /* what is no size is `none` */
    size.line = line;
    return size;
}

static struct policy_size overhead_of(struct policy_slice value, uint32_t line)
{
    struct policy_size size = size_of(value, line);
    if (policy_slice_is(value, "measured"))
        size.kind = POLICY_SIZE_MEASURED;
    return size;
}

static uint32_t count_of(struct policy_slice value)
{
    uint64_t number;
    return policy_slice_number(value, POLICY_GPUS_MAX, &number) ? (uint32_t)number : 0;
}

void policy_store(struct policy_settings *settings, enum policy_key key, unsigned int position,
                  struct policy_slice value, struct policy_place place)
{
    switch (key) {
    case POLICY_KEY_LOG:
        settings->log = value;
        break;
    case POLICY_KEY_LOG_LEVEL:
        settings->log_level = level_of(value);
        break;
    case POLICY_KEY_DEVICES:
        settings->devices = value;
        settings->devices_line = place.line;
        settings->devices_column = place.column;
        break;
    case POLICY_KEY_MEMORY:
        settings->memory = size_of(value, place.line);
        break;
    case POLICY_KEY_MEMORY_OF:
        settings->memory_of[position] = size_of(value, place.line);
        break;
    case POLICY_KEY_OVERHEAD:
        settings->overhead = overhead_of(value, place.line);
        break;
    case POLICY_KEY_IPC:
        settings->ipc = (struct policy_choice){switch_of(value), place.line};
        break;
    case POLICY_KEY_MANAGED:
        settings->managed = (struct policy_choice){switch_of(value), place.line};
        break;
    case POLICY_KEY_DEVICES_PER_PROCESS:
        settings->devices_per_process = count_of(value);
        settings->devices_per_process_line = place.line;
        break;
    case POLICY_KEY_NVML:
        settings->nvml = (struct policy_choice){switch_of(value), place.line};
        break;
    case POLICY_KEY_CUDA_VISIBLE_DEVICES:
        settings->cuda_visible_devices = (struct policy_choice){switch_of(value), place.line};
        break;
    case POLICY_KEY_PEER_ACCESS:
        settings->peer_access = (struct policy_choice){switch_of(value), place.line};
        break;
    case POLICY_KEY_CROSS_DEVICE_COPY:
        settings->cross_device_copy = (struct policy_choice){switch_of(value), place.line};
        break;
    default:
        break;
    }
}
