/* errors.c -- see errors.h, and policy.h for policy_describe_error(). */
#include "errors.h"

struct text_line *policy_add_error(struct policy_errors *errors, struct policy_place place)
{
    size_t slot = errors->count < POLICY_ERRORS_MAX ? errors->count : POLICY_ERRORS_MAX;
    struct policy_error *error = &errors->list[slot];
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
