/* policy_value_test.c -- every kind of value, right and wrong, as it stands behind a key. */
#include "policy_help.h"

static struct policy_errors errors;

/* Reads "[SECTION]\nkey = value" and returns "" or the first error, without line and column. */
static const char *complaint(const char *section, const char *assignment,
                             struct policy_settings *settings)
{
    static char bytes[512], why[TEXT_BYTES];
    snprintf(bytes, sizeof bytes, "[%s]\n%s\n", section, assignment);
    struct policy_text text = help_file(bytes);
    int rc = policy_read(&text, help_alice(), settings, &errors);
    if (rc == POLICY_OK)
        return "";
    assert_int_equal(rc, POLICY_INVALID);
    assert_int_equal(errors.list[0].line, 2);
    snprintf(why, sizeof why, "%s", errors.list[0].why.bytes);
    return why;
}

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        uint64_t bytes;
    } rows[] = {
        {"1", 1},
        {"4096", 4096},
        {"4096B", 4096},
        {"512MiB", 512 * MIB},
        {"8GiB", 8 * GIB},
        {"8G", 8 * GIB},
        {"8g", 8 * GIB},
        {"8Gi", 8 * GIB},
        {"8 GiB", 8 * GIB},
        {"8GB", 8000000000},
        {"8gb", 8000000000},
        {"3K", 3 * KIB},
        {"3KB", 3000},
        {"3M", 3 * MIB},
        {"3MB", 3000000},
        {"2T", 2 * TIB},
        {"2TiB", 2 * TIB},
        {"2TB", 2000000000000},
        {"1.5GiB", 1536 * MIB},
        {"0.5K", 512},
        {"1.50GiB", 1536 * MIB},
        {"1.0", 1},
        {"0.001KB", 1},
        {"0.000001MB", 1},
        {"1.000000000000GiB", GIB},
        {"0008GiB", 8 * GIB},
        {"18446744073709551615", UINT64_MAX},
        {"16777215T", 16777215 * TIB},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct policy_settings settings;
        char assignment[64];
        snprintf(assignment, sizeof assignment, "memory = %s", rows[i].value);
        assert_string_equal(complaint("default", assignment, &settings), "");
        assert_int_equal(settings.memory.kind, POLICY_SIZE_BYTES);
        assert_int_equal(settings.memory.value, rows[i].bytes);
        assert_int_equal(settings.memory.line, 2);
    }
}

static void test_shares(void **state)
{
    (void)state;
    static const struct {
        const char *assignment;
        uint64_t percent;
    } rows[] = {{"memory = 1%", 1}, {"memory = 40%", 40}, {"memory = 100 %", 100}};
    struct policy_settings settings;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_string_equal(complaint("default", rows[i].assignment, &settings), "");
        assert_int_equal(settings.memory.kind, POLICY_SIZE_PERCENT);
        assert_int_equal(settings.memory.value, rows[i].percent);
    }
    assert_string_equal(complaint("default", "memory = none", &settings), "");
    assert_int_equal(settings.memory.kind, POLICY_SIZE_NONE);
    assert_int_equal(settings.memory.line, 2);
}

#define NUMBER_EXPECTED                                                                            \
    ": expected one of none, a size such as 8GiB, a share of the card such as 40%"
#define UNITS ": there is no such unit; units are K, M, G, T (or KiB ... TiB), KB, MB, GB, TB and %"

