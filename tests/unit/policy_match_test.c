/* policy_match_test.c -- for whom a rule holds; which names are looked up, which files read, and
 * when; globs. */
#include "glob.h"
#include "policy_help.h"
#include "proc.h"

#include <time.h>

static struct policy_errors errors;
static int look_ups;

static const char *counting_user(const struct policy_subject *self, uid_t user)
{
    look_ups++;
    return help_user_name(self, user);
}

static const char *counting_group(const struct policy_subject *self, gid_t group)
{
    look_ups++;
    return help_group_name(self, group);
}

static const char *no_name(const struct policy_subject *self, unsigned int id)
{
    (void)self;
    (void)id;
    look_ups++;
    return NULL;
}

/* Does a rule with this condition hold for alice? 1, 0, or -1: cannot be told. */
static int holds(const char *condition, const struct policy_subject *subject)
{
    char bytes[256];
    struct policy_settings settings;
    snprintf(bytes, sizeof bytes, "[rule r]\n%s\n", condition);
    struct policy_text text = help_file(bytes);
    look_ups = 0;
    int rc = policy_read(&text, subject, &settings, &errors);
    if (rc == POLICY_UNRESOLVED)
        return -1;
    assert_int_equal(rc, POLICY_OK);
    return settings.rule.start != NULL;
}

static struct policy_slice counting_cgroups(const struct policy_subject *self)
{
    look_ups++;
    return help_cgroups(self);
}

static struct policy_slice counting_environment(const struct policy_subject *self)
{
    look_ups++;
    return help_environment(self);
}

static struct policy_slice no_file(const struct policy_subject *self)
{
    (void)self;
    look_ups++;
    return (struct policy_slice){NULL, 0};
}

static void test_who(void **state)
{
    (void)state;
    static const struct {
        const char *condition;
        int holds, look_ups;
    } rows[] = {
        {"", 1, 0},
        {"match.user = alice", 1, 1},
        {"match.user = bob", 0, 1},
        {"match.user = Alice", 0, 1},
        {"match.user = bob, alice", 1, 2},
        {"match.user = 1000", 1, 0},
        {"match.user = 1001", 0, 0},
        {"match.user = bob, 1000", 1, 0}, /* numbers first */
        {"match.user = !alice", 0, 1},
        {"match.user = !bob", 1, 1},
        {"match.user = !1000, alice", 0, 0},
        {"match.user = !bob, !carol", 1, 2},
        {"match.user = alice, !bob", 1, 2},
        {"match.user = carol, !bob", 0, 2},
        {"match.group = students", 1, 2},
        {"match.group = alice", 1, 1},
        {"match.group = 2000", 1, 0},
        {"match.group = staff", 0, 2},
        {"match.group = !students", 0, 2},
        {"match.group = !staff", 1, 2},
        {"match.group = !2000", 0, 0},
        {"match.group = students, !alice", 0, 3}, /* students: both groups; alice: the first */
        {"match.exe = python*", 1, 0},
        {"match.exe = python", 0, 0},
        {"match.exe = /usr/bin/python*", 1, 0},
        {"match.exe = /usr/bin/*", 1, 0},
        {"match.exe = */python3.[0-9]*", 1, 0},
        {"match.exe = bin/python*", 0, 0},
        {"match.exe = !python*", 0, 0},
        {"match.exe = !jupyter*", 1, 0},
        {"match.exe = jupyter*, python?.??", 1, 0},
        {"match.exe = jupyter*\nmatch.user = alice", 0, 0}, /* no name is asked for */
        {"match.user = alice\nmatch.group = 3000", 0, 0},
        {"match.user = alice\nmatch.group = students\nmatch.exe = python*", 1, 3},
    };
    struct policy_subject alice = *help_alice();
    alice.user_name = counting_user;
    alice.group_name = counting_group;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (holds(rows[i].condition, &alice) != rows[i].holds || look_ups != rows[i].look_ups)
            fail_msg("%s: %d look-ups", rows[i].condition, look_ups);
    }
}

