/* statement.h -- a text taken apart into headers and assignments.
 *
 * Knows: lines, comments, blanks, encoding. Must not know: which sections, keys and values there
 * are. With the promises of policy.h; a reader is the caller's, and begins as {.text = the text}.
 */
#ifndef GPUSHIM_POLICY_STATEMENT_H
#define GPUSHIM_POLICY_STATEMENT_H

#include "errors.h"
#include "slice.h"

struct policy_reader {
    const struct policy_text *text;
    size_t offset;
    uint32_t line; /* the one read last */
};

enum policy_statement_kind {
    POLICY_HEADER,     /* [name] */
    POLICY_ASSIGNMENT, /* name = value */
    POLICY_BROKEN      /* neither: `why` says what was expected at `place` */
};

struct policy_statement {
    enum policy_statement_kind kind;
    struct policy_place place; /* of the header's bracket, the key, or what is wrong */
    struct policy_slice name;  /* trimmed; of a broken header what could be made out of it */
    struct policy_slice value; /* trimmed, may be empty */
    struct policy_place name_place, value_place;
    const char *why;
    bool is_header; /* the line was meant to be a header, broken or not */
};

/* The next line that says something. False: the text is at its end. */
bool policy_next_statement(struct policy_reader *reader, struct policy_statement *statement);

#endif
