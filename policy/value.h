/* value.h -- is this a value of that key?
 *
 * Knows: what the capitals in keys.def stand for. Must not know: sections, or what a value does.
 */
#ifndef GPUSHIM_POLICY_VALUE_H
#define GPUSHIM_POLICY_VALUE_H

#include "errors.h"
#include "keys.h"

/* Reports everything that is wrong with a value, among it that this build does not enforce it. */
void policy_check_value(enum policy_key key, struct policy_slice value, struct policy_place place,
                        struct policy_errors *errors);

/* Appends "this build does not enforce it yet" and, where there is one, the value that it has. */
void policy_add_not_yet(struct text_line *line, enum policy_key key);

#endif
