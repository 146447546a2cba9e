/* visible.c -- see visible.h. */
#include "visible.h"

#include <string.h>

enum { NONE = -1 };

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* As strtol reads it: blanks, a sign, digits; what follows the digits is ignored ("1gpu" is 1). */
static int by_number(const char *item, size_t length, size_t grant_count)
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
        if (number >= grant_count)
            return NONE;
    }
    return (int)number;
}

static int by_uuid(const char *item, size_t length, const struct policy_gpu *gpus,
                   const struct policy_grant *grants, size_t grant_count)
{
    int found = NONE;
    for (size_t i = 0; i < grant_count; i++) {
        if (strncmp(gpus[grants[i].gpu].uuid, item, length) != 0)
            continue;
        if (found != NONE)
            return NONE; /* ambiguous */
        found = (int)i;
    }
    return found;
}

static bool is_uuid(const char *item, size_t length)
{
    return length >= 4 && (memcmp(item, "GPU-", 4) == 0 || memcmp(item, "MIG-", 4) == 0);
}

size_t visible_choose(const char *value, const struct policy_gpu *gpus,
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
    const bool uuids = is_uuid(value, strlen(value));
    for (;;) {
        size_t length = strcspn(value, ",");
        const char *item = value;
        size_t item_length = length;
        while (item_length && is_blank(*item))
            item++, item_length--;
        while (item_length && is_blank(item[item_length - 1]))
            item_length--;
        if (is_uuid(item, item_length) != uuids)
            return count;
        int position = uuids ? by_uuid(item, item_length, gpus, grants, grant_count)
                             : by_number(item, item_length, grant_count);
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
