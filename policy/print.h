/* print.h -- what a text says of one process, as a text again.
 *
 * Knows: how each setting is written. Must not know: for whom a rule holds, or where the text goes.
 * For commands that explain a policy, and for tests; not part of the preloaded object.
 */
#ifndef GPUSHIM_POLICY_PRINT_H
#define GPUSHIM_POLICY_PRINT_H

#include "policy.h"

/* Where the text goes, piece by piece. */
struct policy_sink {
    void (*write)(void *context, const char *bytes, size_t length);
    void *context;
};

/* Writes a text of which policy_read() makes the same settings, for whomever: a line for each
 * setting that is given, and without the match.* keys. Keys stand in the order of keys.def. */
void policy_print(const struct policy_settings *settings, const struct policy_sink *sink);

#endif
