/* together.c -- see together.h, and policy.h for policy_fit().
 *
 * PyTorch trims the integers of CUDA_VISIBLE_DEVICES at NVML's count. Where they are nvidia-smi's
 * and NVML shows no more than the grant, it would take GPUs for absent that are there.
 */
#include "together.h"
#include "check.h"
#include "statement.h"

static const char because[] = ": frameworks cut the integers off at NVML's count; with physical, "
                              "nvml is physical unless it is given";

/* One of the two keys in a section. */
struct said {
    struct policy_place place; /* of its value; line 0: not given */
    bool fatal;                /* physical, or follow */
};

struct section {
    struct said variable, nvml;
};

static void note(struct section *section, const struct policy_statement *statement)
{
    unsigned int position;
    switch (policy_key_of(statement->name, &position)) {
    case POLICY_KEY_CUDA_VISIBLE_DEVICES:
        section->variable =
            (struct said){statement->value_place, policy_slice_is(statement->value, "physical")};
        break;
    case POLICY_KEY_NVML:
        section->nvml =
            (struct said){statement->value_place, policy_slice_is(statement->value, "follow")};
        break;
    default:
        break;
    }
}

static void check(const struct section *here, const struct section *beneath,
                  struct policy_errors *errors)
{
    const bool at_nvml = here->nvml.place.line != 0;
    const struct said *nvml = at_nvml ? &here->nvml : &beneath->nvml;
    const struct said *variable =
        here->variable.place.line != 0 ? &here->variable : &beneath->variable;
    if (!nvml->fatal || !variable->fatal || (!at_nvml && variable != &here->variable))
        return;
    struct text_line *why = policy_add_error(errors, at_nvml ? nvml->place : variable->place);
    text_add(why, at_nvml ? "nvml = follow does not go with cuda_visible_devices = physical"
                          : "cuda_visible_devices = physical does not go with nvml = follow");
    text_add(why, " on line ");
    text_add_number(why, at_nvml ? variable->place.line : nvml->place.line);
    text_add(why, because);
}

/* Walks over the sections. Without `errors` it only fills `base` with what [default] says, which
 * may stand behind the rules that are laid over it. */
static void walk(const struct policy_text *text, struct section *base, struct policy_errors *errors)
{
    struct policy_reader reader = {.text = text};
    struct policy_statement statement;
    struct policy_slice name;
    enum policy_section kind = POLICY_SECTION_DEFAULT; /* of what stands before any section */
    struct section here = {.nvml = {.fatal = false}};
    for (bool more = true; more;) {
        more = policy_next_statement(&reader, &statement);
        if (more && statement.kind == POLICY_ASSIGNMENT)
            note(&here, &statement);
        if (more && !statement.is_header)
            continue;
        if (!errors && kind == POLICY_SECTION_DEFAULT)
            *base = here;
        else if (errors)
            check(&here, kind == POLICY_SECTION_RULE ? base : &here, errors);
        here = (struct section){.nvml = {.fatal = false}};
        kind = more ? policy_section_of(statement.name, &name) : kind;
    }
}

void policy_check_together(const struct policy_text *text, struct policy_errors *errors)
{
    struct section base = {.nvml = {.fatal = false}};
    walk(text, &base, NULL);
    walk(text, &base, errors);
}

int policy_fit(const struct policy_settings *layers, size_t layer_count, struct policy_error *error,
               size_t *error_layer)
{
    if (policy_cuda_visible_devices(layers, layer_count) != POLICY_PHYSICAL ||
        policy_nvml(layers, layer_count) != POLICY_FOLLOW)
        return POLICY_OK;
    size_t nvml = 0, variable = 0;
    while (layers[nvml].nvml.value == POLICY_UNSET)
        nvml++;
    while (layers[variable].cuda_visible_devices.value == POLICY_UNSET)
        variable++;
    *error_layer = variable;
    error->line = layers[variable].cuda_visible_devices.line;
    error->column = 1;
    text_start(&error->why);
    text_add(&error->why, "cuda_visible_devices = physical does not go with nvml = follow, which ");
    text_add(&error->why, layers[nvml].source);
    text_add(&error->why, " says");
    text_add(&error->why, because);
    return POLICY_INVALID;
}
