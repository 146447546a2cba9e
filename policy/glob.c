/* glob.c -- see glob.h.
 *
 * Only the last `*` is ever taken back: if what follows it can match at all behind an earlier
 * start, it can behind a later one, so earlier stars need not be tried again. That bounds the work.
 */
#include "glob.h"

/* The character at `at` and its bytes. What is not UTF-8 counts byte by byte. */
static uint32_t character_at(struct policy_slice text, size_t at, size_t *bytes)
{
    const unsigned char *c = (const unsigned char *)text.start + at;
    size_t length = c[0] >= 0xF0 ? 4 : c[0] >= 0xE0 ? 3 : c[0] >= 0xC2 ? 2 : 1;
    uint32_t value = length == 1 ? c[0] : c[0] & (0x7FU >> length);
    if (length > text.length - at)
        length = 0;
    for (size_t i = 1; i < length; i++) {
        if ((c[i] & 0xC0) != 0x80)
            length = 0;
        else
            value = value << 6 | (c[i] & 0x3FU);
    }
    *bytes = length == 0 ? 1 : length;
    return length == 0 ? c[0] : value;
}

/* Position of the ] that closes the [ at `at`, or the length. A ] that comes first is a member. */
static size_t end_of_set(struct policy_slice pattern, size_t at)
{
    size_t i = at + 1;
    if (i < pattern.length && (pattern.start[i] == '!' || pattern.start[i] == '^'))
        i++;
    if (i < pattern.length && pattern.start[i] == ']')
        i++;
    while (i < pattern.length && pattern.start[i] != ']')
        i++;
    return i;
}

/* Is the character in the set that lies between `at` ([) and `end` (])? */
static bool is_in_set(struct policy_slice pattern, size_t at, size_t end, uint32_t character)
{
    size_t i = at + 1, bytes;
    bool inverted = pattern.start[i] == '!' || pattern.start[i] == '^';
    bool found = false;
    if (inverted)
        i++;
    while (i < end) {
        uint32_t first = character_at(pattern, i, &bytes), last = first;
        i += bytes;
        if (i + 1 < end && pattern.start[i] == '-') {
            last = character_at(pattern, i + 1, &bytes);
            i += 1 + bytes;
        }
        found = found || (first <= character && character <= last);
    }
    return found != inverted;
}

/* Does the one element of the pattern at `at`, not a star, match this character? `*next` follows
 * it. */
static bool matches_one(struct policy_slice pattern, size_t at, uint32_t character, size_t *next)
{
    size_t bytes;
    uint32_t wanted = character_at(pattern, at, &bytes);
    *next = at + bytes;
    if (wanted == '?')
        return true;
    if (wanted == '[') {
        size_t end = end_of_set(pattern, at);
        if (end < pattern.length) {
            *next = end + 1;
            return is_in_set(pattern, at, end, character);
        }
    }
    return wanted == character;
}

bool policy_glob(struct policy_slice pattern, struct policy_slice text)
{
    size_t p = 0, t = 0, next, bytes;
    size_t after_star = 0, retry = 0;
    bool starred = false;
    while (t < text.length) {
        if (p < pattern.length && pattern.start[p] == '*') {
            starred = true;
            after_star = ++p;
            retry = t;
            continue;
        }
        uint32_t character = character_at(text, t, &bytes);
        if (p < pattern.length && matches_one(pattern, p, character, &next)) {
            p = next;
            t += bytes;
            continue;
        }
        if (!starred)
            return false;
        (void)character_at(text, retry, &bytes);
        retry += bytes;
        p = after_star;
        t = retry;
    }
    while (p < pattern.length && pattern.start[p] == '*')
        p++;
    return p == pattern.length;
}

bool policy_glob_is_valid(struct policy_slice pattern)
{
    for (size_t i = 0; i < pattern.length; i++) {
        if (pattern.start[i] != '[')
            continue;
        i = end_of_set(pattern, i);
        if (i == pattern.length)
            return false;
    }
    return true;
}
