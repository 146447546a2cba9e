/* subject.h -- who this process is, in the policy's terms.
 *
 * Knows: user, groups, executable, name services, two files of /proc. Must not know: policies'
 * texts, or what the files say.
 */
#ifndef GPUSHIM_SHIM_SUBJECT_H
#define GPUSHIM_SHIM_SUBJECT_H

#include "policy.h"

#include <limits.h>

/* Address space; only what is used of it costs memory. */
enum {
    SUBJECT_GROUPS_MAX = 65536,          /* the kernel's own limit (NGROUPS_MAX) */
    SUBJECT_NAME_BYTES = 1024 * 1024,    /* a passwd or group entry; a group lists its members */
    SUBJECT_FILE_BYTES = 8 * 1024 * 1024 /* the kernel gives arguments and environment 6 MiB */
};

/* A file of /proc, read as a whole when it is first asked for. All zero: not asked for. */
struct subject_file {
    void *room; /* of SUBJECT_FILE_BYTES */
    struct policy_slice bytes;
    bool asked;
};

/* What a subject points into; the caller's, and one thread's. */
struct subject_memory {
    struct policy_subject subject;
    char executable[PATH_MAX];
    gid_t groups[SUBJECT_GROUPS_MAX + 1];
    char entry[SUBJECT_NAME_BYTES];
    struct subject_file cgroups, environment;
};

/* The calling process, in the caller's memory. Names are looked up and files read only when a rule
 * asks for them. What the files took is given back by subject_end(); the rest is the caller's. */
const struct policy_subject *subject_of_process(struct subject_memory *memory);
void subject_end(struct subject_memory *memory);

/* May root's files be known by owner 0 in this user namespace? Else `*overflow` is the uid that
 * stands for unmapped owners. */
bool subject_root_is_mapped(uid_t *overflow);

#endif
