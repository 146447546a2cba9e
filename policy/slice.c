/* slice.c -- see slice.h. */
#include "slice.h"

#include <string.h>

enum { WORD_MAX = 32, SHOWN_MAX = 60, FAR = 1000 };

bool policy_is_space(char c) { return c == ' ' || c == '\t'; }

bool policy_is_digit(char c) { return c >= '0' && c <= '9'; }

char policy_lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

int policy_hex_value(char c)
{
    if (policy_is_digit(c))
        return c - '0';
    c = policy_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

struct policy_slice policy_slice_of(const char *string)
{
    return (struct policy_slice){string, strlen(string)};
}

struct policy_slice policy_slice_after(struct policy_slice slice, size_t from)
{
    return (struct policy_slice){slice.start + from, slice.length - from};
}

struct policy_slice policy_slice_before(struct policy_slice slice, size_t until)
{
    return (struct policy_slice){slice.start, until};
}

struct policy_slice policy_slice_trim(struct policy_slice slice)
{
    while (slice.length > 0 && policy_is_space(slice.start[0]))
        slice = policy_slice_after(slice, 1);
    while (slice.length > 0 && policy_is_space(slice.start[slice.length - 1]))
        slice.length--;
    return slice;
}

bool policy_slice_same(struct policy_slice a, struct policy_slice b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.start, b.start, a.length) == 0);
}

int policy_slice_order(struct policy_slice a, struct policy_slice b)
{
    const size_t shorter = a.length < b.length ? a.length : b.length;
    int order = shorter ? memcmp(a.start, b.start, shorter) : 0;
    if (order != 0 || a.length == b.length)
        return order;
    return a.length < b.length ? -1 : 1;
}

bool policy_slice_is(struct policy_slice slice, const char *string)
{
    return policy_slice_same(slice, policy_slice_of(string));
}

bool policy_slice_begins(struct policy_slice slice, const char *prefix)
{
    size_t length = strlen(prefix);
    return slice.length >= length && policy_slice_is(policy_slice_before(slice, length), prefix);
}

bool policy_slice_begins_caseless(struct policy_slice slice, const char *prefix)
{
    size_t i = 0;
    while (i < slice.length && prefix[i] && policy_lower(slice.start[i]) == policy_lower(prefix[i]))
        i++;
    return prefix[i] == '\0';
}

bool policy_slice_is_caseless(struct policy_slice slice, const char *string)
{
    return slice.length == strlen(string) && policy_slice_begins_caseless(slice, string);
}

size_t policy_slice_find(struct policy_slice slice, char c)
{
    const char *found = slice.length ? memchr(slice.start, c, slice.length) : NULL;
    return found ? (size_t)(found - slice.start) : slice.length;
}

size_t policy_slice_digits(struct policy_slice slice, uint64_t max, uint64_t *number)
{
    size_t i = 0;
    *number = 0;
    for (; i < slice.length && policy_is_digit(slice.start[i]); i++) {
        uint64_t digit = (uint64_t)(slice.start[i] - '0');
        if (digit > max || *number > (max - digit) / 10)
            return 0;
        *number = *number * 10 + digit;
    }
    return i;
}

bool policy_slice_number(struct policy_slice slice, uint64_t max, uint64_t *number)
{
    return slice.length > 0 && policy_slice_digits(slice, max, number) == slice.length;
}

bool policy_next_item(struct policy_slice *rest, struct policy_slice *item)
{
    if (!rest->start)
        return false;
    size_t comma = policy_slice_find(*rest, ',');
    *item = policy_slice_trim(policy_slice_before(*rest, comma));
    if (comma < rest->length)
        *rest = policy_slice_after(*rest, comma + 1);
    else
        *rest = (struct policy_slice){NULL, 0};
    return true;
}

static unsigned int smaller(unsigned int a, unsigned int b) { return a < b ? a : b; }

unsigned int policy_slice_distance(struct policy_slice a, struct policy_slice b)
{
    unsigned int rows[3][WORD_MAX + 1]; /* the last three rows of the usual table, used in turn */
    if (a.length > WORD_MAX || b.length > WORD_MAX)
        return FAR;
    for (unsigned int j = 0; j <= b.length; j++)
        rows[0][j] = j;
    for (unsigned int i = 1; i <= a.length; i++) {
        unsigned int *row = rows[i % 3];
        const unsigned int *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (unsigned int j = 1; j <= b.length; j++) {
            char x = a.start[i - 1], y = b.start[j - 1];
            row[j] = smaller(smaller(above[j], row[j - 1]) + 1, above[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == b.start[j - 2] && y == a.start[i - 2])
                row[j] = smaller(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[a.length % 3][b.length];
}

bool policy_slice_resembles(struct policy_slice written, struct policy_slice word)
{
    if (written.length == word.length) {
        size_t i = 0;
        while (i < word.length && policy_lower(written.start[i]) == word.start[i])
            i++;
        if (i == word.length)
            return true;
    }
    /* Two slips in a word of some length, one in a short one. */
    return policy_slice_distance(written, word) <= (word.length > 4 ? 2U : 1U);
}

void policy_slice_show(struct text_line *line, struct policy_slice slice)
{
    size_t length = slice.length;
    if (length > SHOWN_MAX) {
        for (length = SHOWN_MAX; length > 0 && ((unsigned char)slice.start[length] & 0xC0) == 0x80;)
            length--;
    }
    text_add_bytes(line, slice.start, length);
    if (length < slice.length)
        text_add(line, "...");
}
