/* size.h -- amounts of memory as people write them. Knows: units. Must not know: what is capped. */
#ifndef GPUSHIM_POLICY_SIZE_H
#define GPUSHIM_POLICY_SIZE_H

#include "policy.h"

/* Reads "8GiB", "8G", "8GB", "1.5GiB", "4096" (bytes) or "40%". On success fills kind and value and
 * returns true; else `*why` says what is wrong with it. `none` is not a size. */
bool policy_parse_size(struct policy_slice text, struct policy_size *size, const char **why);

#endif
