/* settings.h -- values of a text without errors become settings. Knows: both. Must not know: rules.
 */
#ifndef GPUSHIM_POLICY_SETTINGS_H
#define GPUSHIM_POLICY_SETTINGS_H

#include "errors.h"
#include "keys.h"

/* Stores one value; `position` is the K of memory.K. Keys that only say what this build does
 * anyway, and match.*, store nothing. */
void policy_store(struct policy_settings *settings, enum policy_key key, unsigned int position,
                  struct policy_slice value, struct policy_place place);

/* The words that were stored; "" for what is not set. */
const char *policy_switch_word(enum policy_switch value);
const char *policy_level_word(enum policy_log_level level);

#endif
