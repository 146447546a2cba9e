/* keys.c -- see keys.h. The table holds arrays, not pointers: pointers would each be relocated in
 * every process that loads the shim. */
#include "keys.h"

enum home { HOME_GPUSHIM, HOME_RULE, HOME_SETTING };

static const struct {
    unsigned char home;
    char name[24], now[32], later[32];
} rows[POLICY_KEYS] = {
#define POLICY_KEY(identifier, section, name, now, later, fallback, prose)                         \
    [POLICY_KEY_##identifier] = {HOME_##section, name, now, later},
#include "keys.def"
#undef POLICY_KEY
};

enum policy_key policy_key_of(struct policy_slice name, unsigned int *position)
{
    static const char dotted[] = "memory.";
    uint64_t number;
    *position = 0;
    if (policy_slice_begins(name, dotted)) {
        struct policy_slice k = policy_slice_after(name, sizeof dotted - 1);
        bool valid = policy_slice_number(k, POLICY_GPUS_MAX - 1, &number);
        *position = valid ? (unsigned int)number : POLICY_GPUS_MAX;
        return POLICY_KEY_MEMORY_OF;
    }
    for (int key = 0; key < POLICY_KEYS; key++) {
        if (policy_slice_is(name, rows[key].name))
            return (enum policy_key)key;
    }
    return POLICY_KEY_UNKNOWN;
}

const char *policy_key_name(enum policy_key key) { return rows[key].name; }

const char *policy_key_now(enum policy_key key) { return rows[key].now; }

const char *policy_key_later(enum policy_key key) { return rows[key].later; }

bool policy_key_belongs(enum policy_key key, enum policy_section section)
{
    switch (rows[key].home) {
    case HOME_GPUSHIM:
        return section == POLICY_SECTION_GPUSHIM;
    case HOME_RULE:
        return section == POLICY_SECTION_RULE;
    default:
        return section == POLICY_SECTION_DEFAULT || section == POLICY_SECTION_RULE;
    }
}

void policy_key_add_home(struct text_line *line, enum policy_key key)
{
    switch (rows[key].home) {
    case HOME_GPUSHIM:
        text_add(line, "[gpushim]");
        break;
    case HOME_RULE:
        text_add(line, "a [rule NAME]");
        break;
    default:
        text_add(line, "[default] or a [rule NAME]");
        break;
    }
}

enum policy_key policy_key_like(struct policy_slice written, enum policy_section section)
{
    enum policy_key best = POLICY_KEY_UNKNOWN;
    unsigned int best_distance = 0;
    for (int key = 0; key < POLICY_KEYS; key++) {
        struct policy_slice name = policy_slice_of(rows[key].name);
        if (!policy_slice_resembles(written, name))
            continue;
        unsigned int distance = policy_slice_distance(written, name) * 2;
        distance += policy_key_belongs((enum policy_key)key, section) ? 0 : 1;
        if (best == POLICY_KEY_UNKNOWN || distance < best_distance) {
            best = (enum policy_key)key;
            best_distance = distance;
        }
    }
    return best;
}
