/* once_test.c -- once means once: among threads, after an undo, from within, and after a fork. */
#include "cmocka_all.h"
#include "once.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static struct once once;
static atomic_int runs;

static void *run(void *argument)
{
    bool done;
    (void)argument;
    if (once_begin(&once, &done)) {
        for (int i = 0; i < 100; i++)
            sched_yield();
        atomic_fetch_add(&runs, 1);
        once_done(&once);
    } else if (!done) {
        atomic_fetch_add(&runs, 1000);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, NULL), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&runs), 1);
    assert_true(once_is_done(&once));
}

static void test_from_within_and_undo(void **state)
{
    (void)state;
    struct once mine = {0};
    bool done;
    assert_true(once_begin(&mine, &done));
    assert_false(once_begin(&mine, &done)); /* the same thread comes back: no deadlock */
    assert_false(done);
    once_undo(&mine);
    assert_true(once_begin(&mine, &done));
    once_done(&mine);
    assert_false(once_begin(&mine, &done));
    assert_true(done);
}

static struct once stuck;
static atomic_int holding;

static void *hold(void *argument)
{
    bool done;
    (void)argument;
    once_begin(&stuck, &done);
    atomic_store(&holding, 1);
    for (;;)
        pause();
    return NULL;
}

/* The runner exists only in the parent: the child must not wait for it. */
static void test_fork_while_running(void **state)
{
    (void)state;
    pthread_t thread;
    int status;
    assert_int_equal(pthread_create(&thread, NULL, hold, NULL), 0);
    while (!atomic_load(&holding))
        sched_yield();
    pid_t child = fork();
    if (child == 0) {
        bool done;
        alarm(10);
        _exit(once_begin(&stuck, &done) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_from_within_and_undo),
        cmocka_unit_test(test_fork_while_running),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
