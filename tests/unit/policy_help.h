/* policy_help.h -- what the tests of the policy room share: a process to read texts for, and texts.
 */
#ifndef GPUSHIM_TESTS_POLICY_HELP_H
#define GPUSHIM_TESTS_POLICY_HELP_H

#include "cmocka_all.h"
#include "policy.h"

#include <stdio.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
#define KIB ((uint64_t)1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)
#define TIB (GIB * 1024)

/* User alice (1000), of groups alice (1000) and students (2000), who runs /usr/bin/python3.11. */
static inline const char *help_user_name(const struct policy_subject *self, uid_t user)
{
    (void)self;
    return user == 1000 ? "alice" : NULL;
}

static inline const char *help_group_name(const struct policy_subject *self, gid_t group)
{
    (void)self;
    return group == 1000 ? "alice" : group == 2000 ? "students" : NULL;
}

/* Of a Slurm job and of a container, on a machine with both versions of cgroups. */
static inline struct policy_slice help_cgroups(const struct policy_subject *self)
{
    static const char file[] = "4:memory,devices:/slurm/uid_1000/job_17/step_0\n"
                               "1:name=systemd:/system.slice/cri:containerd:7f\n"
                               "0::/user.slice/user-1000.slice (deleted)\n";
    (void)self;
    return (struct policy_slice){file, sizeof file - 1};
}

static inline struct policy_slice help_environment(const struct policy_subject *self)
{
    static const char file[] = "PATH=/bin\0SLURM_JOB_ID=17\0EMPTY=\0LIST=a,b\0TWICE=1\0TWICE=2\0"
                               "EQUALS=a=b\0no equals";
    (void)self;
    return (struct policy_slice){file, sizeof file - 1};
}

static inline const struct policy_subject *help_alice(void)
{
    static const gid_t groups[] = {1000, 2000};
    static const struct policy_subject alice = {.user = 1000,
                                                .groups = groups,
                                                .group_count = 2,
                                                .exe = "/usr/bin/python3.11",
                                                .user_name = help_user_name,
                                                .group_name = help_group_name,
                                                .cgroups = help_cgroups,
                                                .environment = help_environment};
    return &alice;
}

static inline struct policy_text help_file(const char *bytes)
{
    return (struct policy_text){"test.conf", bytes, strlen(bytes), false};
}

static inline struct policy_text help_inline(const char *bytes)
{
    return (struct policy_text){"GPUSHIM_POLICY", bytes, strlen(bytes), true};
}

/* The n-th error as "line:column: why"; "" if there is none. Overwritten by the next call. */
static inline const char *help_error(const struct policy_errors *errors, size_t n)
{
    static char shown[TEXT_BYTES + 32];
    shown[0] = '\0';
    if (n < errors->count && n < POLICY_ERRORS_MAX)
        snprintf(shown, sizeof shown, "%u:%u: %s", errors->list[n].line, errors->list[n].column,
                 errors->list[n].why.bytes);
    return shown;
}

/* Reads a text that has no errors, for alice. */
static inline struct policy_settings help_read(struct policy_text text)
{
    static struct policy_errors errors;
    struct policy_settings settings;
    int rc = policy_read(&text, help_alice(), &settings, &errors);
    if (rc != POLICY_OK)
        fail_msg("%.*s: %s", (int)text.length, text.bytes, help_error(&errors, 0));
    return settings;
}

/* Slices as strings; "(unset)" where start is NULL. Overwritten by the next call. */
static inline const char *help_slice(struct policy_slice slice)
{
    static char shown[256];
    snprintf(shown, sizeof shown, "%.*s", slice.start ? (int)slice.length : 7,
             slice.start ? slice.start : "(unset)");
    return shown;
}

#endif
