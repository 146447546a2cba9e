/* match.c -- see match.h.
 *
 * A list holds if no `!` entry matches, and another entry matches or there are only `!` entries.
 */
#include "match.h"
#include "glob.h"
#include "proc.h"
#include "slice.h"

#include <string.h>

static const uint64_t ID_MAX = UINT32_MAX - 1; /* (uid_t)-1 is nobody */

/* Takes "! " off the entry. */
static bool take_exclusion(struct policy_slice *entry)
{
    if (entry->length == 0 || entry->start[0] != '!')
        return false;
    *entry = policy_slice_trim(policy_slice_after(*entry, 1));
    return true;
}

/* Asks of one entry of a list whether it matches. */
typedef enum policy_verdict policy_question(struct policy_slice entry,
                                            const struct policy_subject *subject);

static enum policy_verdict ask_list(struct policy_slice list, const struct policy_subject *subject,
                                    policy_question *question)
{
    struct policy_slice entry;
    bool only_exclusions = true, included = false, excluded_unknown = false, unknown = false;
    while (policy_next_item(&list, &entry)) {
        bool exclusion = take_exclusion(&entry);
        enum policy_verdict verdict = question(entry, subject);
        if (exclusion && verdict == POLICY_HOLDS)
            return POLICY_HOLDS_NOT;
        excluded_unknown |= exclusion && verdict == POLICY_HOLDS_UNKNOWN;
        unknown |= !exclusion && verdict == POLICY_HOLDS_UNKNOWN;
        included |= !exclusion && verdict == POLICY_HOLDS;
        only_exclusions &= exclusion;
    }
    if (!included && !only_exclusions)
        return unknown ? POLICY_HOLDS_UNKNOWN : POLICY_HOLDS_NOT;
    return excluded_unknown ? POLICY_HOLDS_UNKNOWN : POLICY_HOLDS;
}

static enum policy_verdict holds_if(bool holds) { return holds ? POLICY_HOLDS : POLICY_HOLDS_NOT; }

static enum policy_verdict is_exe(struct policy_slice glob, const struct policy_subject *subject)
{
    if (!subject->exe || !*subject->exe)
        return POLICY_HOLDS_UNKNOWN;
    struct policy_slice path = policy_slice_of(subject->exe);
    const char *slash = strrchr(subject->exe, '/');
    return holds_if(policy_glob(glob, path) ||
                    (slash && policy_glob(glob, policy_slice_of(slash + 1))));
}

static enum policy_verdict is_user_id(struct policy_slice entry,
                                      const struct policy_subject *subject)
{
    uint64_t id;
    if (!policy_slice_number(entry, ID_MAX, &id))
        return POLICY_HOLDS_UNKNOWN;
    return holds_if(id == subject->user);
}

static enum policy_verdict is_user(struct policy_slice entry, const struct policy_subject *subject)
{
    enum policy_verdict verdict = is_user_id(entry, subject);
    if (verdict != POLICY_HOLDS_UNKNOWN || !subject->user_name)
        return verdict;
    const char *name = subject->user_name(subject, subject->user);
    return name ? holds_if(policy_slice_is(entry, name)) : POLICY_HOLDS_UNKNOWN;
}

static enum policy_verdict is_group_id(struct policy_slice entry,
                                       const struct policy_subject *subject)
{
    uint64_t id;
    if (!policy_slice_number(entry, ID_MAX, &id))
        return POLICY_HOLDS_UNKNOWN;
    for (size_t i = 0; i < subject->group_count; i++) {
        if (id == subject->groups[i])
            return POLICY_HOLDS;
    }
    return POLICY_HOLDS_NOT;
}

static enum policy_verdict is_group(struct policy_slice entry, const struct policy_subject *subject)
{
    enum policy_verdict verdict = is_group_id(entry, subject);
    if (verdict != POLICY_HOLDS_UNKNOWN || !subject->group_name)
        return verdict;
    verdict = POLICY_HOLDS_NOT;
    for (size_t i = 0; i < subject->group_count; i++) {
        const char *name = subject->group_name(subject, subject->groups[i]);
        if (name && policy_slice_is(entry, name))
            return POLICY_HOLDS;
        if (!name)
            verdict = POLICY_HOLDS_UNKNOWN;
    }
    return verdict;
}

static enum policy_verdict is_cgroup(struct policy_slice glob, const struct policy_subject *subject)
{
    if (!subject->cgroups)
        return POLICY_HOLDS_UNKNOWN;
    struct policy_slice file = subject->cgroups(subject);
    return file.start ? holds_if(policy_cgroup_matches(file, glob)) : POLICY_HOLDS_UNKNOWN;
}

static enum policy_verdict is_variable(struct policy_slice entry,
                                       const struct policy_subject *subject)
{
    struct policy_slice file = {NULL, 0}, name, glob;
    if (subject->environment)
        file = subject->environment(subject);
    if (!file.start || !policy_split_variable(entry, &name, &glob))
        return POLICY_HOLDS_UNKNOWN;
    return holds_if(policy_variable_matches(file, name, glob));
}

