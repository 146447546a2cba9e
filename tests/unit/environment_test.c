/* environment_test.c -- the swap of one variable leaves the environment as other code left it. */
#include "cmocka_all.h"
#include "environment.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char ours[] = "SWAPPED=ours";

static void test_present(void **state)
{
    (void)state;
    struct environment_swap swap;
    setenv("SWAPPED", "theirs", 1);
    const char *before = getenv("SWAPPED");
    assert_true(environment_swap_in(&swap, ours));
    assert_string_equal(getenv("SWAPPED"), "ours");
    environment_swap_out(&swap);
    assert_ptr_equal(getenv("SWAPPED"), before); /* the very string, not a copy */
}

static void test_absent(void **state)
{
    (void)state;
    struct environment_swap swap;
    unsetenv("SWAPPED");
    assert_true(environment_swap_in(&swap, ours));
    assert_string_equal(getenv("SWAPPED"), "ours");
    environment_swap_out(&swap);
    assert_null(getenv("SWAPPED"));
}

static void test_set_meanwhile(void **state)
{
    (void)state;
    struct environment_swap swap;
    for (int present = 0; present < 2; present++) {
        unsetenv("SWAPPED");
        if (present)
            setenv("SWAPPED", "theirs", 1);
        assert_true(environment_swap_in(&swap, ours));
        setenv("SWAPPED", "newer", 1);
        environment_swap_out(&swap);
        assert_string_equal(getenv("SWAPPED"), "newer"); /* not undone */
    }
}

/* Another thread's setenv may move the whole array while ours is in it. */
static void test_array_moved_meanwhile(void **state)
{
    (void)state;
    struct environment_swap swap;
    char name[32];
    setenv("SWAPPED", "theirs", 1);
    assert_true(environment_swap_in(&swap, ours));
    for (int i = 0; i < 200; i++) {
        strcpy(name, "FILLER_xxx");
        name[7] = (char)('0' + i / 100), name[8] = (char)('0' + i / 10 % 10),
        name[9] = (char)('0' + i % 10);
        setenv(name, "1", 1);
    }
    environment_swap_out(&swap);
    assert_string_equal(getenv("SWAPPED"), "theirs");
    assert_string_equal(getenv("FILLER_150"), "1");
}

static void test_a_name_that_only_begins_so(void **state)
{
    (void)state;
    struct environment_swap swap;
    unsetenv("SWAPPED");
    setenv("SWAPPED_TOO", "other", 1);
    assert_true(environment_swap_in(&swap, ours));
    assert_string_equal(getenv("SWAPPED_TOO"), "other");
    environment_swap_out(&swap);
    assert_string_equal(getenv("SWAPPED_TOO"), "other");
    assert_null(getenv("SWAPPED"));
}

/* In a child, since glibc may free the array that `environ` no longer points to. */
static void test_no_environment(void **state)
{
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct environment_swap swap;
        environ = NULL;
        bool in = environment_swap_in(&swap, ours);
        const char *seen = getenv("SWAPPED");
        bool right = in && seen && strcmp(seen, "ours") == 0;
        environment_swap_out(&swap);
        _exit(right && !getenv("SWAPPED") ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_present),
        cmocka_unit_test(test_absent),
        cmocka_unit_test(test_set_meanwhile),
        cmocka_unit_test(test_array_moved_meanwhile),
        cmocka_unit_test(test_a_name_that_only_begins_so),
        cmocka_unit_test(test_no_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
