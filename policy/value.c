/* value.c -- see value.h. */
#include "value.h"
#include "device.h"
#include "match.h"
#include "size.h"

/* A value of a key is one of these alternatives. What is not in capitals is a word for itself. */
enum alternative {
    WORD,
    SIZE,      /* 8GiB */
    PERCENT,   /* 40% */
    COUNT,     /* a whole number from 1 */
    SELECTION, /* a COUNT, and perhaps the word nvlink */
    PATH,      /* an absolute path */
    DEVICES,   /* lists, which report each item by itself */
    USERS,
    GROUPS,
    GLOBS,
    ENVIRONMENT
};

static enum alternative kind_of(struct policy_slice name)
{
    static const char names[][12] = {[SIZE] = "SIZE",   [PERCENT] = "PERCENT",
                                     [COUNT] = "COUNT", [SELECTION] = "SELECTION",
                                     [PATH] = "PATH",   [DEVICES] = "DEVICES",
                                     [USERS] = "USERS", [GROUPS] = "GROUPS",
                                     [GLOBS] = "GLOBS", [ENVIRONMENT] = "ENVIRONMENT"};
    for (int kind = SIZE; kind <= ENVIRONMENT; kind++) {
        if (policy_slice_is(name, names[kind]))
            return (enum alternative)kind;
    }
    return WORD;
}

static bool is_list(enum alternative kind) { return kind >= DEVICES; }

/* Takes the next alternative from a column of keys.def. */
static bool next_alternative(struct policy_slice *rest, struct policy_slice *name)
{
    if (rest->length == 0)
        return false;
    size_t bar = policy_slice_find(*rest, '|');
    *name = policy_slice_trim(policy_slice_before(*rest, bar));
    *rest = policy_slice_after(*rest, bar < rest->length ? bar + 1 : bar);
    return true;
}

static bool is_size(struct policy_slice value, enum policy_size_kind kind)
{
    struct policy_size size;
    const char *why;
    return policy_parse_size(value, &size, &why) && size.kind == kind;
}

static bool is_count(struct policy_slice value)
{
    uint64_t number;
    return policy_slice_number(value, POLICY_GPUS_MAX, &number) && number > 0;
}

static bool is_one(struct policy_slice value, struct policy_slice name)
{
    size_t blank = policy_slice_find(value, ' ');
    switch (kind_of(name)) {
    case WORD:
        return policy_slice_same(value, name);
    case SIZE:
        return is_size(value, POLICY_SIZE_BYTES);
    case PERCENT:
        return is_size(value, POLICY_SIZE_PERCENT);
    case COUNT:
        return is_count(value);
    case SELECTION:
        return is_count(policy_slice_before(value, blank)) &&
               (blank == value.length ||
                policy_slice_is(policy_slice_trim(policy_slice_after(value, blank)), "nvlink"));
    case PATH:
        return policy_slice_begins(value, "/") && value.length <= POLICY_PATH_MAX;
    default:
        return true;
    }
}

/* Is the value one of these? `*list` is the kind of list that it can also be, else WORD. */
static bool is_any(struct policy_slice value, const char *column, enum alternative *list)
{
    struct policy_slice rest = policy_slice_of(column), name;
    *list = WORD;
    while (next_alternative(&rest, &name)) {
        enum alternative kind = kind_of(name);
        if (is_list(kind))
            *list = kind;
        else if (is_one(value, name))
            return true;
    }
    return false;
}

static void check_list(enum alternative list, struct policy_slice value, struct policy_place place,
                       struct policy_errors *errors)
{
    switch (list) {
    case DEVICES:
        policy_check_devices(value, place, errors);
        break;
    case USERS:
    case GROUPS:
        policy_check_people(value, place, errors);
        break;
    case ENVIRONMENT:
        policy_check_variables(value, place, errors);
        break;
    default:
        policy_check_globs(value, place, errors);
        break;
    }
}

static void add_alternative(struct text_line *line, struct policy_slice name)
{
    switch (kind_of(name)) {
    case SIZE:
        text_add(line, "a size such as 8GiB");
        break;
    case PERCENT:
        text_add(line, "a share of the card such as 40%");
        break;
    case PATH:
        text_add(line, "an absolute path of at most ");
        text_add_number(line, POLICY_PATH_MAX);
        text_add(line, " bytes");
        break;
    case DEVICES:
        text_add(line, "a list of GPUs such as 3,1");
        break;
    case USERS:
        text_add(line, "a list of users");
        break;
    case GROUPS:
        text_add(line, "a list of groups");
        break;
    case GLOBS:
        text_add(line, "a list of globs such as python*");
        break;
    case ENVIRONMENT:
        text_add(line, "a list of variables such as SLURM_JOB_ID=*");
        break;
    default:
        policy_slice_show(line, name);
        break;
    }
}

static void add_expected(struct text_line *line, const char *column)
{
    struct policy_slice rest = policy_slice_of(column), name;
    bool choice = policy_slice_find(rest, '|') < rest.length;
    text_add(line, choice ? "expected one of " : "expected ");
    while (next_alternative(&rest, &name)) {
        add_alternative(line, name);
        text_add(line, rest.length ? ", " : "");
    }
}

static void add_resembling(struct text_line *line, struct policy_slice value, const char *column)
{
    struct policy_slice rest = policy_slice_of(column), name;
    while (next_alternative(&rest, &name)) {
        if (kind_of(name) == WORD && policy_slice_resembles(value, name)) {
            text_add(line, "; did you mean ");
            policy_slice_show(line, name);
            text_add(line, "?");
            return;
        }
    }
}

/* What is wrong with a value that looks like a size, or NULL. */
static const char *size_complaint(struct policy_slice value, const char *column)
{
    struct policy_slice rest = policy_slice_of(column), name;
    struct policy_size size;
    const char *why;
    bool takes_size = false;
    while (next_alternative(&rest, &name))
        takes_size |= kind_of(name) == SIZE;
    if (!takes_size || value.length == 0 || !policy_is_digit(value.start[0]))
        return NULL;
    return policy_parse_size(value, &size, &why) ? NULL : why;
}

void policy_add_not_yet(struct text_line *line, enum policy_key key)
{
    text_add(line, "this build does not enforce it yet");
    if (*policy_key_now(key)) {
        text_add(line, "; what it does is ");
        text_add(line, policy_key_name(key));
        text_add(line, " = ");
        text_add(line, policy_key_now(key));
    }
}

void policy_check_value(enum policy_key key, struct policy_slice value, struct policy_place place,
                        struct policy_errors *errors)
{
    enum alternative list, ignored;
    const char *now = policy_key_now(key), *later = policy_key_later(key);
    if (is_any(value, now, &list))
        return;
    if (list != WORD && value.length > 0) {
        check_list(list, value, place, errors);
        return;
    }
    struct text_line *why = policy_add_error(errors, place);
    text_add(why, policy_key_name(key));
    text_add(why, value.length ? " = " : " has no value");
    policy_slice_show(why, value);
    text_add(why, ": ");
    if (value.length > 0 && is_any(value, later, &ignored)) {
        policy_add_not_yet(why, key);
        return;
    }
    const char *complaint = size_complaint(value, now);
    if (complaint)
        text_add(why, complaint);
    else
        add_expected(why, now);
    if (!complaint && value.length > 0)
        add_resembling(why, value, now);
}
