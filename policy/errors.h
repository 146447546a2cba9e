/* errors.h -- how the parts of the parser report. Knows: positions. Must not know: what was wrong.
 */
#ifndef GPUSHIM_POLICY_ERRORS_H
#define GPUSHIM_POLICY_ERRORS_H

#include "policy.h"

struct policy_place {
    uint32_t line, column;
};

/* Counts one more error and returns the empty line for what is to be said of it. It stays valid
 * until the next call. In whatever order they come, the first ones by position are kept, in that
 * order. */
struct text_line *policy_add_error(struct policy_errors *errors, struct policy_place place);

/* The place of `part`, which lies in `whole`, which begins at `place`. */
struct policy_place policy_place_of(struct policy_place place, struct policy_slice whole,
                                    struct policy_slice part);

#endif
