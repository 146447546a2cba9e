/* handles.c -- see handles.h. A tree of the addresses, and a list to walk. */
#include "handles.h"

#include <search.h>
#include <stdlib.h>

static void *live;
static struct handle list = {.next = &list, .previous = &list};

static int by_address(const void *one, const void *other) { return (one > other) - (one < other); }

void *handle_new(enum handle_kind kind, size_t bytes, struct CUctx_st *context)
{
    struct handle *handle = calloc(1, bytes);

    if (!handle || !tsearch(handle, &live, by_address))
        abort();
    handle->kind = kind;
    handle->context = context;
    handle->previous = &list;
    handle->next = list.next;
    list.next->previous = handle;
    list.next = handle;
    return handle;
}

int handle_is(const void *object, enum handle_kind kind)
{
    const void *const *found = object ? tfind(object, &live, by_address) : NULL;

    return found && ((const struct handle *)*found)->kind == kind;
}

void handle_delete(void *object)
{
    struct handle *handle = object;

    tdelete(handle, &live, by_address);
    handle->previous->next = handle->next;
    handle->next->previous = handle->previous;
    free(handle);
}

void *handle_any(enum handle_kind kind, const struct CUctx_st *context)
{
    for (struct handle *handle = list.next; handle != &list; handle = handle->next)
        if (handle->kind == kind && handle->context == context)
            return handle;
    return NULL;
}

struct handle *handle_first(void) { return handle_after(&list); }

struct handle *handle_after(const struct handle *handle)
{
    return handle->next == &list ? NULL : handle->next;
}
