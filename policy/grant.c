/* grant.c -- policy_grant(): which GPUs the texts leave to a process, in which order, under which
 * caps.
 *
 * Each layer picks among what the layers before it left. Positions count in that list, so that an
 * inner text can name nothing that the outer ones do not grant.
 */
#include "device.h"
#include "slice.h"

#include <string.h>

/* What the layer at work chooses from. */
struct outer {
    const struct policy_settings *layers;
    size_t layer;
    const struct policy_gpu *gpus;
    const struct policy_grant *grants;
    size_t count;
};

/* Positions in the outer list, in the order chosen. */
struct choice {
    uint8_t positions[POLICY_GPUS_MAX];
    size_t count;
    bool lacks_optional; /* an entry with '?' named nothing that is there */
    bool all;            /* by the word, or because nothing was said */
};

/* The innermost text before this layer that narrows the machine, or NULL. */
static const struct policy_settings *narrowing(const struct outer *outer)
{
    for (size_t i = outer->layer; i-- > 0;) {
        if (!policy_grants_all(&outer->layers[i]))
            return &outer->layers[i];
    }
    return NULL;
}

/* How many can be named by a number: on the machine its GPUs, whose MIG devices stand behind them;
 * in a list that a text gives, all. */
static size_t numbered(const struct outer *outer)
{
    size_t count = outer->count;
    while (!narrowing(outer) && count > 0 && outer->gpus[outer->grants[count - 1].gpu].is_mig)
        count--;
    return count;
}

static void add_missing(struct text_line *why, const struct outer *outer, size_t count)
{
    const struct policy_settings *by = narrowing(outer);
    text_add(why, by ? " is not among the " : " is not there: this machine has ");
    text_add_number(why, count);
    if (by) {
        text_add(why, count == 1 ? " GPU that " : " GPUs that ");
        text_add(why, by->source);
        text_add(why, " grants");
    }
}

/* "(0-3)", the indices that there are. */
static void add_indices(struct text_line *why, const struct outer *outer)
{
    const size_t count = numbered(outer);
    if (count == 0)
        return;
    text_add(why, count == 1 ? " (0" : " (0-");
    if (count > 1)
        text_add_number(why, count - 1);
    text_add(why, ")");
}

static void add_hex(struct text_line *why, uint32_t number, int digits)
{
    static const char names[] = "0123456789abcdef";
    while (digits-- > 0)
        text_add_bytes(why, &names[number >> (4 * digits) & 0xF], 1);
}

static void add_gpu(struct text_line *why, const struct policy_gpu *gpu,
                    enum policy_device_kind kind)
{
    if (kind != POLICY_DEVICE_PCI) {
        text_add(why, gpu->uuid);
        return;
    }
    add_hex(why, gpu->pci_domain, gpu->pci_domain > 0xFFFF ? 8 : 4);
    text_add(why, ":");
    add_hex(why, gpu->pci_bus, 2);
    text_add(why, ":");
    add_hex(why, gpu->pci_device, 2);
    text_add(why, ".0");
}

/* The names of the GPUs that there are, as far as they fit. */
static void add_names(struct text_line *why, const struct outer *outer,
                      enum policy_device_kind kind)
{
    size_t named = 0;
    for (size_t i = 0; i < outer->count; i++) {
        const struct policy_gpu *gpu = &outer->gpus[outer->grants[i].gpu];
        if (kind == POLICY_DEVICE_PCI && gpu->is_mig)
            continue;
        text_add(why, named++ ? ", " : " (");
        add_gpu(why, gpu, kind);
    }
    text_add(why, named ? ")" : "");
}

static void add_choice(struct choice *choice, size_t position)
{
    for (size_t i = 0; i < choice->count; i++) {
        if (choice->positions[i] == position)
            return;
    }
    choice->positions[choice->count++] = (uint8_t)position;
}

static bool choose_range(const struct outer *outer, struct policy_slice entry,
                         const struct policy_device *device, struct choice *choice,
                         struct text_line *why)
{
    const size_t count = numbered(outer);
    for (unsigned int index = device->first; index <= device->last; index++) {
        if (index < count) {
            add_choice(choice, index);
        } else if (device->optional) {
            choice->lacks_optional = true;
        } else {
            text_add(why, "GPU ");
            text_add_number(why, index);
            if (device->first != device->last) {
                text_add(why, " of ");
                policy_slice_show(why, entry);
            }
            add_missing(why, outer, count);
            add_indices(why, outer);
            return false;
        }
    }
    return true;
}

