/* ranges.c -- see ranges.h. A tree in which two ranges are equal if they overlap. */
#include "ranges.h"

#include <search.h>
#include <stdlib.h>

static void *tree;
static unsigned long long last_id;

static int by_place(const void *one, const void *other)
{
    const struct range *a = one, *b = other;

    if (a->base + a->bytes <= b->base)
        return -1;
    return a->base >= b->base + b->bytes;
}

struct range *range_add(struct range range, struct range **list)
{
    struct range *entry = malloc(sizeof *entry);

    if (!entry)
        abort();
    *entry = range;
    entry->id = ++last_id;
    entry->previous = NULL;
    entry->next = *list;
    if (*list)
        (*list)->previous = entry;
    *list = entry;
    if (!tsearch(entry, &tree, by_place))
        abort();
    return entry;
}

void range_remove(struct range *range, struct range **list)
{
    tdelete(range, &tree, by_place);
    if (range->previous)
        range->previous->next = range->next;
    else
        *list = range->next;
    if (range->next)
        range->next->previous = range->previous;
    free(range);
}

struct range *range_at(CUdeviceptr address)
{
    struct range key = {.base = address, .bytes = 1};
    struct range *const *found = tfind(&key, &tree, by_place);

    return found ? *found : NULL;
}

struct range *range_from(CUdeviceptr address)
{
    struct range *range = range_at(address);

    return range && range->base == address ? range : NULL;
}

CUdeviceptr range_address(const void *pointer) { return (CUdeviceptr)(uintptr_t)pointer; }

void *range_pointer(CUdeviceptr address) { return (void *)(uintptr_t)address; }
