/* subject.h -- who this process is, in the policy's terms.
 *
 * Knows: user, groups, executable, name services. Must not know: policies' texts.
 */
#ifndef GPUSHIM_SHIM_SUBJECT_H
#define GPUSHIM_SHIM_SUBJECT_H

#include "policy.h"

#include <limits.h>

enum {
    SUBJECT_GROUPS_MAX =
        4096, /* a process in more is matched by its first ones and by none it lacks */
    SUBJECT_NAME_BYTES = 16 * 1024 /* a passwd or group entry; a group may list many members */
};

/* What a subject points into; the caller's, and one thread's. */
struct subject_memory {
    struct policy_subject subject;
    char executable[PATH_MAX];
    gid_t groups[SUBJECT_GROUPS_MAX + 1];
    char entry[SUBJECT_NAME_BYTES];
};

/* The calling process, in the caller's memory. User and group names are looked up only when a rule
 * asks for them. */
const struct policy_subject *subject_of_process(struct subject_memory *memory);

/* May root's files be known by owner 0 in this user namespace? Else `*overflow` is the uid that
 * stands for unmapped owners. */
bool subject_root_is_mapped(uid_t *overflow);

#endif
