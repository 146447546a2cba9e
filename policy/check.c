/* check.c -- see check.h. */
#include "check.h"
#include "names.h"
#include "statement.h"
#include "value.h"

#include <string.h>

struct check {
    const struct policy_text *text;
    struct policy_errors *errors;
    enum policy_section section;
    uint32_t gpushim_line, default_line; /* where they began; 0: not yet */
    uint32_t line_of[POLICY_KEYS];       /* where this section sets a key; 0: it does not */
    uint32_t line_of_memory[POLICY_GPUS_MAX];
};

enum policy_section policy_section_of(struct policy_slice inside, struct policy_slice *name)
{
    size_t end = 0;
    while (end < inside.length && !policy_is_space(inside.start[end]))
        end++;
    *name = policy_slice_trim(policy_slice_after(inside, end));
    inside = policy_slice_before(inside, end);
    if (policy_slice_is(inside, "rule"))
        return POLICY_SECTION_RULE;
    if (policy_slice_is(inside, "gpushim"))
        return POLICY_SECTION_GPUSHIM;
    return policy_slice_is(inside, "default") ? POLICY_SECTION_DEFAULT : POLICY_SECTION_UNKNOWN;
}

/* The section that was probably meant. */
static enum policy_section section_like(struct policy_slice inside)
{
    struct policy_slice word = policy_slice_before(inside, policy_slice_find(inside, ' '));
    if (policy_slice_resembles(word, policy_slice_of("default")))
        return POLICY_SECTION_DEFAULT;
    if (policy_slice_resembles(word, policy_slice_of("gpushim")))
        return POLICY_SECTION_GPUSHIM;
    return policy_slice_resembles(word, policy_slice_of("rule")) ? POLICY_SECTION_RULE
                                                                 : POLICY_SECTION_UNKNOWN;
}

static void add_first_line(struct text_line *why, uint32_t line)
{
    text_add(why, " is given twice; the first is on line ");
    text_add_number(why, line);
}

static void check_once(struct check *check, struct policy_place place, uint32_t *first_line,
                       const char *header)
{
    if (*first_line == 0) {
        *first_line = place.line;
        return;
    }
    struct text_line *why = policy_add_error(check->errors, place);
    text_add(why, header);
    add_first_line(why, *first_line);
}

static void check_rule_name(struct check *check, struct policy_place place,
                            struct policy_slice name)
{
    if (name.length == 0)
        text_add(policy_add_error(check->errors, place), "a rule needs a name: [rule NAME]");
    else
        policy_note_name(&check->errors->names, check->text, name, place);
}

static void complain_section(struct check *check, const struct policy_statement *statement)
{
    static const char names[][12] = {[POLICY_SECTION_GPUSHIM] = "[gpushim]",
                                     [POLICY_SECTION_DEFAULT] = "[default]",
                                     [POLICY_SECTION_RULE] = "[rule NAME]"};
    struct text_line *why = policy_add_error(check->errors, statement->place);
    text_add(why, "unknown section [");
    policy_slice_show(why, statement->name);
    check->section = section_like(statement->name);
    if (check->section == POLICY_SECTION_UNKNOWN) {
        text_add(why, "]; expected [gpushim], [default] or [rule NAME]");
        return;
    }
    text_add(why, "]; did you mean ");
    text_add(why, names[check->section]);
    text_add(why, "?");
}

static void check_header(struct check *check, const struct policy_statement *statement)
{
    struct policy_slice name;
    memset(check->line_of, 0, sizeof check->line_of);
    memset(check->line_of_memory, 0, sizeof check->line_of_memory);
    check->section = policy_section_of(statement->name, &name);
    switch (check->section) {
    case POLICY_SECTION_RULE:
        check_rule_name(check, statement->place, name);
        return;
    case POLICY_SECTION_GPUSHIM:
        check_once(check, statement->place, &check->gpushim_line, "[gpushim]");
        break;
    case POLICY_SECTION_DEFAULT:
        check_once(check, statement->place, &check->default_line, "[default]");
        break;
    default:
        complain_section(check, statement);
        return;
    }
    if (name.length > 0)
        text_add(policy_add_error(check->errors,
                                  policy_place_of(statement->name_place, statement->name, name)),
                 "only a rule has a name");
}