/* First by numbers alone, then with names; a name may cost a question to a directory server. */
static enum policy_verdict ask_people(struct policy_slice list,
                                      const struct policy_subject *subject,
                                      policy_question *by_number, policy_question *by_name)
{
    enum policy_verdict verdict = ask_list(list, subject, by_number);
    return verdict == POLICY_HOLDS_UNKNOWN ? ask_list(list, subject, by_name) : verdict;
}

/* The lists of a rule, from the one that costs least to ask to the one that costs most. */
enum list { EXES, CGROUPS, VARIABLES, USERS, GROUPS, LISTS };

static void explain(struct text_line *why, enum list list, const struct policy_subject *subject)
{
    switch (list) {
    case EXES:
        text_add(why, "match.exe: the path of this process's executable cannot be had");
        break;
    case CGROUPS:
        text_add(why, "match.cgroup: /proc/self/cgroup cannot be read");
        break;
    case VARIABLES:
        text_add(why, "match.env: /proc/self/environ cannot be read");
        break;
    case USERS:
        text_add(why, "match.user: the name of user ");
        text_add_number(why, subject->user);
        text_add(why, " cannot be looked up; numeric ids need no look-up");
        break;
    default:
        text_add(why, "match.group: the name of one of this process's groups cannot be looked up; "
                      "numeric ids need no look-up");
        break;
    }
}

static enum policy_verdict ask(const struct policy_condition *condition, enum list list,
                               const struct policy_subject *subject)
{
    switch (list) {
    case EXES:
        return ask_list(condition->exes, subject, is_exe);
    case CGROUPS:
        return ask_list(condition->cgroups, subject, is_cgroup);
    case VARIABLES:
        return ask_list(condition->variables, subject, is_variable);
    case USERS:
        return ask_people(condition->users, subject, is_user_id, is_user);
    default:
        return ask_people(condition->groups, subject, is_group_id, is_group);
    }
}

enum policy_verdict policy_match(const struct policy_condition *condition,
                                 const struct policy_subject *subject, struct text_line *why)
{
    enum list unknown = LISTS;
    if (ask_list(condition->users, subject, is_user_id) == POLICY_HOLDS_NOT ||
        ask_list(condition->groups, subject, is_group_id) == POLICY_HOLDS_NOT)
        return POLICY_HOLDS_NOT;
    for (enum list list = EXES; list < LISTS; list++) {
        enum policy_verdict verdict = ask(condition, list, subject);
        if (verdict == POLICY_HOLDS_NOT)
            return verdict;
        if (verdict == POLICY_HOLDS_UNKNOWN && unknown == LISTS)
            unknown = list;
    }
    if (unknown == LISTS)
        return POLICY_HOLDS;
    explain(why, unknown, subject);
    return POLICY_HOLDS_UNKNOWN;
}

/* Reports entries that say nothing. Returns whether there is an entry to look at. */
static bool check_entry(struct policy_slice *entry, struct policy_place place,
                        struct policy_errors *errors)
{
    const char *why = "an empty item; expected something between the commas";
    if (take_exclusion(entry))
        why = "expected what is excluded behind !";
    if (entry->length > 0 && entry->start[0] == '!')
        why = "one ! is enough";
    else if (entry->length > 0)
        return true;
    text_add(policy_add_error(errors, place), why);
    return false;
}

void policy_check_people(struct policy_slice list, struct policy_place place,
                         struct policy_errors *errors)
{
    struct policy_slice rest = list, entry;
    uint64_t id;
    while (policy_next_item(&rest, &entry)) {
        struct policy_place at = policy_place_of(place, list, entry);
        if (!check_entry(&entry, at, errors))
            continue;
        size_t digits = 0;
        while (digits < entry.length && policy_is_digit(entry.start[digits]))
            digits++;
        if (digits == entry.length && !policy_slice_number(entry, ID_MAX, &id)) {
            struct text_line *why = policy_add_error(errors, at);
            policy_slice_show(why, entry);
            text_add(why, ": numeric ids end at 4294967294");
        }
    }
}

static void check_glob(struct policy_slice glob, struct policy_place place,
                       struct policy_errors *errors)
{
    if (policy_glob_is_valid(glob))
        return;
    struct text_line *why = policy_add_error(errors, place);
    policy_slice_show(why, glob);
    text_add(why, ": expected ] behind [");
}

void policy_check_globs(struct policy_slice list, struct policy_place place,
                        struct policy_errors *errors)
{
    struct policy_slice rest = list, entry;
    while (policy_next_item(&rest, &entry)) {
        struct policy_place at = policy_place_of(place, list, entry);
        if (check_entry(&entry, at, errors))
            check_glob(entry, at, errors);
    }
}

void policy_check_variables(struct policy_slice list, struct policy_place place,
                            struct policy_errors *errors)
{
    struct policy_slice rest = list, entry, name, glob;
    while (policy_next_item(&rest, &entry)) {
        struct policy_place at = policy_place_of(place, list, entry);
        if (!check_entry(&entry, at, errors))
            continue;
        if (policy_split_variable(entry, &name, &glob)) {
            check_glob(glob, at, errors);
            continue;
        }
        struct text_line *why = policy_add_error(errors, at);
        policy_slice_show(why, entry);
        text_add(why, ": expected NAME=glob, such as SLURM_JOB_ID=*");
    }
}