static void test_no_sizes(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"memory =", "memory has no value" NUMBER_EXPECTED},
        {"memory = -1GiB", "memory = -1GiB" NUMBER_EXPECTED},
        {"memory = GiB", "memory = GiB" NUMBER_EXPECTED},
        {"memory = nome", "memory = nome" NUMBER_EXPECTED "; did you mean none?"},
        {"memory = 8GiX", "memory = 8GiX" UNITS},
        {"memory = 8 G iB", "memory = 8 G iB" UNITS},
        {"memory = 8GiB;", "memory = 8GiB;" UNITS},
        {"memory = 1e9", "memory = 1e9" UNITS},
        {"memory = 0x100", "memory = 0x100" UNITS},
        {"memory = 8,5GiB", "memory = 8,5GiB" UNITS},
        {"memory = 1P", "memory = 1P" UNITS},
        {"memory = 1.GiB", "memory = 1.GiB: expected a number, and a unit such as MiB or GiB"},
        {"memory = 1.3KiB", "memory = 1.3KiB: that is not a whole number of bytes"},
        {"memory = 1.5", "memory = 1.5: that is not a whole number of bytes"},
        {"memory = 0.0000001TiB", "memory = 0.0000001TiB: that is not a whole number of bytes"},
        {"memory = 0",
         "memory = 0: 0 is not a cap; to take all GPUs away write devices = none, for no cap "
         "memory = none"},
        {"memory = 0.0GiB",
         "memory = 0.0GiB: 0 is not a cap; to take all GPUs away write devices = none, "
         "for no cap memory = none"},
        {"memory = 18446744073709551616",
         "memory = 18446744073709551616: that is more than 2^64 bytes"},
        {"memory = 16777216T", "memory = 16777216T: that is more than 2^64 bytes"},
        {"memory = 0%", "memory = 0%: a share is a whole number from 1% to 100%"},
        {"memory = 101%", "memory = 101%: a share is a whole number from 1% to 100%"},
        {"memory = 12.5%", "memory = 12.5%: a share is a whole number from 1% to 100%"},
        {"memory.0 = 0",
         "memory.K = 0: 0 is not a cap; to take all GPUs away write devices = none, for no "
         "cap memory = none"},
    };
    struct policy_settings settings;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(complaint("default", rows[i][0], &settings), rows[i][1]);
}

static void test_positions(void **state)
{
    (void)state;
    static const char *const wrong[] = {"memory.64 = 1G", "memory. = 1G", "memory.x = 1G",
                                        "memory.-1 = 1G", "memory.18446744073709551616 = 1G"};
    struct policy_settings settings;
    assert_string_equal(complaint("default", "memory.63 = 1GiB", &settings), "");
    assert_int_equal(settings.memory_of[63].value, GIB);
    assert_int_equal(settings.memory_of[0].kind, POLICY_SIZE_UNSET);
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_non_null(
            strstr(complaint("default", wrong[i], &settings),
                   ": expected memory.K, where K is a position in devices: 0 is the first"));
}

static void test_choices(void **state)
{
    (void)state;
    static const struct {
        const char *section, *assignment, *why;
    } rows[] = {
        {"default", "peer_access = allow", ""},
        {"default", "peer_access = deny", ""},
        {"default", "peer_access = maybe", "peer_access = maybe: expected one of allow, deny"},
        {"default", "peer_access = Deny",
         "peer_access = Deny: expected one of allow, deny; did you mean deny?"},
        {"default", "peer_access = allow, deny",
         "peer_access = allow, deny: expected one of allow, deny"},
        {"default", "managed = count", ""},
        {"default", "managed = ignore", ""},
        {"default", "managed = deny", ""},
        {"default", "managed = allow", "managed = allow: expected one of count, ignore, deny"},
        {"gpushim", "log = stderr", ""},
        {"gpushim", "log = syslog", ""},
        {"gpushim", "log = /var/log/gpushim#1", ""},
        {"gpushim", "log = var/log/gpushim",
         "log = var/log/gpushim: expected one of stderr, syslog, an absolute path of at most 511 "
         "bytes"},
        {"gpushim", "log_level = debug", ""},
        {"gpushim", "log_level = warning",
         "log_level = warning: expected one of error, warn, info, debug"},
        {"default", "nvml = physical", ""},
        {"default", "overhead = none", ""},
        {"default", "overhead = measured", ""},
        {"default", "overhead = 300MiB", ""},
        {"default", "overhead = 10%",
         "overhead = 10%: expected one of measured, none, a size such as 8GiB"},
        {"default", "ipc = allow", ""},
        {"default", "ipc = deny", ""},
        {"default", "cross_device_copy = allow", ""},
        {"default", "cross_device_copy = deny", ""},
        {"default", "cross_device_copy = count",
         "cross_device_copy = count: expected one of allow, deny"},
        {"default", "devices_per_process = any", ""},
        {"default", "devices_per_process = 1", ""},
        {"default", "nvml = follow", ""},
        {"default", "cuda_visible_devices = within", ""},
        {"default", "cuda_visible_devices = physical", ""},
        {"default", "cuda_visible_devices = ignore", ""},
        {"default", "cuda_visible_devices = physicall",
         "cuda_visible_devices = physicall: expected one of within, physical, ignore; did you mean "
         "physical?"},
        {"default", "select = all", ""},
        {"default", "user_memory = none", ""},
        {"default", "job_memory = none", ""},
        {"default", "nvml = physically",
         "nvml = physically: expected one of follow, physical; did you mean physical?"},
    };
    struct policy_settings settings;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(complaint(rows[i].section, rows[i].assignment, &settings), rows[i].why);
}

