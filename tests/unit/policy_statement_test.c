/* policy_statement_test.c -- lines: encoding, line ends, comments, sections, repetitions, inline
 * text. */
#include "policy_help.h"

static struct policy_errors errors;

/* Each text with all of its errors, one a line. */
struct row {
    const char *text;
    const char *errors;
};

static void check_rows(const struct row *rows, size_t count, bool is_inline)
{
    for (size_t i = 0; i < count; i++) {
        static char all[8192];
        struct policy_settings settings;
        struct policy_text text = help_file(rows[i].text);
        text.is_inline = is_inline;
        int rc = policy_read(&text, help_alice(), &settings, &errors);
        all[0] = '\0';
        for (size_t n = 0; n < errors.count; n++) {
            strcat(all, n ? "\n" : "");
            strcat(all, help_error(&errors, n));
        }
        assert_string_equal(all, rows[i].errors);
        assert_int_equal(rc, errors.count ? POLICY_INVALID : POLICY_OK);
    }
}

static void test_lines(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", ""},
        {"\n\n  \n\t\n", ""},
        {"# only a comment", ""},
        {"\xEF\xBB\xBF[default]\nmemory = 8GiB\n", ""},
        {"\xEF\xBB\xBF\xEF\xBB\xBF[default]",
         "1:4: expected key = value, or a section's header such as [default]"},
        {"[default]\r\nmemory = 8GiB\r\n\r\n", ""},
        {"[default]\rmemory = 8GiB\r", "1:10: a carriage return within a line"},
        {"[default] # why\nmemory=8GiB # why\n  # memory = x\n\tdevices\t=\t3 ,1\t\n", ""},
        {"[default]\nmemory = 8GiB# not a comment\n",
         "2:10: memory = 8GiB# not a comment: there is no such unit; units are K, M, G, T (or KiB "
         "... TiB), KB, "
         "MB, GB, TB and %"},
        {"[ default ]\nmemory = 1G", ""},
        {"[default]\nmemory\n",
         "2:1: expected key = value, or a section's header such as [default]"},
        {"[default]\n= 8GiB\n", "2:1: expected a key before ="},
        {"; old habits\n[default]\n // and older\n",
         "1:1: expected key = value; comments begin with #\n3:2: expected key = value; comments "
         "begin with #"},
        {"[default]\nmemory = 8\x01GiB\n", "2:11: a control character; expected text"},
        {"[default]\n# \x1B[2J\n", "2:3: a control character; expected text"},
        {"[default]\n# \xC2\x9B\n", "2:3: a control character; expected text"},
        {"[default]\n# \xE4\n", "2:3: this is not UTF-8 text"},         /* Latin-1 */
        {"[default]\n# \xC0\xAF\n", "2:3: this is not UTF-8 text"},     /* overlong */
        {"[default]\n# \xED\xA0\x80\n", "2:3: this is not UTF-8 text"}, /* surrogate */
        {"[default]\n# \xF4\x90\x80\x80\n", "2:3: this is not UTF-8 text"},
        {"[default]\n# \xE2\x82", "2:3: this is not UTF-8 text"}, /* cut off */
        {"# \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80\n[rule B\xC3\xBCro]\n", ""},
    };
    check_rows(rows, COUNT_OF(rows), false);
}

static void test_nul(void **state)
{
    (void)state;
    struct policy_settings settings;
    const struct policy_text text = {"test.conf", "[default]\n\0memory = 8GiB\n", 25, false};
    assert_int_equal(policy_read(&text, help_alice(), &settings, &errors), POLICY_INVALID);
    assert_int_equal(errors.count, 1);
    assert_string_equal(help_error(&errors, 0), "2:1: a NUL byte; expected text");
}

static void test_sections(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"[gpushim]\n[default]\n[rule a]\n[rule b]\n[rule two words]\n", ""},
        {"[default\nmemory = 8GiB\n", "1:9: expected ] at the end of the section's header"},
        {"[default] memory = 8GiB\n", "1:11: expected nothing but a comment behind ]"},
        {"[defualt]\nmemory = 8GiX\n", "1:1: unknown section [defualt]; did you mean [default]?\n"
                                       "2:10: memory = 8GiX: there is no such unit; units are K, "
                                       "M, G, T (or KiB ... TiB), KB, MB, GB, TB and %"},
        {"[rules a]\nmatch.user = alice\n",
         "1:1: unknown section [rules a]; did you mean [rule NAME]?"},
        {"[Default]\n", "1:1: unknown section [Default]; did you mean [default]?"},
        {"[]\nx = y\n", "1:1: unknown section []; expected [gpushim], [default] or [rule NAME]"},
        {"[students]\nmemory = 1\n",
         "1:1: unknown section [students]; expected [gpushim], [default] or [rule NAME]"},
        {"[rule]\n[rule  ]\n",
         "1:1: a rule needs a name: [rule NAME]\n2:1: a rule needs a name: [rule NAME]"},
        {"[default x]\n", "1:10: only a rule has a name"},
        {"[default]\n[rule a]\n[default]\n",
         "3:1: [default] is given twice; the first is on line 1"},
        {"[gpushim]\n\n[gpushim]\n", "3:1: [gpushim] is given twice; the first is on line 1"},
        {"[rule a]\n[rule b]\n[ rule  a ]\n[rule a b]\n",
         "3:1: [rule a] is given twice; the first is on line 1"},
        {"[rule a]\n[rule a]\n[rule a]\n", "2:1: [rule a] is given twice; the first is on line 1\n"
                                           "3:1: [rule a] is given twice; the first is on line 1"},
    };
    check_rows(rows, COUNT_OF(rows), false);
}