/* Chooses by UUID or PCI id. A beginning that more than one GPU has is a mistake, optional or not.
 */
static bool choose_named(const struct outer *outer, struct policy_slice entry,
                         const struct policy_device *device, struct choice *choice,
                         struct text_line *why)
{
    size_t found = 0, first = 0, second = 0;
    for (size_t i = 0; i < outer->count; i++) {
        bool exactly;
        if (!policy_device_is(device, &outer->gpus[outer->grants[i].gpu], &exactly))
            continue;
        if (exactly) {
            add_choice(choice, i);
            return true;
        }
        second = i;
        first = found++ ? first : i;
    }
    if (found == 1) {
        add_choice(choice, first);
        return true;
    }
    if (found == 0 && device->optional) {
        choice->lacks_optional = true;
        return true;
    }
    policy_slice_show(why, entry);
    if (found == 0) {
        add_missing(why, outer, outer->count);
        add_names(why, outer, device->kind);
        return false;
    }
    text_add(why, " names more than one GPU: ");
    add_gpu(why, &outer->gpus[outer->grants[first].gpu], POLICY_DEVICE_UUID);
    text_add(why, " and ");
    add_gpu(why, &outer->gpus[outer->grants[second].gpu], POLICY_DEVICE_UUID);
    return false;
}

/* Resolves one list, which stands at `place`. On failure fills `error`. */
static int choose(const struct outer *outer, struct policy_slice list, struct policy_place place,
                  struct choice *choice, struct policy_error *error)
{
    struct policy_slice rest = list, entry;
    struct policy_device device;
    choice->count = 0;
    choice->lacks_optional = false;
    choice->all = !list.start || policy_slice_is(list, "all");
    if (choice->all) {
        for (size_t i = 0; i < outer->count; i++)
            add_choice(choice, i);
        return POLICY_OK;
    }
    if (policy_slice_is(list, "none"))
        return POLICY_OK;
    while (policy_next_item(&rest, &entry)) {
        text_start(&error->why);
        bool chosen = policy_parse_device(entry, &device, &error->why);
        if (chosen && device.kind == POLICY_DEVICE_RANGE)
            chosen = choose_range(outer, entry, &device, choice, &error->why);
        else if (chosen)
            chosen = choose_named(outer, entry, &device, choice, &error->why);
        if (!chosen) {
            place = policy_place_of(place, list, entry);
            error->line = place.line;
            error->column = place.column;
            return POLICY_MISSING;
        }
    }
    return POLICY_OK;
}

/* A cap by position that is for no GPU is a mistake: the GPU that was meant would have no cap. */
static int check_positions(const struct outer *outer, const struct policy_size *memory_of,
                           const struct choice *choice, struct policy_error *error)
{
    const size_t count = choice->all ? numbered(outer) : choice->count;
    for (size_t k = count; k < POLICY_GPUS_MAX && !choice->lacks_optional; k++) {
        if (memory_of[k].kind == POLICY_SIZE_UNSET)
            continue;
        text_start(&error->why);
        text_add(&error->why, "memory.");
        text_add_number(&error->why, k);
        text_add(&error->why, ": GPU ");
        text_add_number(&error->why, k);
        if (choice->all) {
            add_missing(&error->why, outer, count);
            add_indices(&error->why, outer);
        } else {
            text_add(&error->why, " is not there: devices names ");
            text_add_number(&error->why, choice->count);
            text_add(&error->why, ", and counts from 0");
        }
        error->line = memory_of[k].line;
        error->column = 1;
        return POLICY_MISSING;
    }
    return POLICY_OK;
}

/* Puts the chosen grants first, in the order chosen. */
static void reorder(struct policy_grant *grants, struct choice *choice)
{
    for (size_t i = 0; i < choice->count; i++) {
        size_t from = choice->positions[i];
        struct policy_grant moved = grants[i];
        grants[i] = grants[from];
        grants[from] = moved;
        for (size_t j = i + 1; j < choice->count; j++) { /* what lay at i lies at `from` now */
            if (choice->positions[j] == i)
                choice->positions[j] = (uint8_t)from;
        }
    }
}

