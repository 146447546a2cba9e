/* green.c -- green contexts: parts of a device's multiprocessors under the device's primary
 * context.
 *
 * Knows: how the parts are described, and that a green context is a reference to the primary one.
 * Must not know: what is made in it, which is the primary context's.
 */
#include "api.h"
#include "context.h"
#include "devices.h"
#include "handles.h"

#include <stdlib.h>
#include <string.h>

enum { RESOURCE_SM = 1, SMALLEST = 8, SM_COUNT = 16 };

struct CUdevResourceDesc_st { /* never freed, as the driver has no call for it */
    unsigned int sm_count;
};

struct CUgreenCtx_st {
    struct handle handle;
    struct device *device;
    CUcontext context;
    unsigned int sm_count;
};

static void describe(struct dev_resource *resource, unsigned int count)
{
    memset(resource, 0, sizeof *resource);
    resource->type = RESOURCE_SM;
    resource->sm.count = count;
    resource->sm.smallest = SMALLEST;
    resource->sm.alignment = SMALLEST;
}

CUresult sim_cuDeviceGetDevResource(CUdevice ordinal, struct dev_resource *resource, int type)
{
    int count = 0;

    if (!resource)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != RESOURCE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    CUresult result = sim_cuDeviceGetAttribute(&count, SM_COUNT, ordinal);
    if (result == CUDA_SUCCESS)
        describe(resource, (unsigned int)count);
    return result;
}

CUresult sim_cuCtxGetDevResource(CUcontext context, struct dev_resource *resource, int type)
{
    CUresult result = context_check(context);

    return result == CUDA_SUCCESS
               ? sim_cuDeviceGetDevResource(context->device->ordinal, resource, type)
               : result;
}

CUresult sim_cuGreenCtxGetDevResource(CUgreenCtx green, struct dev_resource *resource, int type)
{
    if (!handle_is(green, HANDLE_GREEN))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!resource)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != RESOURCE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    describe(resource, green->sm_count);
    return CUDA_SUCCESS;
}

CUresult sim_cuDevSmResourceSplitByCount(struct dev_resource *parts, unsigned int *count,
                                         const struct dev_resource *whole,
                                         struct dev_resource *rest, unsigned int flags,
                                         unsigned int smallest)
{
    (void)flags;
    if (!count || !whole)
        return CUDA_ERROR_INVALID_VALUE;
    if (whole->type != RESOURCE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (smallest > whole->sm.count)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    unsigned int each = (smallest + SMALLEST - 1) / SMALLEST * SMALLEST;
    if (each == 0)
        each = SMALLEST;
    unsigned int possible = whole->sm.count / each;
    if (!parts || *count > possible)
        *count = possible;
    for (unsigned int i = 0; parts && i < *count; i++)
        describe(&parts[i], each);
    if (rest)
        describe(rest, whole->sm.count - *count * each);
    return CUDA_SUCCESS;
}

CUresult sim_cuDevResourceGenerateDesc(CUdevResourceDesc *out, struct dev_resource *resources,
                                       unsigned int count)
{
    if (!out || !resources || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUdevResourceDesc made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned int i = 0; i < count; i++) {
        if (resources[i].type != RESOURCE_SM) {
            free(made);
            return CUDA_ERROR_INVALID_RESOURCE_TYPE;
        }
        made->sm_count += resources[i].sm.count;
    }
    *out = made;
    return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxCreate(CUgreenCtx *out, CUdevResourceDesc desc, CUdevice ordinal,
                              unsigned int flags)
{
    CUcontext primary;

    if (!out || !desc || flags != 1)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sim_cuDevicePrimaryCtxRetain(&primary, ordinal);
    if (result != CUDA_SUCCESS)
        return result;
    CUgreenCtx made = handle_new(HANDLE_GREEN, sizeof *made, NULL);
    made->device = device_of(ordinal);
    made->context = context_new_green(made->device);
    made->sm_count = desc->sm_count;
    *out = made;
    return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxDestroy(CUgreenCtx green)
{
    if (!handle_is(green, HANDLE_GREEN))
        return CUDA_ERROR_INVALID_CONTEXT;
    CUdevice ordinal = green->device->ordinal;
    green->context->alive = 0;
    handle_delete(green);
    (void)sim_cuDevicePrimaryCtxRelease(ordinal); /* after a reset there is none to release */
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green)
{
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(green, HANDLE_GREEN))
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = green->context;
    return CUDA_SUCCESS;
}

CUresult sim_cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned int flags,
                                    int priority)
{
    CUcontext popped;

    if (!stream || flags != 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(green, HANDLE_GREEN))
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult result = sim_cuCtxPushCurrent(green->context);
    if (result != CUDA_SUCCESS)
        return result;
    result = sim_cuStreamCreateWithPriority(stream, flags, priority);
    sim_cuCtxPopCurrent(&popped);
    return result;
}