/* What is documented and not enforced is an error that says so, not a silence. */
static void test_not_yet(void **state)
{
    (void)state;
#define NOT_YET ": this build does not enforce it yet"
    static const struct {
        const char *section, *assignment, *why;
    } rows[] = {
        {"default", "select = 1", "select = 1" NOT_YET "; what it does is select = all"},
        {"default", "select = 4 nvlink",
         "select = 4 nvlink" NOT_YET "; what it does is select = all"},
        {"default", "select = 0", "select = 0: expected all"},
        {"default", "user_memory = 8GiB",
         "user_memory = 8GiB" NOT_YET "; what it does is user_memory = none"},
        {"default", "job_memory = 40%",
         "job_memory = 40%" NOT_YET "; what it does is job_memory = none"},
        {"gpushim", "ledger_dir = /run/gpushim", "ledger_dir" NOT_YET},
    };
    struct policy_settings settings;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(complaint(rows[i].section, rows[i].assignment, &settings), rows[i].why);
}

static void test_devices(void **state)
{
    (void)state;
#define ENTRY                                                                                      \
    ": expected an nvidia-smi index (3), a range (0-3), a UUID (GPU-... or MIG-...) or a PCI id "  \
    "(0000:41:00.0)"
#define UUID ": expected a UUID as nvidia-smi -L shows it, or the beginning of one"
#define PCI ": expected a PCI id such as 0000:41:00.0 or 41:00.0"
    static const char *const rows[][2] = {
        {"all", ""},
        {"none", ""},
        {"0", ""},
        {"3,1", ""},
        {" 3 , 1 ", ""},
        {"0-7", ""},
        {"0 - 7", ""},
        {"2-2", ""},
        {"63", ""},
        {"3,3,3", ""},
        {"3?,0-7?", ""},
        {"GPU-8", ""},
        {"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", ""},
        {"gpu-8932F937", ""},
        {"GPU-8932f937?", ""},
        {"MIG-5c1a07d6-6a5e-5f0b-9a7e-1d5f3f0a2b44", ""},
        {"MIG-GPU-8932f937-d72c-4106-c12f-20bd9faed9f6/1/0", ""},
        {"0000:41:00.0", ""},
        {"00000000:C1:00.0", ""},
        {"41:00.0", ""},
        {"ab:1f.0", ""},
        {"", "devices has no value: expected one of all, none, a list of GPUs such as 3,1"},
        {"3,,1", "an empty item; expected a GPU between the commas"},
        {"3,", "an empty item; expected a GPU between the commas"},
        {",3", "an empty item; expected a GPU between the commas"},
        {"3 1", "3 1" ENTRY},
        {"-1", "-1" ENTRY},
        {"1-", "1-" ENTRY},
        {"0-3-5", "0-3-5" ENTRY},
        {"?", "?" ENTRY},
        {"cuda:0", "cuda:0" PCI},
        {"A100", "A100" ENTRY},
        {"All", "All" ENTRY},
        {"64", "64: GPUs are numbered from 0 to 63"},
        {"0-64", "0-64: GPUs are numbered from 0 to 63"},
        {"3-0",
         "3-0: a range runs upwards: write 0-3, or list the GPUs one by one in the order wanted"},
        {"3,all", "all: stands alone, not in a list"},
        {"none?", "none: stands alone, not in a list"},
        {"GPU-", "GPU-" UUID},
        {"GPU-xyz", "GPU-xyz" UUID},
        {"GPU-8932f937d72c", "GPU-8932f937d72c" UUID},
        {"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6a",
         "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6a" UUID},
        {"MIG-", "MIG-" UUID},
        {"41:00", "41:00" PCI},
        {"41:00.1", "41:00.1" PCI},
        {"41:20.0", "41:20.0" PCI},
        {"0000:41:00.00", "0000:41:00.00" PCI},
        {"000000000:41:00.0", "000000000:41:00.0" PCI},
        {":41:00.0", ":41:00.0" PCI},
    };
    struct policy_settings settings;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char assignment[128];
        snprintf(assignment, sizeof assignment, "devices = %s", rows[i][0]);
        assert_string_equal(complaint("default", assignment, &settings), rows[i][1]);
    }
}

