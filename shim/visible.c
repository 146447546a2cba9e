/* visible.c -- see visible.h. */
#include "visible.h"

#include <string.h>

enum { NONE = -1 };

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* As strtol reads it: blanks, a sign, digits; what follows the digits is ignored ("1gpu" is 1). A
 * number from `end` on is none. */
static int number_of(const char *item, size_t length, size_t end)
{
    size_t i = 0;
    while (i < length && is_blank(item[i]))
        i++;
    if (i < length && item[i] == '+')
        i++;
    if (i == length || item[i] < '0' || item[i] > '9')
        return NONE; /* also every negative number */
    size_t number = 0;
    for (; i < length && item[i] >= '0' && item[i] <= '9'; i++) {
        number = number * 10 + (size_t)(item[i] - '0');
        if (number >= end)
            return NONE;
    }
    return (int)number;
}

/* GPU `index`, or the first of its MIG devices where it is granted as these. */
static int by_index(int index, const struct policy_gpu *gpus, const struct policy_grant *grants,
                    size_t grant_count)
{
    for (size_t i = 0; i < grant_count; i++) {
        const uint8_t gpu = grants[i].gpu;
        if ((gpus[gpu].is_mig ? gpus[gpu].parent : gpu) == index)
            return (int)i;
    }
    return NONE;
}

enum form { INTEGER, GPU_UUID, MIG_UUID };

static enum form form_of(const char *item, size_t length)
{
    if (length >= 4 && memcmp(item, "GPU-", 4) == 0)
        return GPU_UUID;
    return length >= 4 && memcmp(item, "MIG-", 4) == 0 ? MIG_UUID : INTEGER;
}

/* A GPU's own UUID means the first of its MIG devices where it is granted as these. */
static int by_uuid(const char *item, size_t length, enum form form, const struct policy_gpu *gpus,
                   const struct policy_grant *grants, size_t grant_count)
{
    int found = NONE;
    uint8_t found_gpu = 0;
    for (size_t i = 0; i < grant_count; i++) {
        uint8_t gpu = grants[i].gpu;
        if (form == GPU_UUID && gpus[gpu].is_mig)
            gpu = gpus[gpu].parent;
        if (strncmp(gpus[gpu].uuid, item, length) != 0 &&
            strncmp(gpus[gpu].older, item, length) != 0)
            continue;
        if (found != NONE && gpu != found_gpu)
            return NONE; /* ambiguous */
        if (found == NONE)
            found = (int)i;
        found_gpu = gpu;
    }
    return found;
}

size_t visible_choose(const char *value, bool physical, const struct policy_gpu *gpus,
                      const struct policy_grant *grants, size_t grant_count, uint8_t *chosen)
{
    size_t count = 0;
    if (!value) {
        for (; count < grant_count; count++)
            chosen[count] = (uint8_t)count;
        return count;
    }
    while (is_blank(*value))
        value++;
    const enum form form = form_of(value, strlen(value));
    for (;;) {
        size_t length = strcspn(value, ",");
        const char *item = value;
        size_t item_length = length;
        while (item_length && is_blank(*item))
            item++, item_length--;
        while (item_length && is_blank(item[item_length - 1]))
            item_length--;
        if (form_of(item, item_length) != form)
            return count;
        int position;
        if (form != INTEGER)
            position = by_uuid(item, item_length, form, gpus, grants, grant_count);
        else if (physical)
            position =
                by_index(number_of(item, item_length, POLICY_GPUS_MAX), gpus, grants, grant_count);
        else
            position = number_of(item, item_length, grant_count);
        if (position == NONE)
            return count;
        for (size_t i = 0; i < count; i++) {
            if (chosen[i] == position)
                return 0;
        }
        chosen[count++] = (uint8_t)position;
        if (value[length] == '\0')
            return count;
        value += length + 1;
    }
}
