/* errors.c -- see errors.h, and policy.h for policy_describe_error(). */
#include "errors.h"

#include <string.h>

static bool comes_before(struct policy_place place, const struct policy_error *error)
{
    return place.line < error->line || (place.line == error->line && place.column < error->column);
}

struct text_line *policy_add_error(struct policy_errors *errors, struct policy_place place)
{
    size_t kept = errors->count < POLICY_ERRORS_MAX ? errors->count : POLICY_ERRORS_MAX;
    size_t slot = kept;
    while (slot > 0 && comes_before(place, &errors->list[slot - 1]))
        slot--;
    struct policy_error *error = &errors->list[slot];
    memmove(error + 1, error, (kept - slot) * sizeof *error);
    errors->count++;
    error->line = place.line;
    error->column = place.column;
    text_start(&error->why);
    return &error->why;
}

struct policy_place policy_place_of(struct policy_place place, struct policy_slice whole,
                                    struct policy_slice part)
{
    place.column += (uint32_t)(part.start - whole.start);
    return place;
}

void policy_describe_error(struct text_line *line, const char *source,
                           const struct policy_error *error)
{
    text_add(line, source);
    if (error->line != 0) {
        text_add(line, ":");
        text_add_number(line, error->line);
        text_add(line, ":");
        text_add_number(line, error->column);
    }
    text_add(line, ": ");
    text_add_bytes(line, error->why.bytes, error->why.length);
}
