/* subject.h -- who this process is, in the policy's terms.
 *
 * Knows: user, groups, executable, name services. Must not know: policies' texts.
 */
#ifndef GPUSHIM_SHIM_SUBJECT_H
#define GPUSHIM_SHIM_SUBJECT_H

#include "policy.h"

/* The calling process. Points into static memory that the next call overwrites: for posture.c,
 * which asks once. User and group names are looked up only when a rule asks for them. */
const struct policy_subject *subject_of_process(void);

/* May root's files be known by owner 0 in this user namespace? Else `*overflow` is the uid that
 * stands for unmapped owners. */
bool subject_root_is_mapped(uid_t *overflow);

#endif