/* The header could not be read; its keys are still looked at as far as it can be told. */
static void check_broken_header(struct check *check, const struct policy_statement *statement)
{
    struct policy_slice name;
    memset(check->line_of, 0, sizeof check->line_of);
    memset(check->line_of_memory, 0, sizeof check->line_of_memory);
    check->section = policy_section_of(statement->name, &name);
}

static void complain_unknown_key(struct check *check, const struct policy_statement *statement)
{
    enum policy_key meant = policy_key_like(statement->name, check->section);
    struct text_line *why = policy_add_error(check->errors, statement->place);
    text_add(why, "unknown key ");
    policy_slice_show(why, statement->name);
    if (meant != POLICY_KEY_UNKNOWN) {
        text_add(why, "; did you mean ");
        text_add(why, policy_key_name(meant));
        text_add(why, "?");
        return;
    }
    text_add(why, "; this section takes");
    for (int key = 0; key < POLICY_KEYS; key++) {
        if (policy_key_belongs((enum policy_key)key, check->section) &&
            *policy_key_now((enum policy_key)key)) {
            text_add(why, " ");
            text_add(why, policy_key_name((enum policy_key)key));
        }
    }
}

static bool complain_key(struct check *check, const struct policy_statement *statement,
                         enum policy_key key, unsigned int position)
{
    if (key == POLICY_KEY_UNKNOWN) {
        complain_unknown_key(check, statement);
        return true;
    }
    bool misplaced = !policy_key_belongs(key, check->section);
    bool no_position = position == POLICY_GPUS_MAX;
    bool planned = !*policy_key_now(key);
    if (!misplaced && !no_position && !planned)
        return false;
    struct text_line *why = policy_add_error(check->errors, statement->place);
    policy_slice_show(why, statement->name);
    if (no_position) {
        text_add(why,
                 ": expected memory.K, where K is a position in devices: 0 is the first, 63 the "
                 "highest");
    } else if (misplaced) {
        text_add(why, " belongs in ");
        policy_key_add_home(why, key);
    } else {
        text_add(why, ": ");
        policy_add_not_yet(why, key);
    }
    return true;
}

static void check_repetition(struct check *check, const struct policy_statement *statement,
                             enum policy_key key, unsigned int position)
{
    uint32_t *line = &check->line_of[key];
    if (key == POLICY_KEY_MEMORY_OF)
        line = &check->line_of_memory[position];
    if (*line == 0) {
        *line = statement->place.line;
        return;
    }
    struct text_line *why = policy_add_error(check->errors, statement->place);
    policy_slice_show(why, statement->name);
    add_first_line(why, *line);
}

/* A key before any section: what is typed into GPUSHIM_POLICY belongs to [default]; a file says so.
 */
static void begin_without_header(struct check *check, const struct policy_statement *statement)
{
    check->section = POLICY_SECTION_DEFAULT;
    check->default_line = check->text->is_inline ? statement->place.line : 0;
    if (!check->text->is_inline) {
        struct text_line *why = policy_add_error(check->errors, statement->place);
        policy_slice_show(why, statement->name);
        text_add(why, " stands before any section; expected a header above it, such as [default]");
    }
}

static void check_assignment(struct check *check, const struct policy_statement *statement)
{
    unsigned int position;
    enum policy_key key = policy_key_of(statement->name, &position);
    if (check->section == POLICY_SECTION_OUTSIDE)
        begin_without_header(check, statement);
    if (check->section == POLICY_SECTION_UNKNOWN || complain_key(check, statement, key, position))
        return;
    check_repetition(check, statement, key, position);
    policy_check_value(key, statement->value, statement->value_place, check->errors);
}

void policy_check_text(const struct policy_text *text, struct policy_errors *errors)
{
    struct check check = {.text = text, .errors = errors};
    struct policy_reader reader = {.text = text};
    struct policy_statement statement;
    errors->names.count = 0;
    while (policy_next_statement(&reader, &statement)) {
        if (statement.kind == POLICY_BROKEN) {
            text_add(policy_add_error(errors, statement.place), statement.why);
            if (statement.is_header)
                check_broken_header(&check, &statement);
        } else if (statement.kind == POLICY_HEADER) {
            check_header(&check, &statement);
        } else {
            check_assignment(&check, &statement);
        }
    }
    policy_check_names(text, errors);
}
