/* proc.h -- what rules ask of /proc/self/cgroup and /proc/self/environ.
 *
 * Knows: how the kernel writes the two, and NAME=glob. Must not know: how they are read, or lists.
 * Pure functions, with the promises of policy.h; any bytes will do for a file.
 */
#ifndef GPUSHIM_POLICY_PROC_H
#define GPUSHIM_POLICY_PROC_H

#include "policy.h"

/* Does the glob match a path of this file? Its lines are "N:controllers:path", with version 2
 * "0::/path" (cgroups(7)). Lines of another form have no path. */
bool policy_cgroup_matches(struct policy_slice file, struct policy_slice glob);

/* Does the environment have this variable, with a value that the glob matches? Where it is given
 * twice the first counts, as getenv() has it. */
bool policy_variable_matches(struct policy_slice environment, struct policy_slice name,
                             struct policy_slice glob);

/* Takes "NAME=glob" apart, blanks around either dropped. False: there is no name, or no "=". */
bool policy_split_variable(struct policy_slice entry, struct policy_slice *name,
                           struct policy_slice *glob);

#endif
