/* track_test.c -- the table of live things: what is put is taken once, at any size, by any thread.
 */
#include "cmocka_all.h"
#include "track.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { MILLION = 1000000, THREADS = 4, ROUNDS = 20000 };

static struct track_entry entry_of(uint64_t key)
{
    return (struct track_entry){
        .key = key, .bytes = key * 3, .owner = key % 7, .device = 5, .kind = 2, .count = 9};
}

static void test_what_is_put_is_taken_once(void **state)
{
    (void)state;
    struct track_table table = {0};
    struct track_entry in = entry_of(0x7f0000000200), out;
    assert_false(track_take(&table, in.key, &out)); /* empty */
    assert_true(track_put(&table, &in));
    assert_true(track_take(&table, in.key, &out));
    assert_int_equal(out.key, in.key);
    assert_int_equal(out.bytes, in.bytes);
    assert_int_equal(out.owner, in.owner);
    assert_int_equal(out.device, 5);
    assert_int_equal(out.kind, 2);
    assert_int_equal(out.count, 9);
    assert_false(track_take(&table, in.key, &out));
    track_forget(&table);
}

static void test_what_is_read_stays(void **state)
{
    (void)state;
    struct track_table table = {0};
    struct track_entry in = entry_of(0x7f0000000200), out;
    assert_false(track_find(&table, in.key, &out));
    track_recount(&table, in.key, 10); /* not there: nothing */
    assert_true(track_put(&table, &in));
    assert_true(track_find(&table, in.key, &out));
    assert_int_equal(out.bytes, in.bytes);
    assert_int_equal(out.owner, in.owner);
    assert_int_equal(out.count, 9);
    track_recount(&table, in.key, 10);
    assert_true(track_find(&table, in.key, &out));
    assert_int_equal(out.count, 10);
    assert_true(track_take(&table, in.key, &out));
    assert_int_equal(out.count, 10);
    assert_false(track_find(&table, in.key, &out));
    track_forget(&table);
}

static void test_keys_at_the_edges(void **state)
{
    (void)state;
    struct track_table table = {0};
    struct track_entry out;
    const uint64_t keys[] = {0, 1, 2, ((uint64_t)1 << 63) - 3};
    for (size_t i = 0; i < 4; i++) {
        struct track_entry in = entry_of(keys[i]);
        assert_true(track_put(&table, &in));
    }
    for (size_t i = 0; i < 4; i++)
        assert_true(track_take(&table, keys[i], &out) && out.key == keys[i]);
    struct track_entry beyond = entry_of((uint64_t)1 << 63);
    assert_false(track_put(&table, &beyond)); /* refused, not mistaken for another */
    assert_false(track_take(&table, beyond.key, &out));
    track_forget(&table);
}

static void test_a_million(void **state)
{
    (void)state;
    struct track_table table = {0};
    struct track_entry out;
    for (uint64_t i = 1; i <= MILLION; i++) {
        struct track_entry in = entry_of(i << 21); /* 2 MiB apart, as a driver hands them out */
        assert_true(track_put(&table, &in));
    }
    for (uint64_t i = MILLION; i >= 1; i--)
        assert_true(track_take(&table, i << 21, &out) && out.bytes == (i << 21) * 3);
    assert_false(track_take(&table, 1 << 21, &out));
    track_forget(&table);
}

static int visited;

static bool drop_even(const struct track_entry *entry)
{
    visited++;
    return (entry->key & 1024) != 0;
}

static bool drop(const struct track_entry *entry)
{
    (void)entry;
    visited++;
    return false;
}

static void test_the_end_of_an_owner(void **state)
{
    (void)state;
    struct track_table table = {0};
    struct track_entry out;
    for (uint64_t i = 0; i < 100; i++) {
        struct track_entry in = {.key = i * 512, .bytes = 1, .owner = i < 60 ? 11 : 22, .kind = 2};
        assert_true(track_put(&table, &in));
    }
    track_set_aside(&table, track_owner(11), 1);
    assert_false(track_take(&table, 0, &out)); /* its address may come again */
    struct track_entry again = {.key = 0, .bytes = 77, .owner = 22, .kind = 2};
    assert_true(track_put(&table, &again));
    assert_true(track_take(&table, 99 * 512, &out));       /* others are untouched */
    assert_true(track_take_aside(&table, 59 * 512, &out)); /* over before the rest is settled */
    assert_int_equal(out.key, 59 * 512);
    assert_false(track_take_aside(&table, 59 * 512, &out));
    assert_false(track_take_aside(&table, 70 * 512, &out)); /* it is another's */
    visited = 0;
    track_settle(&table, track_owner(11), 1, drop_even);
    assert_int_equal(visited, 59);
    assert_true(track_take(&table, 0, &out));
    assert_int_equal(out.bytes, 77); /* the new one, not the old */
    assert_false(track_take(&table, 512, &out));
    assert_true(track_take(&table, 2 * 512, &out));
    assert_int_equal(out.kind, 2); /* kept */
    assert_int_equal(out.count, 1);
    assert_true(track_take_aside(&table, 6 * 512, &out)); /* it was set aside */
    assert_false(track_take_aside(&table, 71 * 512, &out));
    track_forget(&table);
}

/* A context was destroyed, and another has its handle and is being destroyed before the first end
 * is settled: what the second holds is still alive. */
static void test_two_ends_under_one_name(void **state)
{
    (void)state;
    struct track_table table = {0};
    const struct track_entry first = {.key = 512, .owner = 11}, second = {.key = 1024, .owner = 11};
    assert_true(track_put(&table, &first));
    track_set_aside(&table, track_owner(11), 1);
    assert_true(track_put(&table, &second));
    track_set_aside(&table, track_owner(11), 2);
    visited = 0;
    track_settle(&table, track_owner(11), 1, drop);
    assert_int_equal(visited, 1);
    track_settle(&table, track_owner(11), 2, drop);
    assert_int_equal(visited, 2);
    track_forget(&table);
}

static struct track_table shared;
static atomic_long taken;

static void *churn(void *argument)
{
    const uint64_t mine = (uint64_t)(uintptr_t)argument << 40;
    struct track_entry out;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        struct track_entry in = entry_of(mine + i * 512);
        if (!track_put(&shared, &in))
            abort();
        if (i > 50 && track_take(&shared, mine + (i - 50) * 512, &out) &&
            out.key == mine + (i - 50) * 512)
            atomic_fetch_add(&taken, 1);
    }
    for (uint64_t i = ROUNDS - 49; i <= ROUNDS; i++) {
        if (track_take(&shared, mine + i * 512, &out))
            atomic_fetch_add(&taken, 1);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&taken), THREADS * ROUNDS);
}

/* Several threads free the same pointers: each entry is had by exactly one. */
static void *take_all(void *argument)
{
    struct track_entry out;
    (void)argument;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        if (track_take(&shared, i * 512, &out))
            atomic_fetch_add(&taken, 1);
    }
    return NULL;
}

static void test_taken_by_one(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    atomic_store(&taken, 0);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        struct track_entry in = entry_of(i * 512);
        assert_true(track_put(&shared, &in));
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_all, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&taken), ROUNDS);
    track_forget(&shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_put_is_taken_once),
        cmocka_unit_test(test_what_is_read_stays),
        cmocka_unit_test(test_keys_at_the_edges),
        cmocka_unit_test(test_a_million),
        cmocka_unit_test(test_the_end_of_an_owner),
        cmocka_unit_test(test_two_ends_under_one_name),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_taken_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
