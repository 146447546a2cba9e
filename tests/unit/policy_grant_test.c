/* policy_grant_test.c -- which GPUs of a machine of four a process gets, in which order, under
 * which caps, and what is said of a GPU that is not there. Answers are worked out by hand. */
#include "policy_machine.h"

struct row {
    const char *texts[POLICY_LAYERS_MAX];
    const char *granted;
};

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t layers = 0;
        while (layers < POLICY_LAYERS_MAX && rows[i].texts[layers])
            layers++;
        assert_string_equal(help_grant(rows[i].texts, layers), rows[i].granted);
    }
}

static void test_one_text(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {{NULL}, "0 1 2 3"},
        {{""}, "0 1 2 3"},
        {{"devices=all"}, "0 1 2 3"},
        {{"devices=none"}, ""},
        {{"devices=3,1"}, "3 1"},
        {{"devices=3,1,3,1-1"}, "3 1"},
        {{"devices=2,0-3"}, "2 0 1 3"},
        {{"devices=0-3"}, "0 1 2 3"},
        {{"devices=3,2,1,0"}, "3 2 1 0"},
        {{"devices=1,2,3,0"}, "1 2 3 0"},
        {{"devices=2,3,0,1"}, "2 3 0 1"},
        {{"devices=" UUID_2}, "2"},
        {{"devices=GPU-3"}, "2"},
        {{"devices=gpu-11112,GPU-11111111-AAAA"}, "1 0"},
        {{"devices=41:00.0"}, "1"},
        {{"devices=0000:c1:00.0,00010001:41:00.0"}, "2 3"},
        {{"devices=00000000:C1:00.0,0"}, "2 0"},
        {{"devices=3,GPU-4,10001:41:00.0"}, "3"},
        {{"devices=5?,1"}, "1"},
        {{"devices=0-7?"}, "0 1 2 3"},
        {{"devices=GPU-5?,02:00.0?,2"}, "2"},
        {{"devices=7?"}, ""},
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_missing(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {{"devices=5"}, "/etc/gpushim.conf:1:9: GPU 5 is not there: this machine has 4 (0-3)"},
        {{"memory=1G; devices = 0, 2-5"},
         "/etc/gpushim.conf:2:15: GPU 4 of 2-5 is not there: this machine has 4 (0-3)"},
        {{"devices=GPU-5"},
         "/etc/gpushim.conf:1:9: GPU-5 is not there: this machine has 4 (" UUID_0 ", " UUID_1
         ", " UUID_2 ", " UUID_3 ")"},
        {{"devices=2,02:00.0"},
         "/etc/gpushim.conf:1:11: 02:00.0 is not there: this machine has 4 (0000:01:00.0, "
         "0000:41:00.0, "
         "0000:c1:00.0, 00010001:41:00.0)"},
        {{"devices=GPU-1"},
         "/etc/gpushim.conf:1:9: GPU-1 names more than one GPU: " UUID_0 " and " UUID_1},
        {{"devices=GPU-1?"},
         "/etc/gpushim.conf:1:9: GPU-1? names more than one GPU: " UUID_0 " and " UUID_1},
        {{"devices=3,1", "devices=2"},
         "my.conf:1:9: GPU 2 is not among the 2 GPUs that /etc/gpushim.conf grants (0-1)"},
        {{"devices=3,1", "", "devices=0,5"},
         "GPUSHIM_POLICY:1:11: GPU 5 is not among the 2 GPUs that /etc/gpushim.conf grants (0-1)"},
        {{"devices=3,1", "devices=1", "devices=0-1"},
         "GPUSHIM_POLICY:1:9: GPU 1 of 0-1 is not among the 1 GPU that my.conf grants (0)"},
        {{"devices=3,1", "devices=GPU-33333333"},
         "my.conf:1:9: GPU-33333333 is not among the 2 GPUs that /etc/gpushim.conf grants (" UUID_3
         ", " UUID_1 ")"},
        {{"devices=all", "devices=4"}, "my.conf:1:9: GPU 4 is not there: this machine has 4 (0-3)"},
        {{"devices=3,1", "devices=7?,1"}, "1"},
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_layers(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {{"devices=3,1", ""}, "3 1"},
        {{"devices=3,1", "devices=all"}, "3 1"},
        {{"devices=3,1", "devices=1,0"}, "1 3"},
        {{"devices=3,1", "devices=0"}, "3"},
        {{"devices=3,2,1", "devices=2,0", "devices=1"}, "3"},
        {{"", "devices=3,1", "devices=" UUID_1}, "1"},
        {{"devices=none", "devices=0"}, ""},
        {{"devices=3,1", "devices=none"}, ""},
        {{"devices=3,1", "devices=41:00.0"}, "1"},
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_caps(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {{"devices=3,1;memory=8G"}, "3:8GiB@0 1:8GiB@0"},
        {{"devices=3,1;memory=40%"}, "3:40%@0 1:40%@0"},
        {{"devices=3,1;memory.0=4G"}, "3:4GiB@0 1"},
        {{"devices=3,1;memory.1=4G;memory=8G"}, "3:8GiB@0 1:4GiB@0"},
        {{"devices=3,1;memory.1=none;memory=8G"}, "3:8GiB@0 1"},
        {{"memory.2=4G"}, "0 1 2:4GiB@0 3"},
        /* the cap follows the GPU */
        {{"devices=3,1;memory.0=4G", "devices=1,0"}, "1 3:4GiB@0"},
        {{"devices=3,1", "memory.0=4G"}, "3:4GiB@1 1"},
        {{"devices=3,1", "devices=1,0;memory.0=4G"}, "1:4GiB@1 3"},
        /* the smaller of two, whoever says it; the outermost of equals */
        {{"memory=8G;devices=0", "memory=4G"}, "0:4GiB@1"},
        {{"memory=4G;devices=0", "memory=8G"}, "0:4GiB@0"},
        {{"memory=4G;devices=0", "memory=4G", "memory=4G"}, "0:4GiB@0"},
        {{"memory=4G;devices=0", "memory=none"}, "0:4GiB@0"},
        {{"memory=none;devices=0", "memory=4G"}, "0:4GiB@1"},
        /* sizes and shares are kept beside each other, as the card's total is not known here */
        {{"memory=8G;devices=0", "memory=40%", "memory=30%"}, "0:8GiB@0:30%@2"},
        {{"memory=40%;devices=0", "memory=8G", "memory=60%"}, "0:8GiB@1:40%@0"},
        /* positions that are for no GPU */
        {{"devices=3,1;memory.2=4G"},
         "/etc/gpushim.conf:2:1: memory.2: GPU 2 is not there: devices names 2, and counts from 0"},
        {{"memory.4=4G"},
         "/etc/gpushim.conf:1:1: memory.4: GPU 4 is not there: this machine has 4 (0-3)"},
        {{"devices=3,1", "memory.3=4G"},
         "my.conf:1:1: memory.3: GPU 3 is not among the 2 GPUs that /etc/gpushim.conf grants "
         "(0-1)"},
        {{"devices=0-7?;memory.7=4G"}, "0 1 2 3"},
        {{"devices=none;memory.7=4G"}, ""},
    };
    check_rows(rows, COUNT_OF(rows));
}

/* memory.K of [default] counts in the list of [default], also under a rule with a list of its own.
 */
static void test_caps_of_default_follow_the_gpu(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {{"memory.2=4G;[rule r];devices=2,1"}, "2:4GiB@0 1"},
        {{"memory.2=4G;memory=8G;[rule r];devices=2,1"}, "2:4GiB@0 1:8GiB@0"},
        {{"devices=3,2;memory.0=4G;[rule r];devices=0,3"}, "0 3:4GiB@0"},
        {{"devices=3,2;memory.0=4G;[rule r];devices=0,3;memory.1=1G"}, "0 3:1GiB@0"},
        {{"devices=3,2;memory.0=4G;[rule r];devices=0,3;memory.0=1G"}, "0:1GiB@0 3:4GiB@0"},
        {{"devices=3,2;memory.0=4G;[rule r];devices=0,3;memory=2G"}, "0:2GiB@0 3:2GiB@0"},
        {{"devices=3,2;memory.0=4G;[rule r];memory.1=2G"}, "3:4GiB@0 2:2GiB@0"},
        {{"devices=3,2;memory.2=4G;[rule r];devices=0"},
         "/etc/gpushim.conf:2:1: memory.2: GPU 2 is not there: devices names 2, and counts from 0"},
        {{"devices=2,3", "devices=1;memory.0=4G;[rule r];devices=0,1"}, "2 3:4GiB@1"},
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_other_machines(void **state)
{
    (void)state;
    static struct policy_gpu many[POLICY_GPUS_MAX];
    struct policy_grant grants[POLICY_GPUS_MAX];
    struct policy_error error;
    size_t layer;
    struct policy_settings settings = help_read(help_inline("devices=0"));
    assert_int_equal(policy_grant(&settings, 1, NULL, 0, grants, &error, &layer), POLICY_MISSING);
    assert_string_equal(error.why.bytes, "GPU 0 is not there: this machine has 0");
    assert_int_equal(policy_grant(&settings, 0, NULL, 0, grants, &error, &layer), 0);

    for (unsigned int i = 0; i < POLICY_GPUS_MAX; i++)
        snprintf(many[i].uuid, sizeof many[i].uuid, "MIG-%08x-0000-0000-0000-000000000000", i);
    assert_int_equal(policy_grant(&settings, 0, many, POLICY_GPUS_MAX, grants, &error, &layer),
                     POLICY_GPUS_MAX);
    settings = help_read(help_inline("devices=63,0-63;memory.0=1G"));
    assert_int_equal(policy_grant(&settings, 1, many, POLICY_GPUS_MAX, grants, &error, &layer),
                     POLICY_GPUS_MAX);
    assert_int_equal(grants[0].gpu, 63);
    assert_int_equal(grants[0].cap.value, GIB);
    assert_int_equal(grants[1].gpu, 0);
    assert_int_equal(grants[63].gpu, 62);
    settings = help_read(help_inline("devices=MIG-0000003f,MIG-00000001-0000"));
    assert_int_equal(policy_grant(&settings, 1, many, POLICY_GPUS_MAX, grants, &error, &layer), 2);
    assert_int_equal(grants[0].gpu, 63);
    assert_int_equal(grants[1].gpu, 1);
}

/* An older MIG name may be the beginning of another; in full it means one. */
static void test_uuid_in_full(void **state)
{
    (void)state;
#define PARENT "MIG-GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
    static const struct policy_gpu mig[] = {{.uuid = PARENT "/1/10", .pci_domain = 0, .pci_bus = 1},
                                            {.uuid = PARENT "/1/1", .pci_domain = 0, .pci_bus = 1}};
    struct policy_grant grants[POLICY_GPUS_MAX];
    struct policy_error error;
    size_t layer;
    struct policy_settings settings = help_read(help_inline("devices=" PARENT "/1/1"));
    assert_int_equal(policy_grant(&settings, 1, mig, 2, grants, &error, &layer), 1);
    assert_int_equal(grants[0].gpu, 1);
    settings = help_read(help_inline("devices=01:00.0"));
    assert_int_equal(policy_grant(&settings, 1, mig, 2, grants, &error, &layer), POLICY_MISSING);
    assert_string_equal(error.why.bytes,
                        "01:00.0 names more than one GPU: " PARENT "/1/10 and " PARENT "/1/1");
}

/* MIG devices stand behind the GPUs: they have no number, and where no list names them, their GPU's
 * cap. */
static void test_mig(void **state)
{
    (void)state;
    static const struct policy_gpu gpus[] = {
        {.uuid = UUID_0, .pci_bus = 1},
        {.uuid = UUID_1, .pci_bus = 2},
        {.uuid = "MIG-55555555-aaaa-4000-8000-000000000000",
         .pci_bus = 2,
         .is_mig = true,
         .parent = 1,
         .older = "MIG-" UUID_1 "/7/0"},
        {.uuid = "MIG-66666666-aaaa-4000-8000-000000000000",
         .pci_bus = 2,
         .is_mig = true,
         .parent = 1,
         .older = "MIG-" UUID_1 "/8/0"},
    };
    static const struct {
        const char *texts[2]; /* outermost first */
        const char *right;    /* entry:GiB of the cap, 0 for none; or the error */
    } rows[] = {
        {{"devices=all"}, "0:0 1:0 2:0 3:0 "},
        {{"devices=MIG-6,0"}, "3:0 0:0 "},
        {{"devices=mig-" UUID_1 "/8/0"}, "3:0 "},
        {{"devices=MIG-" UUID_1 "/8"}, "3:0 "}, /* a beginning that means one */
        {{"devices=MIG-" UUID_1},
         "MIG-" UUID_1 " names more than one GPU: MIG-55555555-aaaa-4000-8000-000000000000 and "
         "MIG-66666666-aaaa-4000-8000-000000000000"},
        {{"devices=0000:02:00.0"}, "1:0 "}, /* the GPU, not its parts */
        {{"devices=0000:03:00.0"},
         "0000:03:00.0 is not there: this machine has 4 (0000:01:00.0, 0000:02:00.0)"},
        {{"devices=2"}, "GPU 2 is not there: this machine has 2 (0-1)"},
        {{"devices=all;memory.2=1G"}, "memory.2: GPU 2 is not there: this machine has 2 (0-1)"},
        {{"memory.1=4G"}, "0:0 1:4 2:4 3:4 "},
        {{"memory=2G;memory.1=4G"}, "0:2 1:4 2:4 3:4 "},
        {{"memory=4G;memory.1=none"}, "0:4 1:0 2:0 3:0 "},
        {{"devices=MIG-6,MIG-5;memory.1=4G"}, "3:0 2:4 "},
        {{"memory.1=4G;[rule r];devices=MIG-6,0"}, "3:4 0:0 "},
        {{"devices=MIG-6,MIG-5", "devices=1"}, "2:0 "}, /* a list that a text gives has numbers */
        {{"devices=all;memory.1=4G", "devices=MIG-5"}, "2:4 "},
        {{"devices=1", "devices=MIG-5"},
         "MIG-5 is not among the 1 GPU that GPUSHIM_POLICY grants (" UUID_1 ")"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct policy_settings layers[2];
        struct policy_grant grants[POLICY_GPUS_MAX];
        struct policy_error error;
        char shown[TEXT_BYTES] = "";
        size_t layer, count = 0, length = 0;
        for (; count < 2 && rows[i].texts[count]; count++)
            layers[count] = help_read(help_inline(rows[i].texts[count]));
        int granted = policy_grant(layers, count, gpus, COUNT_OF(gpus), grants, &error, &layer);
        for (int j = 0; j < granted; j++)
            length +=
                (size_t)snprintf(shown + length, sizeof shown - length, "%u:%llu ", grants[j].gpu,
                                 grants[j].cap.kind == POLICY_SIZE_NONE
                                     ? 0
                                     : (unsigned long long)(grants[j].cap.value / GIB));
        assert_string_equal(granted < 0 ? error.why.bytes : shown, rows[i].right);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_text),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_caps),
        cmocka_unit_test(test_caps_of_default_follow_the_gpu),
        cmocka_unit_test(test_other_machines),
        cmocka_unit_test(test_uuid_in_full),
        cmocka_unit_test(test_mig),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
