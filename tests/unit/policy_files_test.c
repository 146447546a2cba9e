/* policy_files_test.c -- policies/good: no errors. policies/bad: the comments at the top of each
 * file are its errors, exactly, one a line, as "# line:column: why". Its argument is the folder. */
#include "policy_help.h"

#include <dirent.h>
#include <stdlib.h>

static const char *folder;
static struct policy_errors errors;
static char bytes[POLICY_TEXT_MAX + 1];

static struct policy_text load(const char *kind, const char *file)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s/%s", folder, kind, file);
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    size_t length = fread(bytes, 1, sizeof bytes - 1, stream);
    bytes[length] = '\0';
    (void)fclose(stream);
    return (struct policy_text){file, bytes, length, false};
}

static void check_good(const char *file)
{
    struct policy_settings settings;
    struct policy_text text = load("good", file);
    if (policy_read(&text, help_alice(), &settings, &errors) != POLICY_OK)
        fail_msg("%s: %s", file, help_error(&errors, 0));
}

static void check_bad(const char *file)
{
    struct policy_settings settings;
    struct policy_text text = load("bad", file);
    int rc = policy_read(&text, help_alice(), &settings, &errors);
    char *line = bytes;
    if (strncmp(line, "\xEF\xBB\xBF", 3) == 0)
        line += 3;
    if (rc != POLICY_INVALID)
        fail_msg("%s: no error", file);
    for (size_t n = 0; n < errors.count; n++) {
        char *end = line + strcspn(line, "\r\n");
        bool at_end = *end == '\0';
        *end = '\0';
        const char *found = help_error(&errors, n);
        if (strncmp(line, "# ", 2) != 0 || strcmp(line + 2, found) != 0)
            fail_msg("%s: error %zu is\n%s\nnot\n%s", file, n + 1, found, line);
        line = at_end ? end : end + 1;
    }
    if (line[0] == '#' && line[1] == ' ' && line[2] >= '0' && line[2] <= '9')
        fail_msg("%s: there is no such error:\n%s", file, line);
}

static void check_all(const char *kind, void (*check)(const char *file))
{
    char path[4096];
    int count = 0;
    snprintf(path, sizeof path, "%s/%s", folder, kind);
    DIR *files = opendir(path);
    assert_non_null(files);
    for (struct dirent *entry; (entry = readdir(files));) {
        size_t length = strlen(entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 5, ".conf") != 0)
            continue;
        check(entry->d_name);
        count++;
    }
    (void)closedir(files);
    assert_true(count >= 5);
}

static void test_good(void **state)
{
    (void)state;
    check_all("good", check_good);
}

static void test_bad(void **state)
{
    (void)state;
    check_all("bad", check_bad);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good), cmocka_unit_test(test_bad)};
    folder = argc > 1 ? argv[1] : "policies";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
