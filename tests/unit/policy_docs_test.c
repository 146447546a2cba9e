/* policy_docs_test.c -- the example and the manual say what keys.def says. Its arguments are the
 * two files. */
#include "keys.h"
#include "policy_help.h"

#include <stdlib.h>

static const char *example_path = "gpushim.conf.example", *manual_path = "docs/gpushim.conf.5";
static char bytes[POLICY_TEXT_MAX + 1];

static const struct row {
    const char *name, *now, *later, *fallback, *prose;
} rows[] = {
#define POLICY_KEY(identifier, section, name, now, later, fallback, prose)                         \
    {name, now, later, fallback, prose},
#include "keys.def"
#undef POLICY_KEY
};

static struct policy_text load(const char *path)
{
    FILE *stream = fopen(path, "rb");
    if (!stream)
        fail_msg("%s cannot be read", path);
    size_t length = fread(bytes, 1, sizeof bytes - 1, stream);
    bytes[length] = '\0';
    (void)fclose(stream);
    return (struct policy_text){path, bytes, length, false};
}

static void check_example(void)
{
    static struct policy_errors errors;
    struct policy_settings settings;
    const struct policy_text text = {example_path, bytes, strlen(bytes), false};
    if (policy_read(&text, help_alice(), &settings, &errors) != POLICY_OK)
        fail_msg("%s:%s", example_path, help_error(&errors, 0));
}

static void test_example_has_no_errors(void **state)
{
    (void)state;
    (void)load(example_path);
    check_example();
}

/* "#key = value" is a setting to be switched on; "# text" is prose. With all of them on, the
 * example still has no errors. */
static void test_example_with_all_settings_on(void **state)
{
    (void)state;
    (void)load(example_path);
    for (char *line = bytes; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (line[0] == '#' && ((line[1] >= 'a' && line[1] <= 'z') || line[1] == '['))
            line[0] = ' ';
    }
    check_example();
}

/* Does a line of the file begin with this, perhaps behind a '#'? */
static bool shows(const char *assignment)
{
    for (const char *line = bytes; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line[0] == '#' ? line + 1 : line, assignment, strlen(assignment)) == 0)
            return true;
    }
    return false;
}

static void test_example_shows_every_enforced_key(void **state)
{
    (void)state;
    (void)load(example_path);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char assignment[64];
        if (!*rows[i].now || *rows[i].later)
            continue;
        bool any_position = strcmp(rows[i].name, "memory.K") == 0;
        snprintf(assignment, sizeof assignment, any_position ? "memory.0 =" : "%s =", rows[i].name);
        if (!shows(assignment))
            fail_msg("%s does not show %s", example_path, rows[i].name);
    }
}

static void test_manual_has_a_row_for_every_key(void **state)
{
    (void)state;
    (void)load(manual_path);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char row[256];
        snprintf(row, sizeof row, ".It Li %s Ta %s Ta %s Ta %s\n", rows[i].name,
                 *rows[i].now ? rows[i].now : "-", *rows[i].later ? rows[i].later : "-",
                 *rows[i].fallback ? rows[i].fallback : "-");
        if (!strstr(bytes, row))
            fail_msg("%s has no row\n%s", manual_path, row);
        snprintf(row, sizeof row, ".It Li %s\n", rows[i].name);
        if (!strstr(bytes, row))
            fail_msg("%s does not explain %s", manual_path, rows[i].name);
    }
}

static void test_manual_has_no_other_row(void **state)
{
    (void)state;
    (void)load(manual_path);
    size_t found = 0;
    for (const char *row = bytes; (row = strstr(row, ".It Li ")); row++) {
        if (strstr(row, " Ta ") && strstr(row, " Ta ") < strchr(row, '\n'))
            found++;
    }
    assert_int_equal(found, COUNT_OF(rows) + 1); /* and the heading */
}

/* The parser's own table is made of arrays of a fixed size: nothing was cut. */
static void test_table_is_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        enum policy_key key = (enum policy_key)i;
        unsigned int position;
        assert_string_equal(policy_key_name(key), rows[i].name);
        assert_string_equal(policy_key_now(key), rows[i].now);
        assert_string_equal(policy_key_later(key), rows[i].later);
        assert_true(*rows[i].prose);
        assert_int_equal(
            policy_key_of((struct policy_slice){rows[i].name, strlen(rows[i].name)}, &position),
            key);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example_has_no_errors),
        cmocka_unit_test(test_example_with_all_settings_on),
        cmocka_unit_test(test_example_shows_every_enforced_key),
        cmocka_unit_test(test_manual_has_a_row_for_every_key),
        cmocka_unit_test(test_manual_has_no_other_row),
        cmocka_unit_test(test_table_is_whole),
    };
    example_path = argc > 1 ? argv[1] : example_path;
    manual_path = argc > 2 ? argv[2] : manual_path;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