static void tighten(struct policy_size *cap, uint8_t *cap_layer, const struct policy_size *by,
                    size_t layer)
{
    if (cap->kind == POLICY_SIZE_NONE || by->value < cap->value) {
        *cap = *by;
        *cap_layer = (uint8_t)layer;
    }
}

static void cap(struct policy_grant *grant, const struct policy_size *size, size_t layer)
{
    if (size->kind == POLICY_SIZE_BYTES)
        tighten(&grant->cap, &grant->cap_layer, size, layer);
    else if (size->kind == POLICY_SIZE_PERCENT)
        tighten(&grant->share, &grant->share_layer, size, layer);
}

/* What memory.K of a list says for an outer position; `otherwise` where it says nothing. A MIG
 * device that the list does not name, only `all`, has its GPU's. */
static const struct policy_size *size_at(const struct outer *outer, const struct choice *choice,
                                         const struct policy_size *memory_of, size_t position,
                                         const struct policy_size *otherwise)
{
    if (choice->all && position >= numbered(outer))
        position = outer->gpus[outer->grants[position].gpu].parent;
    for (size_t k = 0; k < choice->count; k++) {
        if (choice->positions[k] == position && memory_of[k].kind != POLICY_SIZE_UNSET)
            return &memory_of[k];
    }
    return otherwise;
}

/* Lays the layer's caps on the grants that it chose, while they still lie at their outer positions.
 */
static void cap_chosen(const struct outer *outer, const struct policy_settings *settings,
                       const struct choice *chosen, const struct choice *base,
                       struct policy_grant *grants)
{
    for (size_t i = 0; i < chosen->count; i++) {
        const size_t position = chosen->positions[i];
        const struct policy_size *size = &settings->memory;
        size = size_at(outer, base, settings->base_memory_of, position, size);
        size = size_at(outer, chosen, settings->memory_of, position, size);
        cap(&grants[position], size, outer->layer);
    }
}

static bool any_set(const struct policy_size *sizes)
{
    for (size_t k = 0; k < POLICY_GPUS_MAX; k++) {
        if (sizes[k].kind != POLICY_SIZE_UNSET)
            return true;
    }
    return false;
}

/* Applies one layer to `*count` grants. */
static int apply(const struct outer *outer, struct policy_grant *grants, size_t *count,
                 struct policy_error *error)
{
    const struct policy_settings *settings = &outer->layers[outer->layer];
    const struct policy_place place = {settings->devices_line, settings->devices_column};
    const struct policy_place base_place = {settings->base_devices_line,
                                            settings->base_devices_column};
    struct choice chosen, base = {.count = 0};
    int rc = choose(outer, settings->devices, place, &chosen, error);
    if (rc == POLICY_OK)
        rc = check_positions(outer, settings->memory_of, &chosen, error);
    if (rc == POLICY_OK && any_set(settings->base_memory_of)) {
        rc = choose(outer, settings->base_devices, base_place, &base, error);
        if (rc == POLICY_OK)
            rc = check_positions(outer, settings->base_memory_of, &base, error);
    }
    if (rc != POLICY_OK)
        return rc;
    cap_chosen(outer, settings, &chosen, &base, grants);
    reorder(grants, &chosen);
    *count = chosen.count;
    return POLICY_OK;
}

int policy_grant(const struct policy_settings *layers, size_t layer_count,
                 const struct policy_gpu *gpus, size_t gpu_count, struct policy_grant *grants,
                 struct policy_error *error, size_t *error_layer)
{
    struct outer outer = {.layers = layers, .gpus = gpus, .grants = grants, .count = gpu_count};
    for (size_t i = 0; i < layer_count; i++) {
        if (policy_grants_none(&layers[i]))
            return 0;
    }
    if (outer.count > POLICY_GPUS_MAX)
        outer.count = POLICY_GPUS_MAX;
    for (size_t i = 0; i < outer.count; i++) {
        grants[i] = (struct policy_grant){.gpu = (uint8_t)i,
                                          .cap = {.kind = POLICY_SIZE_NONE},
                                          .share = {.kind = POLICY_SIZE_NONE}};
    }
    for (outer.layer = 0; outer.layer < layer_count; outer.layer++) {
        int rc = apply(&outer, grants, &outer.count, error);
        if (rc != POLICY_OK) {
            *error_layer = outer.layer;
            return rc;
        }
    }
    return (int)outer.count;
}
