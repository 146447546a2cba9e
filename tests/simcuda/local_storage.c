/* local_storage.c -- see local_storage.h. */
#include "local_storage.h"

#include "context.h"
#include "entry.h"

#include <stdlib.h>

struct local {
    void *key, *value;
    local_destructor *destructor;
    struct local *next;
};

/* The link that holds the key, or the list's last. */
static struct local **find(CUcontext context, const void *key)
{
    struct local **link = &context->locals;

    while (*link && (*link)->key != key)
        link = &(*link)->next;
    return link;
}

static CUresult choose(CUcontext *context)
{
    if (!*context)
        *context = context_current();
    return *context && context_known(*context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult local_storage_put(CUcontext context, void *key, void *value, local_destructor *destructor)
{
    CUresult result = choose(&context);

    if (result != CUDA_SUCCESS)
        return result;
    struct local **link = find(context, key);
    if (!*link)
        *link = calloc(1, sizeof **link);
    if (!*link)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*link)->key = key;
    (*link)->value = value;
    (*link)->destructor = destructor;
    return CUDA_SUCCESS;
}

CUresult local_storage_delete(CUcontext context, void *key)
{
    CUresult result = choose(&context);

    if (result != CUDA_SUCCESS)
        return result;
    struct local **link = find(context, key), *local = *link;
    if (!local)
        return CUDA_ERROR_INVALID_HANDLE;
    *link = local->next;
    free(local);
    return CUDA_SUCCESS;
}

CUresult local_storage_get(void **value, CUcontext context, void *key)
{
    CUresult result = choose(&context);

    if (result != CUDA_SUCCESS)
        return result;
    struct local *local = *find(context, key);
    if (!local)
        return CUDA_ERROR_INVALID_HANDLE;
    *value = local->value;
    return CUDA_SUCCESS;
}

void local_storage_empty(CUcontext context)
{
    while (context->locals) {
        struct local *local = context->locals;
        context->locals = local->next;
        if (local->destructor) {
            int held = entry_release();
            local->destructor(context, local->key, local->value);
            entry_regain(held);
        }
        free(local);
    }
}
