/* policy_rule_test.c -- which rule is used, and how it is laid over [default]. */
#include "policy_help.h"

static void test_first_that_holds(void **state)
{
    (void)state;
    struct policy_settings settings = help_read(help_file("[gpushim]\n"
                                                          "log = syslog\n"
                                                          "log_level = info\n"
                                                          "[rule bob]\n"
                                                          "match.user = bob\n"
                                                          "devices = 0\n"
                                                          "[rule students]\n"
                                                          "match.group = students\n"
                                                          "devices = 3,1 # theirs\n"
                                                          "\n"
                                                          "[rule alice]\n"
                                                          "match.user = alice\n"
                                                          "devices = 2\n"
                                                          "[default]\n"
                                                          "devices = none\n"
                                                          "peer_access = deny\n"
                                                          "managed = ignore\n"));
    struct text_line line;
    assert_string_equal(help_slice(settings.rule), "students");
    assert_string_equal(help_slice(settings.devices), "3,1");
    assert_int_equal(settings.devices_line, 9);
    assert_int_equal(settings.devices_column, 11);
    assert_int_equal(settings.rule_line, 7);
    assert_int_equal(settings.rule_end, 9);
    assert_string_equal(help_slice(settings.log), "syslog");
    assert_int_equal(settings.log_level, POLICY_LOG_INFO);
    assert_int_equal(settings.peer_access.value, POLICY_DENY);
    assert_int_equal(settings.peer_access.line, 16);
    assert_int_equal(settings.managed.value, POLICY_IGNORE);
    assert_int_equal(settings.memory.kind, POLICY_SIZE_UNSET);

    text_start(&line);
    policy_describe_rule(&line, &settings, settings.devices_line);
    text_add(&line, "; ");
    policy_describe_rule(&line, &settings, settings.peer_access.line);
    text_add(&line, "; ");
    policy_describe_rule(&line, &settings, 0);
    assert_string_equal(line.bytes, "rule students of test.conf:9; [default] of test.conf:16; "
                                    "rule students of test.conf");
}

static void test_no_rule(void **state)
{
    (void)state;
    struct policy_settings settings =
        help_read(help_file("[rule bob]\nmatch.user = bob\ndevices = 0\n[default]\nmemory = 1G\n"));
    struct text_line line;
    assert_null(settings.rule.start);
    assert_int_equal(settings.rule_line, 0);
    assert_null(settings.devices.start);
    assert_int_equal(settings.memory.value, GIB);
    assert_string_equal(settings.source, "test.conf");
    text_start(&line);
    policy_describe_rule(&line, &settings, settings.memory.line);
    text_add(&line, "; ");
    policy_describe_rule(&line, &settings, 0);
    assert_string_equal(line.bytes, "[default] of test.conf:5; test.conf");
}

static void test_inline_before_any_section(void **state)
{
    (void)state;
    struct policy_settings settings = help_read(help_inline("devices=3,1;memory=8GiB"));
    assert_string_equal(help_slice(settings.devices), "3,1");
    assert_int_equal(settings.devices_line, 1);
    assert_int_equal(settings.devices_column, 9);
    assert_int_equal(settings.memory.value, 8 * GIB);
    assert_int_equal(settings.memory.line, 2);
}

/* A rule's memory replaces [default]'s memory and memory.K; its memory.K are laid over them. */
static void test_memory(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        uint64_t memory, of_0, of_1; /* in GiB; 0: not set */
        uint64_t base_0, base_1;
    } rows[] = {
        {"", 8, 4, 2, 0, 0},
        {"memory = 1G\n", 1, 0, 0, 0, 0},
        {"memory.1 = 1G\n", 8, 4, 1, 0, 0},
        {"memory.1 = 1G\nmemory = 3G\n", 3, 0, 1, 0, 0},
        {"devices = 3,1\n", 8, 0, 0, 4, 2}, /* counted in the list of [default] */
        {"devices = 3,1\nmemory.0 = 1G\n", 8, 1, 0, 4, 2},
        {"devices = 3,1\nmemory = 3G\n", 3, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char bytes[256];
        snprintf(bytes, sizeof bytes,
                 "[default]\nmemory = 8G\nmemory.0 = 4G\nmemory.1 = 2G\n[rule r]\n%s",
                 rows[i].rule);
        struct policy_settings settings = help_read(help_file(bytes));
        assert_int_equal(settings.memory.value, rows[i].memory * GIB);
        assert_int_equal(settings.memory_of[0].value, rows[i].of_0 * GIB);
        assert_int_equal(settings.memory_of[1].value, rows[i].of_1 * GIB);
        assert_int_equal(settings.base_memory_of[0].value, rows[i].base_0 * GIB);
        assert_int_equal(settings.base_memory_of[1].value, rows[i].base_1 * GIB);
    }
}

/* `none` is a value like any other: it takes a cap of [default] away. */
static void test_memory_none(void **state)
{
    (void)state;
    struct policy_settings settings =
        help_read(help_file("[default]\nmemory = 8G\nmemory.0 = 1G\n[rule r]\nmemory = none\n"));
    assert_int_equal(settings.memory.kind, POLICY_SIZE_NONE);
    assert_false(policy_caps_memory(&settings));
    assert_false(policy_caps_by_position(&settings));
}

static void test_what_is_asked_of_settings(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool all, none, caps, by_position;
    } rows[] = {
        {"", true, false, false, false},
        {"[default]\ndevices = all\n", true, false, false, false},
        {"[default]\ndevices = none\n", false, true, false, false},
        {"[default]\ndevices = 0-7\n", false, false, false, false},
        {"[default]\nmemory = none\n", true, false, false, false},
        {"[default]\nmemory = 1\n", true, false, true, false},
        {"[default]\nmemory = 100%\n", true, false, true, false},
        {"[default]\nmemory.63 = 1\n", true, false, true, true},
        {"[default]\nmemory.0 = none\n", true, false, false, true},
        {"[default]\nmemory.0 = 1\n[rule r]\ndevices = all\n", true, false, true, true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct policy_settings settings = help_read(help_file(rows[i].text));
        assert_int_equal(policy_grants_all(&settings), rows[i].all);
        assert_int_equal(policy_grants_none(&settings), rows[i].none);
        assert_int_equal(policy_caps_memory(&settings), rows[i].caps);
        assert_int_equal(policy_caps_by_position(&settings), rows[i].by_position);
    }
}

/* Rules that do not hold are checked all the same. */
static void test_errors_in_other_rules(void **state)
{
    (void)state;
    static struct policy_errors errors;
    struct policy_settings settings;
    struct policy_text text =
        help_file("[rule a]\n[rule b]\nmatch.user = bob\nmemory = x\nnvml = both\n");
    assert_int_equal(policy_read(&text, help_alice(), &settings, &errors), POLICY_INVALID);
    assert_int_equal(errors.count, 2);
    assert_int_equal(errors.list[0].line, 4);
    assert_int_equal(errors.list[1].line, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_that_holds),
        cmocka_unit_test(test_no_rule),
        cmocka_unit_test(test_inline_before_any_section),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_none),
        cmocka_unit_test(test_what_is_asked_of_settings),
        cmocka_unit_test(test_errors_in_other_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
