/* match.h -- for whom a rule holds.
 *
 * Knows: the lists of match.*, and which of them to ask first. Must not know: settings, or where
 * the process's identity comes from.
 */
#ifndef GPUSHIM_POLICY_MATCH_H
#define GPUSHIM_POLICY_MATCH_H

#include "errors.h"

enum policy_verdict {
    POLICY_HOLDS_NOT,
    POLICY_HOLDS,
    POLICY_HOLDS_UNKNOWN /* it hangs on a name or path that cannot be had */
};

/* The lists of one rule; start NULL: not given, which holds for everyone. */
struct policy_condition {
    struct policy_slice users, groups, exes, cgroups, variables;
};

/* The files of /proc are asked only if exe and numbers do not decide, and names only if those do
 * not either. With UNKNOWN, `why` says which. */
enum policy_verdict policy_match(const struct policy_condition *condition,
                                 const struct policy_subject *subject, struct text_line *why);

/* Report everything that is wrong with a list of users or groups, of globs, or of NAME=glob. */
void policy_check_people(struct policy_slice list, struct policy_place place,
                         struct policy_errors *errors);
void policy_check_globs(struct policy_slice list, struct policy_place place,
                        struct policy_errors *errors);
void policy_check_variables(struct policy_slice list, struct policy_place place,
                            struct policy_errors *errors);

#endif
