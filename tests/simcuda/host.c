/* host.c -- pinned host memory, allocated or registered. It takes nothing of a card. */
#include "api.h"
#include "backing.h"
#include "context.h"
#include "granule.h"
#include "memory.h"

CUresult sim_cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
    CUcontext context = context_current();
    size_t rounded = granule_up(bytes, GRANULE_SMALL);

    if (!pointer || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    void *memory = rounded ? backing_take(rounded) : NULL;
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    range_add((struct range){.base = range_address(memory),
                             .bytes = bytes,
                             .charged = rounded,
                             .kind = RANGE_HOST,
                             .device = context->device,
                             .context = context,
                             .flags = flags},
              &context->memory);
    *pointer = memory;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemAllocHost_v2(void **pointer, size_t bytes)
{
    return sim_cuMemHostAlloc(pointer, bytes, 0);
}

CUresult sim_cuMemFreeHost(void *pointer)
{
    struct range *range = range_from(range_address(pointer));

    if (!pointer)
        return CUDA_SUCCESS;
    if (!range || range->kind != RANGE_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    memory_release(range);
    return CUDA_SUCCESS;
}

CUresult sim_cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags)
{
    CUcontext context = context_current();
    CUdeviceptr address = range_address(pointer);

    if (!pointer || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (range_at(address) || range_at(address + bytes - 1))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    range_add((struct range){.base = address,
                             .bytes = bytes,
                             .kind = RANGE_REGISTERED,
                             .device = context->device,
                             .context = context,
                             .flags = flags},
              &context->memory);
    return CUDA_SUCCESS;
}

CUresult sim_cuMemHostUnregister(void *pointer)
{
    struct range *range = range_from(range_address(pointer));

    if (!range || range->kind != RANGE_REGISTERED)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    memory_release(range);
    return CUDA_SUCCESS;
}

static struct range *pinned(const void *pointer)
{
    struct range *range = range_at(range_address(pointer));

    return range && (range->kind == RANGE_HOST || range->kind == RANGE_REGISTERED) ? range : NULL;
}

CUresult sim_cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *pointer, unsigned int flags)
{
    if (!address || flags || !pinned(pointer))
        return CUDA_ERROR_INVALID_VALUE;
    *address = range_address(pointer);
    return CUDA_SUCCESS;
}

CUresult sim_cuMemHostGetFlags(unsigned int *flags, void *pointer)
{
    struct range *range = pinned(pointer);

    if (!flags || !range)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = range->flags;
    return CUDA_SUCCESS;
}
