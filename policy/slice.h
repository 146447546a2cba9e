/* slice.h -- bytes that lie in the caller's text: comparing, trimming and taking them apart.
 *
 * Knows: ASCII. Must not know: keys, values, or the locale, which is the host's.
 * Pure functions, with the promises of policy.h.
 */
#ifndef GPUSHIM_POLICY_SLICE_H
#define GPUSHIM_POLICY_SLICE_H

#include "policy.h"

bool policy_is_space(char c); /* a blank or a tab */
bool policy_is_digit(char c);
int policy_hex_value(char c); /* -1: not a hexadecimal digit */
char policy_lower(char c);

struct policy_slice policy_slice_of(const char *string);
/* What remains from `from` on, and what lies before it. */
struct policy_slice policy_slice_after(struct policy_slice slice, size_t from);
struct policy_slice policy_slice_before(struct policy_slice slice, size_t until);
struct policy_slice policy_slice_trim(struct policy_slice slice);

bool policy_slice_is(struct policy_slice slice, const char *string);
bool policy_slice_same(struct policy_slice a, struct policy_slice b);
/* Negative, 0 or positive as memcmp() has it; the beginning of another comes before it. */
int policy_slice_order(struct policy_slice a, struct policy_slice b);
bool policy_slice_begins(struct policy_slice slice, const char *prefix);
/* Compares without regard to the case of ASCII letters. */
bool policy_slice_is_caseless(struct policy_slice slice, const char *string);
bool policy_slice_begins_caseless(struct policy_slice slice, const char *prefix);

/* Position of the first `c`, or the length if there is none. */
size_t policy_slice_find(struct policy_slice slice, char c);
/* Takes the digits at the start. Returns how many; 0: none, or more than `max`. */
size_t policy_slice_digits(struct policy_slice slice, uint64_t max, uint64_t *number);
/* Is it digits only, and at most `max`? */
bool policy_slice_number(struct policy_slice slice, uint64_t max, uint64_t *number);

/* Takes the next item of a comma-separated list out of `rest`, trimmed; `rest->start` becomes NULL
 * behind the last. False: there is none left. An empty list has one empty item. */
bool policy_next_item(struct policy_slice *rest, struct policy_slice *item);

/* How many edits (insert, delete, replace, swap neighbours) turn one word into the other; a large
 * number where either is longer than any word of the language. */
unsigned int policy_slice_distance(struct policy_slice a, struct policy_slice b);
/* Is `word` what a person who wrote `written` probably meant? */
bool policy_slice_resembles(struct policy_slice written, struct policy_slice word);

/* Appends the bytes for a message: not more than fit beside what is to be said of them. */
void policy_slice_show(struct text_line *line, struct policy_slice slice);

#endif
