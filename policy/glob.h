/* glob.h -- the patterns of match.exe. Knows: *, ?, [a-z]. Must not know: what is matched. */
#ifndef GPUSHIM_POLICY_GLOB_H
#define GPUSHIM_POLICY_GLOB_H

#include "policy.h"

/* Does the whole text match? `*` is any characters, '/' among them, `?` any one, `[a-z]` one of
 * these and `[!a-z]` one of the others. At most pattern length times text length steps, whatever
 * they are. */
bool policy_glob(struct policy_slice pattern, struct policy_slice text);

/* Is every [ closed? policy_glob() takes one that is not for itself. */
bool policy_glob_is_valid(struct policy_slice pattern);

#endif
