/* read.c -- policy_read(): checks the whole text, then reads what it says of one process. */
#include "check.h"
#include "match.h"
#include "settings.h"
#include "statement.h"
#include "together.h"

#include <string.h>

/* One rule, from its header to the next. */
struct rule {
    struct policy_slice name;
    struct policy_place place; /* line 0: none */
    uint32_t end;
    struct policy_condition condition;
    bool sets_devices, sets_memory;
};

/* Reads the rule whose header was read last, and the header of the section behind it. */
static void read_rule(struct policy_reader *reader, struct rule *rule,
                      struct policy_statement *statement, bool *more)
{
    unsigned int position;
    while ((*more = policy_next_statement(reader, statement)) && statement->kind != POLICY_HEADER) {
        switch (policy_key_of(statement->name, &position)) {
        case POLICY_KEY_MATCH_USER:
            rule->condition.users = statement->value;
            break;
        case POLICY_KEY_MATCH_GROUP:
            rule->condition.groups = statement->value;
            break;
        case POLICY_KEY_MATCH_EXE:
            rule->condition.exes = statement->value;
            break;
        case POLICY_KEY_MATCH_CGROUP:
            rule->condition.cgroups = statement->value;
            break;
        case POLICY_KEY_MATCH_ENV:
            rule->condition.variables = statement->value;
            break;
        case POLICY_KEY_DEVICES:
            rule->sets_devices = true;
            break;
        case POLICY_KEY_MEMORY:
            rule->sets_memory = true;
            break;
        default:
            break;
        }
        rule->end = statement->place.line;
    }
}

/* Finds the first rule that holds. POLICY_OK, with place.line 0 where none does, or
 * POLICY_UNRESOLVED. */
static int choose_rule(const struct policy_text *text, const struct policy_subject *subject,
                       struct rule *rule, struct policy_errors *errors)
{
    struct policy_reader reader = {.text = text};
    struct policy_statement statement;
    struct policy_slice name;
    struct text_line why;
    bool more = policy_next_statement(&reader, &statement);
    while (more) {
        if (statement.kind != POLICY_HEADER ||
            policy_section_of(statement.name, &name) != POLICY_SECTION_RULE) {
            more = policy_next_statement(&reader, &statement);
            continue;
        }
        *rule = (struct rule){.name = name, .place = statement.place, .end = statement.place.line};
        read_rule(&reader, rule, &statement, &more);
        text_start(&why);
        enum policy_verdict verdict = policy_match(&rule->condition, subject, &why);
        if (verdict == POLICY_HOLDS)
            return POLICY_OK;
        if (verdict == POLICY_HOLDS_UNKNOWN) {
            struct text_line *line = policy_add_error(errors, rule->place);
            text_add(line, "rule ");
            policy_slice_show(line, name);
            text_add(line, ": ");
            text_add_bytes(line, why.bytes, why.length);
            return POLICY_UNRESOLVED;
        }
    }
    *rule = (struct rule){.place = {0, 0}};
    return POLICY_OK;
}

/* Stores [gpushim] and [default] where `rule_line` is 0, else the rule that begins there. */
static void store_sections(const struct policy_text *text, uint32_t rule_line,
                           struct policy_settings *settings)
{
    struct policy_reader reader = {.text = text};
    struct policy_statement statement;
    struct policy_slice name;
    unsigned int position;
    bool wanted = rule_line == 0; /* inline text may begin with what belongs to [default] */
    while (policy_next_statement(&reader, &statement)) {
        if (statement.kind == POLICY_HEADER) {
            wanted = rule_line == 0
                         ? policy_section_of(statement.name, &name) != POLICY_SECTION_RULE
                         : statement.place.line == rule_line;
        } else if (wanted) {
            enum policy_key key = policy_key_of(statement.name, &position);
            policy_store(settings, key, position, statement.value, statement.value_place);
        }
    }
}

/* [default] is stored; makes room for the rule to be laid over it. */
static void make_way(struct policy_settings *settings, const struct rule *rule)
{
    settings->rule = rule->name;
    settings->rule_line = rule->place.line;
    settings->rule_end = rule->end;
    if (rule->sets_devices && !rule->sets_memory) {
        memcpy(settings->base_memory_of, settings->memory_of, sizeof settings->memory_of);
        settings->base_devices = settings->devices;
        settings->base_devices_line = settings->devices_line;
        settings->base_devices_column = settings->devices_column;
    }
    if (rule->sets_devices || rule->sets_memory)
        memset(settings->memory_of, 0, sizeof settings->memory_of);
}

int policy_read(const struct policy_text *text, const struct policy_subject *subject,
                struct policy_settings *settings, struct policy_errors *errors)
{
    struct rule rule;
    memset(settings, 0, sizeof *settings);
    settings->source = text->name;
    errors->count = 0;
    if (text->length > POLICY_TEXT_MAX) {
        text_add(policy_add_error(errors, (struct policy_place){0, 0}),
                 "longer than 64 KiB, which no policy needs");
        return POLICY_INVALID;
    }
    policy_check_text(text, errors);
    policy_check_together(text, errors);
    if (errors->count > 0)
        return POLICY_INVALID;
    int rc = choose_rule(text, subject, &rule, errors);
    if (rc != POLICY_OK)
        return rc;
    store_sections(text, 0, settings);
    if (rule.place.line != 0) {
        make_way(settings, &rule);
        store_sections(text, rule.place.line, settings);
    }
    return POLICY_OK;
}
