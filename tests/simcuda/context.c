/* context.c -- see context.h; and cuCtxCreate and the calls on the thread's stack of contexts. */
#include "context.h"

#include "api.h"
#include "arrays.h"
#include "capture.h"
#include "devices.h"
#include "entry.h"
#include "graph_memory.h"
#include "handles.h"
#include "local_storage.h"
#include "memory.h"
#include "modules.h"
#include "pools.h"
#include "settings.h"
#include "state.h"

#include <stdlib.h>
#include <string.h>

enum { STACK_DEPTH = 128 };

static __thread CUcontext stack[STACK_DEPTH];
static __thread int stack_used;

static CUcontext created;
static unsigned long long last_id;

static CUcontext top(void) { return stack_used ? stack[stack_used - 1] : NULL; }

CUcontext context_current(void)
{
    CUcontext context = top();

    return context && context_known(context) && context->home ? context->home : context;
}

struct device *context_current_device(void) { return context_current()->device; }

int context_known(const struct CUctx_st *context)
{
    for (int i = 0; i < device_count(); i++)
        if (context == &device_of(i)->primary)
            return 1;
    for (CUcontext each = created; each; each = each->next)
        if (each == context)
            return 1;
    return 0;
}

CUresult context_check(const struct CUctx_st *context)
{
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return context_known(context) && context->alive && (!context->home || context->home->alive)
               ? CUDA_SUCCESS
               : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult context_check_current(void) { return context_check(top()); }

CUresult context_take_overhead(CUcontext context, uint64_t bytes)
{
    if (bytes && state_take(context->device->gpu->index, bytes, USE_CONTEXT) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->overhead_bytes += bytes;
    return CUDA_SUCCESS;
}

void context_give_overhead(CUcontext context, uint64_t bytes)
{
    context->overhead_bytes -= bytes;
    state_give(context->device->gpu->index, bytes, USE_CONTEXT);
}

CUresult context_start(CUcontext context, struct device *device, unsigned int flags)
{
    static const size_t limits[CONTEXT_LIMITS] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0};

    context->device = device;
    CUresult result = context_take_overhead(context, settings_context_bytes());
    if (result != CUDA_SUCCESS)
        return result;
    state_enter_context(device->gpu->index);
    context->alive = 1;
    context->flags = flags;
    context->id = ++last_id;
    context->peers = 0;
    memcpy(context->limits, limits, sizeof limits);
    return CUDA_SUCCESS;
}

void context_end(CUcontext context)
{
    struct device *device = context->device;

    local_storage_empty(context);
    capture_forget_context(context);
    while (handle_any(HANDLE_STREAM, context))
        handle_delete(handle_any(HANDLE_STREAM, context));
    while (handle_any(HANDLE_EVENT, context))
        handle_delete(handle_any(HANDLE_EVENT, context));
    arrays_empty(context);
    modules_empty(context);
    memory_empty(context);
    context_give_overhead(context, context->overhead_bytes);
    state_leave_context(device->gpu->index);
    context->alive = 0;
    if (device_live_contexts(device) == 0) {
        graph_memory_empty(device);
        pools_empty(device);
    }
}

int device_live_contexts(const struct device *device)
{
    int count = device->primary.alive;

    for (CUcontext each = created; each; each = each->next)
        count += each->device == device && each->alive && !each->home;
    return count;
}

CUcontext context_new_green(struct device *device)
{
    CUcontext context = calloc(1, sizeof *context);

    if (!context)
        abort();
    *context = (struct CUctx_st){.device = device,
                                 .alive = 1,
                                 .is_primary = 1,
                                 .id = ++last_id,
                                 .home = &device->primary,
                                 .next = created};
    created = context;
    return context;
}

/* Takes a context out of the list of those made by cuCtxCreate and frees it. */
static void forget(CUcontext context)
{
    for (CUcontext *link = &created; *link; link = &(*link)->next)
        if (*link == context) {
            *link = context->next;
            free(context);
            return;
        }
}

CUresult sim_cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice ordinal)
{
    struct device *device = device_of(ordinal);

    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (stack_used == STACK_DEPTH)
        return CUDA_ERROR_UNKNOWN;
    CUcontext fresh = calloc(1, sizeof *fresh);
    CUresult result = fresh ? context_start(fresh, device, flags) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        free(fresh);
        return result;
    }
    fresh->attached = 1;
    fresh->next = created;
    created = fresh;
    stack[stack_used++] = fresh;
    *context = fresh;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxCreate_v3(CUcontext *context, void *affinity, int count, unsigned int flags,
                            CUdevice ordinal)
{
    (void)affinity, (void)count;
    return sim_cuCtxCreate_v2(context, flags, ordinal);
}

CUresult sim_cuCtxCreate_v4(CUcontext *context, void *parameters, unsigned int flags,
                            CUdevice ordinal)
{
    (void)parameters;
    return sim_cuCtxCreate_v2(context, flags, ordinal);
}

CUresult sim_cuCtxDestroy(CUcontext context)
{
    if (!context || !context_known(context) || context->is_primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    context_end(context);
    if (context_current() == context)
        stack_used--;
    forget(context);
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxAttach(CUcontext *context, unsigned int flags)
{
    if (!context || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *context = context_current();
    (*context)->attached++;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxDetach(CUcontext context)
{
    if (!context || !context_known(context) || context->is_primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    return --context->attached ? CUDA_SUCCESS : sim_cuCtxDestroy(context);
}

CUresult sim_cuCtxPushCurrent(CUcontext context)
{
    if (!context || !context_known(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (stack_used == STACK_DEPTH)
        return CUDA_ERROR_UNKNOWN;
    stack[stack_used++] = context;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxPopCurrent(CUcontext *context)
{
    if (!stack_used)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack_used--;
    if (context)
        *context = stack[stack_used];
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetCurrent(CUcontext context)
{
    if (context && !context_known(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (stack_used)
        stack_used--;
    if (context)
        stack[stack_used++] = context;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetCurrent(CUcontext *context)
{
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    *context = top();
    return CUDA_SUCCESS;
}