static void test_cgroups_and_environment(void **state)
{
    (void)state;
    static const struct {
        const char *condition;
        int holds, look_ups;
    } rows[] = {
        {"match.cgroup = */job_17/*", 1, 1},
        {"match.cgroup = /slurm/uid_1000/job_17/step_0", 1, 1},
        {"match.cgroup = /slurm/uid_1000/job_1", 0, 1},
        {"match.cgroup = job_17", 0, 1}, /* a glob is for the whole path */
        {"match.cgroup = */job_[0-9][0-9]/*", 1, 1},
        {"match.cgroup = */cri:containerd:7f", 1, 1}, /* colons of the path's own */
        {"match.cgroup = containerd:7f", 0, 1},
        {"match.cgroup = *memory*", 0, 1}, /* controllers are no path */
        {"match.cgroup = /user.slice/user-1000.slice", 1, 1},
        {"match.cgroup = *deleted*", 0, 1},
        {"match.cgroup = */none, */job_17/*", 1, 2},
        {"match.cgroup = !*/job_17/*", 0, 1},
        {"match.cgroup = !*/job_18/*", 1, 1},
        {"match.cgroup = /slurm/*, !*/step_0", 0, 2},
        {"match.env = SLURM_JOB_ID=17", 1, 1},
        {"match.env = SLURM_JOB_ID=*", 1, 1},
        {"match.env = SLURM_JOB_ID = 1? ", 1, 1},
        {"match.env = SLURM_JOB_ID=1", 0, 1},
        {"match.env = SLURM_JOB_ID=", 0, 1},
        {"match.env = slurm_job_id=*", 0, 1},
        {"match.env = SLURM_JOB=*", 0, 1}, /* the beginning of a name is another name */
        {"match.env = JOB_ID=*", 0, 1},
        {"match.env = EMPTY=", 1, 1},
        {"match.env = EMPTY=*", 1, 1},
        {"match.env = EMPTY=?*", 0, 1},
        {"match.env = UNSET=*", 0, 1},
        {"match.env = LIST=a?b", 1, 1},
        {"match.env = TWICE=1", 1, 1}, /* the first counts */
        {"match.env = TWICE=2", 0, 1},
        {"match.env = EQUALS=a=b", 1, 1},
        {"match.env = no equals=*", 0, 1},
        {"match.env = UNSET=*, PATH=/bin", 1, 2},
        {"match.env = !SLURM_JOB_ID=*", 0, 1},
        {"match.env = !UNSET=*", 1, 1},
        {"match.env = SLURM_JOB_ID=*, !PATH=/bin", 0, 2},
        /* read only where exe and numbers do not decide; names only where the files do not */
        {"match.cgroup = *\nmatch.env = PATH=*\nmatch.exe = jupyter*", 0, 0},
        {"match.cgroup = *\nmatch.env = PATH=*\nmatch.user = 1001", 0, 0},
        {"match.cgroup = *\nmatch.env = PATH=*\nmatch.group = 3000", 0, 0},
        {"match.cgroup = none\nmatch.env = PATH=*\nmatch.user = bob", 0, 1},
        {"match.cgroup = *\nmatch.env = UNSET=*\nmatch.user = alice", 0, 2},
        {"match.cgroup = *\nmatch.env = PATH=*\nmatch.user = alice", 1, 3},
    };
    struct policy_subject alice = *help_alice();
    alice.user_name = counting_user;
    alice.cgroups = counting_cgroups;
    alice.environment = counting_environment;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (holds(rows[i].condition, &alice) != rows[i].holds || look_ups != rows[i].look_ups)
            fail_msg("%s: %d look-ups", rows[i].condition, look_ups);
    }
}

