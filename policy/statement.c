/* statement.c -- see statement.h. */
#include "statement.h"

#include <string.h>

static const char byte_order_mark[] = "\xEF\xBB\xBF";

/* The next line as it stands, without its end. */
static bool next_line(struct policy_reader *reader, struct policy_slice *line)
{
    const struct policy_text *text = reader->text;
    if (reader->offset >= text->length)
        return false;
    struct policy_slice rest = {text->bytes + reader->offset, text->length - reader->offset};
    size_t end = policy_slice_find(rest, '\n');
    if (text->is_inline)
        end = policy_slice_find(policy_slice_before(rest, end), ';');
    *line = policy_slice_before(rest, end);
    if (line->length > 0 && line->start[line->length - 1] == '\r')
        line->length--;
    reader->offset += end + 1;
    reader->line++;
    return true;
}

/* Bytes of the UTF-8 character at the start of a text that is not empty; 0: there is none. Not
 * UTF-8: stray or missing continuation bytes, overlong forms, surrogates, beyond U+10FFFF. */
static size_t character_bytes(struct policy_slice text)
{
    const unsigned char *c = (const unsigned char *)text.start;
    if (c[0] < 0x80)
        return 1;
    size_t length = c[0] >= 0xF0 ? 4 : c[0] >= 0xE0 ? 3 : 2;
    if (c[0] < 0xC2 || c[0] > 0xF4 || length > text.length)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((c[i] & 0xC0) != 0x80)
            return 0;
    }
    if ((c[0] == 0xE0 && c[1] < 0xA0) || (c[0] == 0xED && c[1] > 0x9F) ||
        (c[0] == 0xF0 && c[1] < 0x90) || (c[0] == 0xF4 && c[1] > 0x8F))
        return 0;
    return length;
}

/* Position of the first byte that no policy text has, and what it is; or the length. */
static size_t find_stray_byte(struct policy_slice line, const char **why)
{
    for (size_t i = 0; i < line.length;) {
        unsigned char byte = (unsigned char)line.start[i];
        size_t length = character_bytes(policy_slice_after(line, i));
        *why = length == 0    ? "this is not UTF-8 text"
               : byte == 0    ? "a NUL byte; expected text"
               : byte == '\r' ? "a carriage return within a line"
                              : "a control character; expected text";
        bool is_c1 = byte == 0xC2 && length == 2 && (unsigned char)line.start[i + 1] < 0xA0;
        if (length == 0 || (byte < 0x20 && byte != '\t') || byte == 0x7F || is_c1)
            return i;
        i += length;
    }
    return line.length;
}

/* A '#' begins a comment at the start of the line or after white space. */
static struct policy_slice without_comment(struct policy_slice line)
{
    for (size_t i = 0; i < line.length; i++) {
        if (line.start[i] == '#' && (i == 0 || policy_is_space(line.start[i - 1])))
            return policy_slice_before(line, i);
    }
    return line;
}

static void broken(struct policy_statement *statement, struct policy_place place, const char *why)
{
    statement->kind = POLICY_BROKEN;
    statement->place = place;
    statement->why = why;
}

static void split_header(struct policy_statement *statement, struct policy_slice line)
{
    size_t end = policy_slice_find(line, ']');
    struct policy_slice inside = policy_slice_before(line, end);
    statement->kind = POLICY_HEADER;
    statement->is_header = true;
    statement->name = policy_slice_trim(policy_slice_after(inside, 1));
    statement->name_place = policy_place_of(statement->place, line, statement->name);
    if (end == line.length) {
        broken(statement, policy_place_of(statement->place, line, policy_slice_after(line, end)),
               "expected ] at the end of the section's header");
    } else if (end + 1 < line.length) {
        struct policy_slice rest = policy_slice_trim(policy_slice_after(line, end + 1));
        broken(statement, policy_place_of(statement->place, line, rest),
               "expected nothing but a comment behind ]");
    }
}

static void split_assignment(struct policy_statement *statement, struct policy_slice line)
{
    size_t equals = policy_slice_find(line, '=');
    statement->kind = POLICY_ASSIGNMENT;
    statement->name = policy_slice_trim(policy_slice_before(line, equals));
    statement->name_place = statement->place;
    if (equals == line.length) {
        bool foreign = line.start[0] == ';' || policy_slice_begins(line, "//");
        broken(statement, statement->place,
               foreign ? "expected key = value; comments begin with #"
                       : "expected key = value, or a section's header such as [default]");
        return;
    }
    if (statement->name.length == 0) {
        broken(statement, statement->place, "expected a key before =");
        return;
    }
    statement->value = policy_slice_trim(policy_slice_after(line, equals + 1));
    statement->value_place = policy_place_of(statement->place, line, statement->value);
}

bool policy_next_statement(struct policy_reader *reader, struct policy_statement *statement)
{
    struct policy_slice line;
    while (next_line(reader, &line)) {
        struct policy_place place = {reader->line, 1};
        const struct policy_slice whole = line;
        *statement =
            (struct policy_statement){.place = place, .name = policy_slice_before(line, 0)};
        if (reader->line == 1 && policy_slice_begins(line, byte_order_mark))
            line = policy_slice_after(line, sizeof byte_order_mark - 1);
        size_t stray = find_stray_byte(line, &statement->why);
        if (stray < line.length) {
            broken(statement, policy_place_of(place, whole, policy_slice_after(line, stray)),
                   statement->why);
            line = policy_slice_trim(line);
            statement->is_header = line.length > 0 && line.start[0] == '[';
            return true;
        }
        line = policy_slice_trim(without_comment(line));
        if (line.length == 0)
            continue;
        statement->place = policy_place_of(place, whole, line);
        if (line.start[0] == '[')
            split_header(statement, line);
        else
            split_assignment(statement, line);
        return true;
    }
    return false;
}
