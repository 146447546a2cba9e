/* names.h -- the names of a text's rules, to find those that are given twice.
 *
 * Knows: where the names lie. Must not know: what else a header can be. With the promises of
 * policy.h; n names cost n log n comparisons, whatever they are.
 */
#ifndef GPUSHIM_POLICY_NAMES_H
#define GPUSHIM_POLICY_NAMES_H

#include "errors.h"

/* Remembers the name of a rule of this text whose header stands at `place`. */
void policy_note_name(struct policy_names *names, const struct policy_text *text,
                      struct policy_slice name, struct policy_place place);

/* Reports every name but the first of those that are the same. Leaves the names in another order.
 */
void policy_check_names(const struct policy_text *text, struct policy_errors *errors);

#endif
