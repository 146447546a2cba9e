/* policy_text_test.c -- one bounded line: what it takes, how it is cut, what it never passes on. */
#include "policy_help.h"

static void test_numbers(void **state)
{
    (void)state;
    struct text_line line;
    text_start(&line);
    text_add_number(&line, 0);
    text_add(&line, " ");
    text_add_number(&line, UINT64_MAX);
    text_add(&line, " ");
    text_add_signed(&line, -1);
    text_add(&line, " ");
    text_add_signed(&line, INT64_MIN);
    text_add(&line, " ");
    text_add_signed(&line, INT64_MAX);
    assert_string_equal(line.bytes, "0 18446744073709551615 -1 -9223372036854775808 "
                                    "9223372036854775807");
    assert_int_equal(line.length, strlen(line.bytes));
}

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *shown;
    } rows[] = {
        {0, "0 bytes"},
        {1, "1 byte"},
        {1000, "1000 bytes"},
        {1023, "1023 bytes"},
        {1024, "1 KiB"},
        {1536, "1536 bytes"},
        {4 * GIB, "4 GiB"},
        {1536 * MIB, "1536 MiB"},
        {1024 * GIB, "1 TiB"},
        {1024 * TIB, "1 PiB"},
        {(uint64_t)1 << 63, "8 EiB"},
        {UINT64_MAX, "18446744073709551615 bytes"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct text_line line;
        text_start(&line);
        text_add_size(&line, rows[i].bytes);
        assert_string_equal(line.bytes, rows[i].shown);
    }
}

static void test_control_characters(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        const char *shown;
    } rows[] = {
        {"a\nb", 3, "a?b"},
        {"\x1B[2J", 4, "?[2J"},
        {"a\0b", 3, "a?b"},
        {"a\tb\rc\x7F", 6, "a?b?c?"},
        {"a\x9B;b", 4, "a?;b"}, /* of eight bits, and no UTF-8 */
        {"\xE2\x82z\x85", 4, "\xE2\x82z?"},
        {"\xC2\x9B"
         "2J",
         4, "??2J"}, /* U+009B drives terminals as ESC [ does */
        {"\xC2\xA9 \xC3\xA4", 5, "\xC2\xA9 \xC3\xA4"},
        {"\xE2\x82\xAC", 3, "\xE2\x82\xAC"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct text_line line;
        text_start(&line);
        text_add_bytes(&line, rows[i].bytes, rows[i].length);
        assert_string_equal(line.bytes, rows[i].shown);
    }
}

static void fill(struct text_line *line, size_t length)
{
    text_start(line);
    while (line->length < length)
        text_add(line, "x");
}

static void test_cut(void **state)
{
    (void)state;
    struct text_line line, again;
    fill(&line, TEXT_BYTES - 1);
    assert_int_equal(line.length, TEXT_BYTES - 1);
    assert_int_equal(line.bytes[TEXT_BYTES - 2], 'x'); /* it fits to the last byte */
    text_add(&line, "");
    assert_int_equal(line.bytes[TEXT_BYTES - 2], 'x');
    text_add(&line, "y");
    assert_int_equal(line.length, TEXT_BYTES - 1);
    assert_string_equal(line.bytes + TEXT_BYTES - 6, "xx...");
    again = line;
    text_add(&line, "more");
    text_add_number(&line, 5);
    assert_memory_equal(&line, &again, sizeof line);

    fill(&line, TEXT_BYTES - 3); /* cut in the middle of one addition */
    text_add(&line, "abcdef");
    assert_string_equal(line.bytes + TEXT_BYTES - 6, "xx...");
}

/* A character is never split: the dots begin where it would have begun. */
static void test_cut_between_characters(void **state)
{
    (void)state;
    for (size_t before = TEXT_BYTES - 12; before < TEXT_BYTES; before++) {
        struct text_line line;
        fill(&line, before);
        for (int i = 0; i < 8; i++)
            text_add(&line, "\xF0\x9F\x98\x80");
        assert_int_equal(line.length, TEXT_BYTES - 1);
        assert_int_equal(strlen(line.bytes), TEXT_BYTES - 1);
        assert_string_equal(line.bytes + TEXT_BYTES - 4, "...");
        size_t last = TEXT_BYTES - 2;
        while (line.bytes[last] == '.')
            last--;
        assert_int_equal((last + 1 - (before < last + 1 ? before : last + 1)) % 4, 0);
        struct text_line more = line;
        text_add(&more, "\xC3\xA4");
        assert_memory_equal(&more, &line, sizeof line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_control_characters),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
