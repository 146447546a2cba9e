/* names.c -- see names.h.
 *
 * A heap sort, since it needs no memory beside the list and has no bad cases: a text that someone
 * made to be slow must not hold up the program that reads it.
 */
#include "names.h"
#include "slice.h"

#include <assert.h>

static_assert(POLICY_TEXT_MAX - 1 <= UINT16_MAX, "places in a text fit into 16 bits");

void policy_note_name(struct policy_names *names, const struct policy_text *text,
                      struct policy_slice name, struct policy_place place)
{
    if (names->count == POLICY_RULES_MAX)
        return; /* there is no room in a text for more */
    names->list[names->count++] = (struct policy_name){
        .offset = (uint16_t)(name.start - text->bytes),
        .length = (uint16_t)name.length,
        .line = (uint16_t)place.line,
        .column = (uint16_t)place.column,
    };
}

static struct policy_slice slice_of(const struct policy_text *text, const struct policy_name *name)
{
    return (struct policy_slice){text->bytes + name->offset, name->length};
}

/* By name, and those of one name by position. */
static bool comes_before(const struct policy_text *text, const struct policy_name *a,
                         const struct policy_name *b)
{
    int order = policy_slice_order(slice_of(text, a), slice_of(text, b));
    return order != 0 ? order < 0 : a->offset < b->offset;
}

/* Lets the name at `at` sink below those of the first `count` that come behind it. */
static void sink(const struct policy_text *text, struct policy_name *list, size_t at, size_t count)
{
    const struct policy_name sinking = list[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && comes_before(text, &list[child], &list[child + 1]))
            child++;
        if (!comes_before(text, &sinking, &list[child]))
            break;
        list[at] = list[child];
    }
    list[at] = sinking;
}

static void sort(const struct policy_text *text, struct policy_name *list, size_t count)
{
    for (size_t at = count / 2; at-- > 0;)
        sink(text, list, at, count);
    for (size_t left = count; left-- > 1;) {
        const struct policy_name last = list[0];
        list[0] = list[left];
        list[left] = last;
        sink(text, list, 0, left);
    }
}

void policy_check_names(const struct policy_text *text, struct policy_errors *errors)
{
    struct policy_name *list = errors->names.list;
    size_t first = 0;
    sort(text, list, errors->names.count);
    for (size_t i = 1; i < errors->names.count; i++) {
        struct policy_slice name = slice_of(text, &list[i]);
        if (!policy_slice_same(name, slice_of(text, &list[first]))) {
            first = i;
            continue;
        }
        const struct policy_place place = {list[i].line, list[i].column};
        struct text_line *why = policy_add_error(errors, place);
        text_add(why, "[rule ");
        policy_slice_show(why, name);
        text_add(why, "] is given twice; the first is on line ");
        text_add_number(why, list[first].line);
    }
}
