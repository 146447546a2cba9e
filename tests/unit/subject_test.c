/* subject_test.c -- who the process is: all of its groups; and the two files of /proc that rules
 * ask about, whole, however long, as they were at exec, read once, or not to be had. Run by itself,
 * it starts itself with a large environment.
 */
#include "cmocka_all.h"
#include "subject.h"

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 100 * 1000, VARIABLES = 16 };

static struct subject_memory memory;

static bool has(struct policy_slice file, const char *string)
{
    return memmem(file.start, file.length, string, strlen(string)) != NULL;
}

static void test_cgroups(void **state)
{
    (void)state;
    static char expected[1 << 16];
    const struct policy_subject *subject = subject_of_process(&memory);
    FILE *stream = fopen("/proc/self/cgroup", "rb");
    size_t length = stream ? fread(expected, 1, sizeof expected, stream) : 0;
    assert_non_null(stream);
    (void)fclose(stream);
    struct policy_slice file = subject->cgroups(subject);
    assert_int_equal(file.length, length);
    assert_memory_equal(file.start, expected, length);
    assert_ptr_equal(subject->cgroups(subject).start, file.start); /* not read again */
    subject_end(&memory);
    assert_null(memory.cgroups.room);
}

static void test_large_environment(void **state)
{
    (void)state;
    const struct policy_subject *subject = subject_of_process(&memory);
    assert_null(memory.environment.room); /* not before it is asked for */
    struct policy_slice file = subject->environment(subject);
    assert_true(file.length > (size_t)LARGE * VARIABLES);
    assert_true(has(file, "GPUSHIM_TEST_LAST=1"));
    assert_int_equal(setenv("GPUSHIM_TEST_LATER", "1", 1), 0);
    subject_end(&memory);
    file = subject->environment(subject);
    assert_false(has(file, "GPUSHIM_TEST_LATER")); /* as it was at exec */
    subject_end(&memory);
}

/* As many groups as the kernel gives a process: a rule for the last of them must not be missed. */
static void test_many_groups(void **state)
{
    (void)state;
    static gid_t groups[65536];
    int status;
    if (geteuid() != 0)
        skip();
    for (unsigned int i = 0; i < 65536; i++)
        groups[i] = 100000 + i;
    pid_t child = fork();
    if (child == 0) {
        if (setgroups(65536, groups) != 0)
            _exit(77);
        const struct policy_subject *subject = subject_of_process(&memory);
        _exit(subject->group_count != 65537 || subject->groups[65536] != 165535);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

/* Who has changed the user may not read it: then there is no file, rather than an empty one. */
static void test_not_to_be_had(void **state)
{
    (void)state;
    int status;
    if (geteuid() != 0)
        skip();
    pid_t child = fork();
    if (child == 0) {
        const struct policy_subject *subject = subject_of_process(&memory);
        _exit(setuid(65534) != 0 || subject->environment(subject).start != NULL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cgroups),
        cmocka_unit_test(test_large_environment),
        cmocka_unit_test(test_many_groups),
        cmocka_unit_test(test_not_to_be_had),
    };
    static char value[LARGE + 1];
    if (!getenv("GPUSHIM_TEST_LAST")) {
        memset(value, 'x', LARGE);
        for (int i = 0; i < VARIABLES; i++) {
            char name[32];
            snprintf(name, sizeof name, "GPUSHIM_TEST_%d", i);
            setenv(name, value, 1);
        }
        setenv("GPUSHIM_TEST_LAST", "1", 1);
        execv("/proc/self/exe", argv);
        return 127;
    }
    (void)argc;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