/* A rule that is not reached asks for nothing. */
static void test_files_of_rules_not_reached(void **state)
{
    (void)state;
    struct policy_settings settings;
    struct policy_subject alice = *help_alice();
    const struct policy_text text =
        help_file("[rule a]\n[rule b]\nmatch.cgroup = *\nmatch.env = PATH=*\n");
    alice.cgroups = counting_cgroups;
    alice.environment = no_file;
    look_ups = 0;
    assert_int_equal(policy_read(&text, &alice, &settings, &errors), POLICY_OK);
    assert_int_equal(look_ups, 0);
}

static void test_files_that_cannot_be_had(void **state)
{
    (void)state;
    static const struct {
        const char *condition, *why;
    } rows[] = {
        {"match.cgroup = *", "1:1: rule r: match.cgroup: /proc/self/cgroup cannot be read"},
        {"match.cgroup = !*", "1:1: rule r: match.cgroup: /proc/self/cgroup cannot be read"},
        {"match.env = PATH=*", "1:1: rule r: match.env: /proc/self/environ cannot be read"},
        {"match.env = !PATH=*", "1:1: rule r: match.env: /proc/self/environ cannot be read"},
    };
    struct policy_subject alice = *help_alice();
    alice.cgroups = alice.environment = NULL;
    for (int given = 0; given < 2; given++) {
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            assert_int_equal(holds(rows[i].condition, &alice), -1);
            assert_string_equal(help_error(&errors, 0), rows[i].why);
        }
        assert_int_equal(holds("match.cgroup = *\nmatch.user = bob", &alice), 0);
        alice.cgroups = alice.environment = no_file;
    }
}

/* Files as no kernel writes them. */
static void test_odd_files(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        size_t length;
        bool matches;
    } rows[] = {
        {"", 0, false},           {"\n", 1, false},       {"0::/", 4, true}, /* no line end */
        {"0::", 3, false},        {"0:", 2, false},       {"0", 1, false},
        {":::/", 4, false}, /* a path begins with a slash */
        {"0::x\n::/\n", 9, true}, {"\0\0::/\0", 6, true}, {"0:: (deleted)", 13, false},
    };
    const struct policy_slice any = {"*", 1}, name = {"A", 1};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct policy_slice file = {rows[i].file, rows[i].length};
        if (policy_cgroup_matches(file, any) != rows[i].matches)
            fail_msg("%s", rows[i].file);
    }
    assert_false(policy_variable_matches((struct policy_slice){"", 0}, name, any));
    assert_false(policy_variable_matches((struct policy_slice){"\0\0", 2}, name, any));
    assert_true(policy_variable_matches((struct policy_slice){"\0A=", 3}, name, any));
    assert_false(policy_variable_matches((struct policy_slice){"=A=\0A", 5}, name, any));
}

static void test_names_that_cannot_be_had(void **state)
{
    (void)state;
    static const struct {
        const char *condition;
        int holds;
    } rows[] = {
        {"match.user = 1000", 1},
        {"match.user = 1000, bob", 1},
        {"match.user = alice", -1},
        {"match.user = !bob", -1},
        {"match.user = !1000, bob", 0},
        {"match.group = 2000, staff", 1},
        {"match.group = staff", -1},
        {"match.user = alice\nmatch.exe = jupyter*", 0},
        {"match.user = alice\nmatch.group = 3000", 0},
        {"match.user = 1001\nmatch.group = students", 0},
    };
    struct policy_subject alice = *help_alice();
    alice.user_name = no_name;
    alice.group_name = no_name;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (holds(rows[i].condition, &alice) != rows[i].holds)
            fail_msg("%s", rows[i].condition);
    }
    assert_int_equal(holds("match.user = alice", &alice), -1);
    assert_int_equal(errors.count, 1);
    assert_string_equal(
        help_error(&errors, 0),
        "1:1: rule r: match.user: the name of user 1000 cannot be looked up; numeric "
        "ids need no look-up");
    assert_int_equal(holds("match.group = staff", &alice), -1);
    assert_string_equal(help_error(&errors, 0),
                        "1:1: rule r: match.group: the name of one of this process's groups cannot "
                        "be looked up; numeric ids need no look-up");
    alice.exe = "";
    assert_int_equal(holds("match.exe = python*", &alice), -1);
    assert_string_equal(
        help_error(&errors, 0),
        "1:1: rule r: match.exe: the path of this process's executable cannot be had");
    assert_int_equal(holds("match.exe = python*\nmatch.user = 1001", &alice), 0);
}

