/* visible.h -- CUDA_VISIBLE_DEVICES, read by the driver's rules but against the grant.
 *
 * Knows: the variable's grammar ("CUDA C++ Programming Guide", environment variables; what is not
 * written there is practice, facts: docs/design notes). Must not know: the environment, CUDA, NVML.
 */
#ifndef GPUSHIM_SHIM_VISIBLE_H
#define GPUSHIM_SHIM_VISIBLE_H

#include "policy.h"

/* Chooses from the granted GPUs, in the order that the value lists them: fills `chosen` with
 * positions in `grants` and returns how many. `value` NULL (unset) is all of them, "" none; integer
 * i is the i-th granted GPU or, where `physical`, GPU i of `gpus`; that, or a UUID or unambiguous
 * prefix, must be of a granted one. What follows the first entry that is invalid, absent or of
 * another form than the first is dropped; a GPU named twice makes the whole list empty. Pure;
 * re-entrant. */
size_t visible_choose(const char *value, bool physical, const struct policy_gpu *gpus,
                      const struct policy_grant *grants, size_t grant_count, uint8_t *chosen);

#endif
