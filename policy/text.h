/* text.h -- one bounded line of text, built without malloc and without stdio.
 *
 * Knows: how to append strings and numbers. Must not know: what the text is for.
 * Every function is async-signal-safe, fork-safe and re-entrant; the caller owns the line and one
 * thread at a time writes to it. What does not fit is cut, and the line then ends in "...".
 */
#ifndef GPUSHIM_POLICY_TEXT_H
#define GPUSHIM_POLICY_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { TEXT_BYTES = 512 };

struct text_line {
    size_t length;          /* bytes used, without the terminating NUL */
    char bytes[TEXT_BYTES]; /* always NUL-terminated after text_start() */
};

void text_start(struct text_line *line);
void text_add(struct text_line *line, const char *string);
/* Appends `length` bytes; control characters and DEL become '?', so that a hostile name cannot
 * forge a second log line or drive a terminal. text_add() does the same. */
void text_add_bytes(struct text_line *line, const char *bytes, size_t length);
void text_add_number(struct text_line *line, uint64_t number);
void text_add_signed(struct text_line *line, int64_t number);
/* Appends a size as a person writes it: exact in the largest binary unit that divides it
 * ("4 GiB", "1536 MiB"), else bytes ("1000 bytes"). */
void text_add_size(struct text_line *line, uint64_t bytes);

#endif
