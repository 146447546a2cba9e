/* text.c -- see text.h.
 *
 * A line that was cut is recognised by its being full: whatever is added later finds it full and
 * cuts it at the same place again.
 */
#include "text.h"

#include <stdbool.h>
#include <string.h>

enum { ROOM = TEXT_BYTES - 1, DOTS = 3, CHARACTER_BYTES = 4 };

static bool continues_character(unsigned char byte) { return (byte & 0xC0) == 0x80; }

/* How many continuation bytes follow this byte, if it begins a character. */
static int continuations_after(unsigned char byte)
{
    if (byte < 0xC2 || byte > 0xF4)
        return 0;
    return byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
}

/* Fills the end of a full line with dots, from the beginning of the character that would be split.
 */
static void cut(struct text_line *line)
{
    size_t from = ROOM - DOTS;
    for (int i = 1; i < CHARACTER_BYTES && continues_character((unsigned char)line->bytes[from]);
         i++)
        from--;
    memset(line->bytes + from, '.', ROOM - from);
}

void text_start(struct text_line *line)
{
    line->length = 0;
    line->bytes[0] = '\0';
}

void text_add_bytes(struct text_line *line, const char *bytes, size_t length)
{
    int expected = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if (line->length == ROOM) {
            cut(line);
            break;
        }
        /* A stray continuation byte is, to many a terminal, a control character of eight bits. */
        if (byte < 0x20 || byte == 0x7F || (continues_character(byte) && expected == 0))
            byte = '?';
        expected = continues_character(byte) ? expected - 1 : continuations_after(byte);
        /* U+0080 to U+009F drive terminals too. */
        bool c1_begins =
            byte == 0xC2 && i + 1 < length && ((unsigned char)bytes[i + 1] & 0xE0) == 0x80;
        bool c1_ends = i > 0 && (unsigned char)bytes[i - 1] == 0xC2 && (byte & 0xE0) == 0x80;
        line->bytes[line->length++] = (char)(c1_begins || c1_ends ? '?' : byte);
    }
    line->bytes[line->length] = '\0';
}

void text_add(struct text_line *line, const char *string)
{
    text_add_bytes(line, string, strlen(string));
}

void text_add_number(struct text_line *line, uint64_t number)
{
    char digits[20];
    size_t first = sizeof digits;
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    text_add_bytes(line, digits + first, sizeof digits - first);
}

void text_add_signed(struct text_line *line, int64_t number)
{
    if (number < 0)
        text_add(line, "-");
    text_add_number(line, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void text_add_size(struct text_line *line, uint64_t bytes)
{
    static const char units[][4] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int unit = -1;
    while (bytes != 0 && bytes % 1024 == 0 && unit < 5) {
        bytes /= 1024;
        unit++;
    }
    text_add_number(line, bytes);
    text_add(line, " ");
    if (unit >= 0)
        text_add(line, units[unit]);
    else
        text_add(line, bytes == 1 ? "byte" : "bytes");
}