/* One of several groups without a name: found by the others, or it cannot be told. */
static void test_nameless_group(void **state)
{
    (void)state;
    static const gid_t groups[] = {1000, 5000, 2000};
    struct policy_subject alice = *help_alice();
    alice.groups = groups;
    alice.group_count = 3;
    assert_int_equal(holds("match.group = students", &alice), 1);
    assert_int_equal(holds("match.group = staff", &alice), -1);
    assert_int_equal(holds("match.group = !students", &alice), 0);
    assert_int_equal(holds("match.group = !staff", &alice), -1);
}

static void test_globs(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool matches;
    } rows[] = {
        {"", "", true},           {"", "a", false},
        {"*", "", true},          {"*", "/usr/bin/x", true},
        {"**", "a", true},        {"a", "a", true},
        {"a", "A", false},        {"a*", "abc", true},
        {"*c", "abc", true},      {"*b*", "abc", true},
        {"a*c", "ab", false},     {"a*b*c", "aXbYbZc", true},
        {"*ab", "aab", true},     {"*.so.?", "libx.so.1", true},
        {"?", "", false},         {"?", "a", true},
        {"?", "ab", false},       {"?", "\xC3\xA4", true}, /* one character of two bytes */
        {"?", "\xFF", true},                               /* paths need not be UTF-8 */
        {"[abc]", "b", true},     {"[abc]", "d", false},
        {"[a-c]", "b", true},     {"[a-c]", "-", false},
        {"[a-]", "-", true},      {"[-a]", "-", true},
        {"[!a-c]", "b", false},   {"[!a-c]", "d", true},
        {"[^a-c]", "d", true},    {"[]]", "]", true},
        {"[!]]", "]", false},     {"[!]]", "a", true},
        {"[*]", "*", true},       {"[*]", "a", false},
        {"[?]x", "?x", true},     {"[\xC3\xA0-\xC3\xBF]", "\xC3\xA4", true},
        {"[a", "[a", true},       {"python[23]*", "python3.11", true},
        {"*[0-9]", "a1b2", true}, {"*[0-9]", "a1b", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct policy_slice pattern = {rows[i].pattern, strlen(rows[i].pattern)};
        struct policy_slice text = {rows[i].text, strlen(rows[i].text)};
        if (policy_glob(pattern, text) != rows[i].matches)
            fail_msg("%s on %s", rows[i].pattern, rows[i].text);
    }
}

/* a*a*a*...b over aaa...: exponential if stars are tried against each other. */
static void test_hostile_glob(void **state)
{
    (void)state;
    static char pattern[4001], text[4097];
    struct timespec before, after;
    for (size_t i = 0; i < 4000; i += 2)
        memcpy(pattern + i, "a*", 2);
    pattern[4000] = 'b';
    memset(text, 'a', sizeof text);
    clock_gettime(CLOCK_MONOTONIC, &before);
    assert_false(policy_glob((struct policy_slice){pattern, sizeof pattern},
                             (struct policy_slice){text, sizeof text}));
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_true(after.tv_sec - before.tv_sec < 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who),
        cmocka_unit_test(test_cgroups_and_environment),
        cmocka_unit_test(test_files_of_rules_not_reached),
        cmocka_unit_test(test_files_that_cannot_be_had),
        cmocka_unit_test(test_odd_files),
        cmocka_unit_test(test_names_that_cannot_be_had),
        cmocka_unit_test(test_nameless_group),
        cmocka_unit_test(test_globs),
        cmocka_unit_test(test_hostile_glob),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
