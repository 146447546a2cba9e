/* visible_test.c -- CUDA_VISIBLE_DEVICES against a grant: each row worked out by hand.
 *
 * The machine has four GPUs; the policy grants 3, 1 and 0 in that order. So in the variable 0 is
 * GPU 3, 1 is GPU 1 and 2 is GPU 0; GPU 2 is not to be had by any name.
 */
#include "cmocka_all.h"
#include "visible.h"

#include <stdio.h>
#include <string.h>

static const struct policy_gpu gpus[] = {
    {.uuid = "GPU-aa000000-0000-0000-0000-000000000000"},
    {.uuid = "GPU-ab000000-0000-0000-0000-000000000001"},
    {.uuid = "GPU-cc000000-0000-0000-0000-000000000002"},
    {.uuid = "GPU-dd000000-0000-0000-0000-000000000003"},
};
static const struct policy_grant grants[] = {{.gpu = 3}, {.gpu = 1}, {.gpu = 0}};

static const struct row {
    const char *value;
    const char *seen; /* the GPUs of the machine, in order */
} rows[] = {
    {NULL, "310"}, /* unset: all of the grant */
    {"", ""},      /* empty: none */
    {"0", "3"},
    {"1,0", "13"},
    {"2", "0"},
    {"0,1,2", "310"},
    {"3", ""},      /* beyond the grant */
    {"0,3,1", "3"}, /* what follows the first invalid entry is dropped */
    {"-1", ""},
    {"0,-1,1", "3"},
    {"0,2,-1,1", "30"},
    {"0,0", ""}, /* twice: the whole list is empty */
    {"0,1,0", ""},
    {"0,1,,2", "31"}, /* an empty entry is invalid */
    {",0", ""},
    {"0,", "3"},
    {" 1 , 0 ", "13"},
    {"+1", "1"},
    {"1gpu2", "1"}, /* as strtol reads it */
    {"gpu1", ""},
    {"99999999999999999999", ""}, /* no overflow into a valid one */
    {"4294967296", ""},
    {"GPU-dd000000-0000-0000-0000-000000000003", "3"},
    {"GPU-d", "3"}, /* a prefix that fits one */
    {"GPU-ab,GPU-aa", "10"},
    {"GPU-a", ""},  /* fits two */
    {"GPU-cc", ""}, /* on the machine, not in the grant */
    {"GPU-ff", ""},
    {"GPU-dd,GPU-cc,GPU-aa", "3"},
    {"GPU-dd,GPU-dd0", ""}, /* the same card twice */
    {"GPU-dd,1", "3"},      /* another form ends the list */
    {"0,GPU-ab", "3"},
    {"gpu-dd", ""}, /* case counts */
    {"GPU-", ""},
    {"MIG-dd", ""},
};

/* Integers are the machine's own. */
static const struct row physical_rows[] = {
    {NULL, "310"},
    {"", ""},
    {"0", "0"},
    {"1", "1"},
    {"3", "3"},
    {"2", ""}, /* on the machine, not in the grant */
    {"0,1,3", "013"},
    {"3,2,1", "3"},
    {"4", ""}, /* not on the machine */
    {"63", ""},
    {"64", ""},
    {"256", ""}, /* no overflow into a valid one */
    {"3,3", ""},
    {"-1", ""},
    {"1,-1,0", "1"},
    {" 3 , 0 ", "30"},
    {"1gpu2", "1"},
    {"99999999999999999999", ""},
    {"GPU-ab,GPU-aa", "10"},
    {"GPU-cc", ""},
    {"3,GPU-ab", "3"},
};

/* Against three grants. */
static void check_value(const char *value, bool physical, const struct policy_gpu *machine,
                        const struct policy_grant *granted, const char *expected)
{
    uint8_t chosen[POLICY_GPUS_MAX];
    char seen[POLICY_GPUS_MAX + 1] = "";
    size_t count = visible_choose(value, physical, machine, granted, 3, chosen);
    for (size_t k = 0; k < count; k++)
        seen[k] = (char)('0' + granted[chosen[k]].gpu);
    seen[count] = '\0';
    if (strcmp(seen, expected) != 0)
        fail_msg("CUDA_VISIBLE_DEVICES=%s%s: sees %s, not %s", value ? value : "(unset)",
                 physical ? ", physical" : "", seen, expected);
}