static void test_keys(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"[default]\nmemroy = 8GiB\n", "2:1: unknown key memroy; did you mean memory?"},
        {"[default]\nMemory = 8GiB\n", "2:1: unknown key Memory; did you mean memory?"},
        {"[default]\ndevice = 3\n", "2:1: unknown key device; did you mean devices?"},
        {"[default]\npeer-access = deny\n",
         "2:1: unknown key peer-access; did you mean peer_access?"},
        {"[rule a]\nmatch.users = alice\n",
         "2:1: unknown key match.users; did you mean match.user?"},
        {"[gpushim]\nloglevel = info\n", "2:1: unknown key loglevel; did you mean log_level?"},
        {"[gpushim]\nverbosity = 3\n",
         "2:1: unknown key verbosity; this section takes log log_level"},
        {"[gpushim]\nmemory = 8GiB\n", "2:1: memory belongs in [default] or a [rule NAME]"},
        {"[default]\nlog = stderr\n", "2:1: log belongs in [gpushim]"},
        {"[default]\nmatch.user = alice\n", "2:1: match.user belongs in a [rule NAME]"},
        {"[default]\nmemory = 1G\ndevices = 3\nmemory = 2G\n",
         "4:1: memory is given twice; the first is on line 2"},
        {"[default]\nmemory.1 = 1G\nmemory.0 = 1G\nmemory.01 = x\n",
         "4:1: memory.01 is given twice; the first is on line 2\n"
         "4:13: memory.K = x: expected one of none, a size such as 8GiB, a share of the card such "
         "as 40%"},
        {"[rule a]\nmemory = 1G\n[rule b]\nmemory = 1G\n", ""},
        {"memory = 8GiB\ndevices = x\n",
         "1:1: memory stands before any section; expected a header above it, such as [default]\n"
         "2:11: x: expected an nvidia-smi index (3), a range (0-3), a UUID (GPU-... or MIG-...) or "
         "a PCI id "
         "(0000:41:00.0)"},
        {"memory = 8GiB\n[default]\ndevices = 3\n",
         "1:1: memory stands before any section; expected a header above it, such as [default]"},
    };
    check_rows(rows, COUNT_OF(rows), false);
}

static void test_inline(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", ""},
        {";;;", ""},
        {"devices=3,1;memory=8GiB", ""},
        {"[default]; devices = 1; memory = 8GiB", ""},
        {"[default]\ndevices = 1\nmemory = 8GiB\n", ""},
        {"# a comment; memory = 8GiB", ""},
        {"# a comment; memory = 8GiX", "2:11: memory = 8GiX: there is no such unit; units are K, "
                                       "M, G, T (or KiB ... TiB), KB, MB, GB, TB "
                                       "and %"},
        {"devices=3;[default];memory=1G", "2:1: [default] is given twice; the first is on line 1"},
        {"devices=3;[gpushim];log_level=info;[rule a];match.user=alice", ""},
        {"log_level=info", "1:1: log_level belongs in [gpushim]"},
        {"memory=1G;memory=2G", "2:1: memory is given twice; the first is on line 1"},
        {"[default]\nmemory=1G; devices=x", "3:10: x: expected an nvidia-smi index (3), a range "
                                            "(0-3), a UUID (GPU-... or MIG-...) or a PCI id "
                                            "(0000:41:00.0)"},
    };
    check_rows(rows, COUNT_OF(rows), true);
}

static void test_too_long(void **state)
{
    (void)state;
    static char bytes[POLICY_TEXT_MAX + 2];
    struct policy_settings settings;
    struct text_line line;
    memset(bytes, '#', sizeof bytes - 1);
    struct policy_text text = help_file(bytes);
    assert_int_equal(policy_read(&text, help_alice(), &settings, &errors), POLICY_INVALID);
    assert_int_equal(errors.count, 1);
    text_start(&line);
    policy_describe_error(&line, "test.conf", &errors.list[0]);
    assert_string_equal(line.bytes, "test.conf: longer than 64 KiB, which no policy needs");
    text.length = POLICY_TEXT_MAX;
    assert_int_equal(policy_read(&text, help_alice(), &settings, &errors), POLICY_OK);
}

/* All errors are counted, and the first ones kept. */
static void test_many_errors(void **state)
{
    (void)state;
    static char bytes[POLICY_TEXT_MAX];
    struct policy_settings settings;
    for (size_t i = 0; i < 10000; i++)
        memcpy(bytes + 2 * i, "x\n", 2);
    struct policy_text text = help_file(bytes);
    assert_int_equal(policy_read(&text, help_alice(), &settings, &errors), POLICY_INVALID);
    assert_int_equal(errors.count, 10000);
    assert_int_equal(errors.list[POLICY_ERRORS_MAX - 1].line, POLICY_ERRORS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),       cmocka_unit_test(test_nul),
        cmocka_unit_test(test_sections),    cmocka_unit_test(test_keys),
        cmocka_unit_test(test_inline),      cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_many_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
