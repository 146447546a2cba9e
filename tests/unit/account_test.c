/* account_test.c -- caps: exact at the edge, never passed by racing threads, saturating reports. */
#include "account.h"
#include "cmocka_all.h"

#include <pthread.h>
#include <stdatomic.h>

#define MIB ((uint64_t)1 << 20)

static void test_granule(void **state)
{
    (void)state;
    static const struct {
        uint64_t asked, taken;
    } rows[] = {
        {1, 512},
        {512, 512},
        {513, 1024},
        {MIB - 1, MIB},
        {MIB, 2 * MIB},
        {2 * MIB, 2 * MIB},
        {2 * MIB + 1, 4 * MIB},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(account_granule(rows[i].asked), rows[i].taken);
    assert_true(account_granule(UINT64_MAX) > UINT64_MAX - 2 * MIB); /* saturates, does not wrap */
    assert_true(account_granule(UINT64_MAX - 5) >= UINT64_MAX - 2 * MIB);
}

static void test_the_edge(void **state)
{
    (void)state;
    account_set_cap(3, 10 * MIB);
    assert_true(account_charge(3, 4 * MIB));
    assert_false(account_charge(3, 6 * MIB + 1));
    assert_int_equal(account_held(3), 4 * MIB); /* a refusal takes nothing */
    assert_true(account_charge(3, 6 * MIB));
    assert_false(account_charge(3, 1));
    assert_false(account_charge(3, UINT64_MAX));
    account_refund(3, 10 * MIB);
    assert_int_equal(account_held(3), 0);
}

static void test_without_a_cap(void **state)
{
    (void)state;
    assert_false(account_is_capped(5));
    assert_false(account_is_capped(-1));
    assert_false(account_is_capped(ACCOUNT_DEVICES_MAX));
    assert_true(account_charge(-1, 1)); /* no such device: nothing to count */
}

static void test_reports(void **state)
{
    (void)state;
    uint64_t free, total;
    account_set_cap(7, 100);
    assert_true(account_charge(7, 30));
    free = 1000, total = 2000;
    account_limit(7, &free, &total);
    assert_int_equal(total, 100);
    assert_int_equal(free, 70);
    free = 20, total = 50; /* the card is smaller and fuller than the cap */
    account_limit(7, &free, &total);
    assert_int_equal(total, 50);
    assert_int_equal(free, 20);
    account_correct(7, 0, 500); /* the driver has taken more than was foreseen */
    free = 1000, total = 2000;
    account_limit(7, &free, &total);
    assert_int_equal(free, 0);
    assert_false(account_charge(7, 0 + 1));
    account_correct(7, 500, 0);
    account_refund(7, 30);
}

static atomic_int granted;

static void *race(void *argument)
{
    (void)argument;
    for (int i = 0; i < 10000; i++) {
        if (account_charge(9, 512))
            atomic_fetch_add(&granted, 1);
    }
    return NULL;
}

static void test_racing_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    account_set_cap(9, 512 * 12345);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, race, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&granted), 12345);
    assert_int_equal(account_held(9), 512 * 12345);
    account_forget();
    assert_int_equal(account_held(9), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_granule),        cmocka_unit_test(test_the_edge),
        cmocka_unit_test(test_without_a_cap),  cmocka_unit_test(test_reports),
        cmocka_unit_test(test_racing_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