static void check_rows(const struct row *table, size_t row_count, bool physical)
{
    for (size_t i = 0; i < row_count; i++)
        check_value(table[i].value, physical, gpus, grants, table[i].seen);
}

/* GPU 1 is divided into 2, 3 and 4; granted are 3, GPU 0 and 2. */
static void test_mig(void **state)
{
    (void)state;
    static const char whole[] = "GPU-ab000000-0000-0000-0000-000000000001";
    static struct policy_gpu machine[] = {
        {.uuid = "GPU-aa000000-0000-0000-0000-000000000000"},
        {.uuid = "GPU-ab000000-0000-0000-0000-000000000001"},
        {.uuid = "MIG-a2000000-0000-0000-0000-000000000000", .is_mig = true, .parent = 1},
        {.uuid = "MIG-b3000000-0000-0000-0000-000000000000", .is_mig = true, .parent = 1},
        {.uuid = "MIG-c4000000-0000-0000-0000-000000000000", .is_mig = true, .parent = 1},
    };
    static const struct policy_grant granted[] = {{.gpu = 3}, {.gpu = 0}, {.gpu = 2}};
    static const struct {
        const char *value, *seen, *seen_physically; /* the last NULL: the same */
    } mig_rows[] = {
        {NULL, "302", NULL},
        {"0", "3", "0"},
        {"2,1", "20", ""}, /* MIG devices have no number */
        {"1", "0", "3"},   /* the first that is granted of GPU 1 */
        {"1,0", "03", "30"},
        {"MIG-a", "2", NULL},
        {"MIG-", "", NULL}, /* fits two */
        {"MIG-a,MIG-b", "23", NULL},
        {"MIG-c", "", NULL}, /* not granted */
        {"MIG-GPU-ab000000-0000-0000-0000-000000000001/8/0", "3", NULL},
        {"MIG-GPU-ab000000-0000-0000-0000-000000000001/9/0", "", NULL},
        {"GPU-ab", "3", NULL}, /* the first that is granted of it */
        {"GPU-a", "", NULL},   /* fits two GPUs */
        {"GPU-aa,GPU-ab", "03", NULL},
        {"GPU-aa,MIG-a", "0", NULL}, /* another form ends the list */
        {"MIG-a,GPU-aa", "2", NULL},
    };
    for (int i = 2; i < 5; i++)
        snprintf(machine[i].older, sizeof machine[i].older, "MIG-%s/%d/0", whole, 5 + i);
    for (size_t i = 0; i < sizeof mig_rows / sizeof mig_rows[0]; i++) {
        const char *physically = mig_rows[i].seen_physically;
        check_value(mig_rows[i].value, false, machine, granted, mig_rows[i].seen);
        check_value(mig_rows[i].value, true, machine, granted,
                    physically ? physically : mig_rows[i].seen);
    }
}

static void test_within(void **state)
{
    (void)state;
    check_rows(rows, sizeof rows / sizeof rows[0], false);
}

static void test_physical(void **state)
{
    (void)state;
    check_rows(physical_rows, sizeof physical_rows / sizeof physical_rows[0], true);
}

static void test_long_values(void **state)
{
    (void)state;
    uint8_t chosen[POLICY_GPUS_MAX];
    static char value[100000];
    memset(value, ',', sizeof value - 1);
    assert_int_equal(visible_choose(value, false, gpus, grants, 3, chosen), 0);
    memset(value, '7', sizeof value - 1);
    assert_int_equal(visible_choose(value, false, gpus, grants, 3, chosen), 0);
    memcpy(value, "GPU-", 4);
    assert_int_equal(visible_choose(value, false, gpus, grants, 3, chosen), 0);
    assert_int_equal(visible_choose("0", false, gpus, grants, 0, chosen), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_within),
                                       cmocka_unit_test(test_physical), cmocka_unit_test(test_mig),
                                       cmocka_unit_test(test_long_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
