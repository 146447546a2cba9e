/* size.c -- see size.h.
 *
 * K, M, G, T and Ki..Ti, KiB..TiB are powers of 1024, as in every tool that shows GPU memory; KB,
 * MB, GB, TB are powers of 1000. The case of letters does not matter, since no two units differ by
 * it.
 */
#include "size.h"
#include "slice.h"

#include <string.h>

enum { FRACTION_DIGITS_MAX = 6 }; /* 999999 times a TiB still fits in 64 bits */

/* Bytes in one of this unit; 0: no such unit. */
static uint64_t unit_of(struct policy_slice text)
{
    static const char letters[] = "kmgt";
    if (text.length == 0 || policy_slice_is_caseless(text, "b"))
        return 1;
    const char *letter = memchr(letters, policy_lower(text.start[0]), sizeof letters - 1);
    if (!letter)
        return 0;
    struct policy_slice rest = policy_slice_after(text, 1);
    bool decimal = policy_slice_is_caseless(rest, "b");
    if (!decimal && rest.length != 0 && !policy_slice_is_caseless(rest, "i") &&
        !policy_slice_is_caseless(rest, "ib"))
        return 0;
    uint64_t unit = 1;
    for (ptrdiff_t power = letter - letters + 1; power > 0; power--)
        unit *= decimal ? 1000 : 1024;
    return unit;
}

/* Takes ".5" from the start of the text. False: there is no number after the point. */
static bool take_fraction(struct policy_slice *text, uint64_t *digits, uint64_t *scale)
{
    size_t count = 0, used = 0;
    *digits = 0;
    *scale = 1;
    if (text->length == 0 || text->start[0] != '.')
        return true;
    struct policy_slice rest = policy_slice_after(*text, 1);
    while (count < rest.length && policy_is_digit(rest.start[count]))
        count++;
    *text = policy_slice_after(rest, count);
    for (used = count; used > 0 && rest.start[used - 1] == '0';)
        used--;
    if (used > FRACTION_DIGITS_MAX)
        *scale = 0;
    for (size_t i = 0; i < used && *scale != 0; i++) {
        *digits = *digits * 10 + (uint64_t)(rest.start[i] - '0');
        *scale *= 10;
    }
    return count > 0;
}

static bool parse_percent(uint64_t whole, bool has_fraction, struct policy_size *size,
                          const char **why)
{
    *why = "a share is a whole number from 1% to 100%";
    if (has_fraction || whole < 1 || whole > 100)
        return false;
    size->kind = POLICY_SIZE_PERCENT;
    size->value = whole;
    return true;
}

bool policy_parse_size(struct policy_slice text, struct policy_size *size, const char **why)
{
    uint64_t whole, digits, scale;
    size_t count = 0;
    while (count < text.length && policy_is_digit(text.start[count]))
        count++;
    *why = "expected a number, and a unit such as MiB or GiB";
    if (count == 0)
        return false;
    struct policy_slice rest = policy_slice_after(text, count);
    if (policy_slice_digits(text, UINT64_MAX, &whole) == 0) {
        *why = "that is more than 2^64 bytes";
        return false;
    }
    if (!take_fraction(&rest, &digits, &scale))
        return false;
    rest = policy_slice_trim(rest);
    if (policy_slice_is(rest, "%"))
        return parse_percent(whole, scale != 1, size, why);
    uint64_t unit = unit_of(rest);
    *why = "there is no such unit; units are K, M, G, T (or KiB ... TiB), KB, MB, GB, TB and %";
    if (unit == 0)
        return false;
    *why = "that is not a whole number of bytes";
    if (scale == 0 || digits * unit % scale != 0)
        return false;
    *why = "that is more than 2^64 bytes";
    uint64_t part = digits * unit / scale;
    if (whole > (UINT64_MAX - part) / unit)
        return false;
    *why = "0 is not a cap; to take all GPUs away write devices = none, for no cap memory = none";
    if (whole == 0 && part == 0)
        return false;
    size->kind = POLICY_SIZE_BYTES;
    size->value = whole * unit + part;
    return true;
}
