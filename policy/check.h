/* check.h -- everything that is wrong with a text, for whomever it holds.
 *
 * Knows: sections and which keys they take. Must not know: processes, GPUs, other texts.
 */
#ifndef GPUSHIM_POLICY_CHECK_H
#define GPUSHIM_POLICY_CHECK_H

#include "errors.h"
#include "keys.h"

/* Reports every error of the text that a section has by itself. */
void policy_check_text(const struct policy_text *text, struct policy_errors *errors);

/* Takes a header's inside apart: "rule NAME" is POLICY_SECTION_RULE, with `*name`. */
enum policy_section policy_section_of(struct policy_slice inside, struct policy_slice *name);

#endif
