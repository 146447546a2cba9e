/* keys.h -- the keys of keys.def, by name and by resemblance.
 *
 * Knows: which keys there are, where they belong and which values they take. Must not know: how a
 * value is read, or what it does. Pure functions, with the promises of policy.h.
 */
#ifndef GPUSHIM_POLICY_KEYS_H
#define GPUSHIM_POLICY_KEYS_H

#include "slice.h"

enum policy_key {
#define POLICY_KEY(identifier, section, name, now, later, fallback, prose) POLICY_KEY_##identifier,
#include "keys.def"
#undef POLICY_KEY
    POLICY_KEYS,
    POLICY_KEY_UNKNOWN = POLICY_KEYS
};

enum policy_section {
    POLICY_SECTION_OUTSIDE, /* before any header */
    POLICY_SECTION_GPUSHIM,
    POLICY_SECTION_DEFAULT,
    POLICY_SECTION_RULE,
    POLICY_SECTION_UNKNOWN
};

/* The key of this name. "memory.3" is POLICY_KEY_MEMORY_OF with `*position` 3; where what follows
 * "memory." is no position, `*position` is POLICY_GPUS_MAX. */
enum policy_key policy_key_of(struct policy_slice name, unsigned int *position);
const char *policy_key_name(enum policy_key key);
const char *policy_key_now(enum policy_key key);
const char *policy_key_later(enum policy_key key);
bool policy_key_belongs(enum policy_key key, enum policy_section section);
/* Appends where the key belongs: "[gpushim]", "a [rule NAME]", "[default] or a [rule NAME]". */
void policy_key_add_home(struct text_line *line, enum policy_key key);
/* The key that was probably meant, one of this section first; POLICY_KEY_UNKNOWN: no idea. */
enum policy_key policy_key_like(struct policy_slice written, enum policy_section section);

#endif
