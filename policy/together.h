/* together.h -- values that are right each by itself and do not go together.
 *
 * Knows: cuda_visible_devices and nvml. Must not know: which rule holds for whom.
 */
#ifndef GPUSHIM_POLICY_TOGETHER_H
#define GPUSHIM_POLICY_TOGETHER_H

#include "errors.h"

/* Reports every section that says, by itself or with [default] beneath it,
 * `cuda_visible_devices = physical` and `nvml = follow`. Of texts in one another see
 * policy_fit(). */
void policy_check_together(const struct policy_text *text, struct policy_errors *errors);

#endif
