/* policy_names_test.c -- rules of one name are found, and however a text is made, at no more than
 * n log n comparisons, which are counted. */
#include "policy_help.h"
#include "slice.h"

static struct policy_errors errors;
static char bytes[POLICY_TEXT_MAX + 64];
static size_t comparisons;

/* The linker puts these in the way of the one comparison (policy.cmake). */
int __real_policy_slice_order(struct policy_slice a, struct policy_slice b);
int __wrap_policy_slice_order(struct policy_slice a, struct policy_slice b);

int __wrap_policy_slice_order(struct policy_slice a, struct policy_slice b)
{
    comparisons++;
    return __real_policy_slice_order(a, b);
}

/* Which of `count` rules of a text has which number. */
typedef unsigned int numbering(unsigned int i, unsigned int count);

static unsigned int upwards(unsigned int i, unsigned int count)
{
    (void)count;
    return i;
}

static unsigned int downwards(unsigned int i, unsigned int count) { return count - 1 - i; }

static unsigned int mixed(unsigned int i, unsigned int count) { return i * 1597 % count; }

static unsigned int organ_pipes(unsigned int i, unsigned int count)
{
    return i < count / 2 ? 2 * i : 2 * (count - 1 - i) + 1;
}

static unsigned int pairs(unsigned int i, unsigned int count) { return i % (count / 2); }

static unsigned int the_same(unsigned int i, unsigned int count)
{
    (void)i;
    (void)count;
    return 0;
}

/* Reads as many rules as a text has room for, whose names have this beginning; returns how many. */
static unsigned int read_rules(numbering *number_of, const char *beginning)
{
    struct policy_settings settings;
    char header[128];
    size_t length = 0,
           each = (size_t)snprintf(header, sizeof header, "[rule %s%04x]\n", beginning, 0);
    unsigned int count = (unsigned int)(POLICY_TEXT_MAX / each) & ~1U;
    for (unsigned int i = 0; i < count; i++)
        length += (size_t)snprintf(bytes + length, each + 1, "[rule %s%04x]\n", beginning,
                                   number_of(i, count));
    const struct policy_text text = {"test.conf", bytes, length, false};
    comparisons = 0;
    int rc = policy_read(&text, help_alice(), &settings, &errors);
    assert_int_equal(rc, errors.count ? POLICY_INVALID : POLICY_OK);
    return count;
}

static void check_cost(unsigned int count)
{
    size_t log = 0;
    while (count >> log != 0)
        log++;
    if (comparisons > 2 * count * log)
        fail_msg("%zu comparisons for %u rules", comparisons, count);
}

static void test_names_that_differ(void **state)
{
    (void)state;
    static numbering *const numberings[] = {upwards, downwards, mixed, organ_pipes};
    for (size_t i = 0; i < COUNT_OF(numberings); i++) {
        check_cost(read_rules(numberings[i], ""));
        assert_int_equal(errors.count, 0);
        check_cost(
            read_rules(numberings[i], "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
        assert_int_equal(errors.count, 0);
    }
}

/* Each is reported, with the line of the first; of many those that come first in the text. */
static void test_names_given_twice(void **state)
{
    (void)state;
    char expected[128];
    unsigned int count = read_rules(pairs, "");
    check_cost(count);
    assert_int_equal(errors.count, count / 2);
    for (unsigned int i = 0; i < POLICY_ERRORS_MAX; i++) {
        snprintf(expected, sizeof expected,
                 "%u:1: [rule %04x] is given twice; the first is on line %u", count / 2 + i + 1, i,
                 i + 1);
        assert_string_equal(help_error(&errors, i), expected);
    }
    count = read_rules(the_same, "");
    check_cost(count);
    assert_int_equal(errors.count, count - 1);
    assert_string_equal(help_error(&errors, POLICY_ERRORS_MAX - 1),
                        "65:1: [rule 0000] is given twice; the first is on line 1");
}

/* Names one of which is the beginning of another, and the largest number of rules there can be. */
static void test_shortest_names(void **state)
{
    (void)state;
    struct policy_settings settings;
    static struct policy_text text = {"test.conf", bytes, 0, true};
    size_t length = 0;
    for (; length + 9 <= POLICY_TEXT_MAX; length += 9)
        snprintf(bytes + length, 10, "[rule %c];", 'a' + (char)(length / 9 % 2));
    text.length = length;
    assert_int_equal(policy_read(&text, help_alice(), &settings, &errors), POLICY_INVALID);
    assert_int_equal(errors.count, POLICY_TEXT_MAX / 9 - 2);
    assert_int_equal(errors.names.count, POLICY_TEXT_MAX / 9);
    text = help_inline("[rule aa];[rule a];[rule aaa];[rule b];[rule aa]");
    assert_int_equal(policy_read(&text, help_alice(), &settings, &errors), POLICY_INVALID);
    assert_int_equal(errors.count, 1);
    assert_string_equal(help_error(&errors, 0),
                        "5:1: [rule aa] is given twice; the first is on line 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_that_differ),
        cmocka_unit_test(test_names_given_twice),
        cmocka_unit_test(test_shortest_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