static void test_match_lists(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"match.user = alice", ""},
        {"match.user = alice, 1001, !bob", ""},
        {"match.user = ! bob", ""},
        {"match.group = domain users", ""},
        {"match.exe = python*, [a-z]*, !/usr/bin/*", ""},
        {"match.user = alice,,bob", "an empty item; expected something between the commas"},
        {"match.user = !", "expected what is excluded behind !"},
        {"match.user = !!bob", "one ! is enough"},
        {"match.user = 4294967295", "4294967295: numeric ids end at 4294967294"},
        {"match.user = 99999999999999999999",
         "99999999999999999999: numeric ids end at 4294967294"},
        {"match.user =", "match.user has no value: expected a list of users"},
        {"match.exe = [a-z", "[a-z: expected ] behind ["},
        {"match.exe = a, []", "[]: expected ] behind ["},
        {"match.cgroup = */job_*, !/user.slice/*", ""},
        {"match.cgroup =", "match.cgroup has no value: expected a list of globs such as python*"},
        {"match.cgroup = */[a", "*/[a: expected ] behind ["},
        {"match.env = SLURM_JOB_ID=*, !A=, B = x", ""},
        {"match.env =",
         "match.env has no value: expected a list of variables such as SLURM_JOB_ID=*"},
        {"match.env = SLURM_JOB_ID", "SLURM_JOB_ID: expected NAME=glob, such as SLURM_JOB_ID=*"},
        {"match.env = =x", "=x: expected NAME=glob, such as SLURM_JOB_ID=*"},
        {"match.env = A=b,,C=d", "an empty item; expected something between the commas"},
        {"match.env = A=[b", "[b: expected ] behind ["},
    };
    struct policy_settings settings;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(complaint("rule r", rows[i][0], &settings), rows[i][1]);
}

/* Every item of a list is reported at its own column. */
static void test_items_have_columns(void **state)
{
    (void)state;
    struct policy_settings settings;
    struct policy_text text = help_file("[default]\n  devices = 0, x, 1,, GPU-z # comment\n");
    assert_int_equal(policy_read(&text, help_alice(), &settings, &errors), POLICY_INVALID);
    assert_int_equal(errors.count, 3);
    assert_int_equal(errors.list[0].column, 16);
    assert_int_equal(errors.list[1].column, 21);
    assert_int_equal(errors.list[2].column, 23);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_no_sizes),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_not_yet),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_match_lists),
        cmocka_unit_test(test_items_have_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
