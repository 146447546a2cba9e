/* context_settings.c -- what can be asked of and set on a context: device, flags, limits,
 * preferences. */
#include "api.h"
#include "context.h"
#include "devices.h"
#include "pools.h"

enum { LIMIT_PRINTF_FIFO_SIZE = 1, LIMIT_MALLOC_HEAP_SIZE = 2 };

CUresult sim_cuCtxGetDevice(CUdevice *device)
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context_current_device()->ordinal;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    context = context ? context : context_current();
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!context || !context_known(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetFlags(unsigned int *flags)
{
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = context_current()->flags;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetFlags(unsigned int flags)
{
    context_current()->flags = flags;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetId(CUcontext context, unsigned long long *id)
{
    context = context ? context : context_current();
    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    if (context_check(context) != CUDA_SUCCESS)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *id = context->id;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSynchronize(void)
{
    pools_synchronized(context_current_device());
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSynchronize_v2(CUcontext context)
{
    context = context ? context : context_current();
    CUresult result = context_check(context);

    if (result == CUDA_SUCCESS)
        pools_synchronized(context->device);
    return result;
}

/* A greater heap or printf buffer takes memory that no allocation call shows. */
CUresult sim_cuCtxSetLimit(int limit, size_t value)
{
    CUcontext context = context_current();
    CUresult result = CUDA_SUCCESS;

    if (limit < 0 || limit >= CONTEXT_LIMITS)
        return CUDA_ERROR_INVALID_VALUE;
    size_t old = context->limits[limit];
    if (limit == LIMIT_PRINTF_FIFO_SIZE || limit == LIMIT_MALLOC_HEAP_SIZE) {
        if (value > old)
            result = context_take_overhead(context, value - old);
        else
            context_give_overhead(context, old - value);
    }
    if (result == CUDA_SUCCESS)
        context->limits[limit] = value;
    return result;
}

CUresult sim_cuCtxGetLimit(size_t *value, int limit)
{
    if (!value || limit < 0 || limit >= CONTEXT_LIMITS)
        return CUDA_ERROR_INVALID_VALUE;
    *value = context_current()->limits[limit];
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetCacheConfig(int *config)
{
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    *config = context_current()->cache_config;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetCacheConfig(int config)
{
    context_current()->cache_config = config;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetSharedMemConfig(int *config)
{
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    *config = context_current()->bank_config;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxSetSharedMemConfig(int config)
{
    context_current()->bank_config = config;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetApiVersion(CUcontext context, unsigned int *version)
{
    context = context ? context : context_current();
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    if (context_check(context) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_CONTEXT;
    *version = 3020;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxResetPersistingL2Cache(void) { return CUDA_SUCCESS; }

CUresult sim_cuCtxGetExecAffinity(void *affinity, int type)
{
    (void)affinity, (void)type;
    return CUDA_ERROR_NOT_SUPPORTED;
}
