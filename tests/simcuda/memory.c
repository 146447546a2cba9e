/* memory.c -- see memory.h; cuMemAlloc and its relatives. */
#include "memory.h"

#include "api.h"
#include "backing.h"
#include "context.h"
#include "devices.h"
#include "granule.h"
#include "graph_memory.h"
#include "pools.h"
#include "state.h"

#include <sys/mman.h>

CUresult memory_charge(struct device *device, size_t bytes)
{
    int gpu = device->gpu->index;

    if (state_take(gpu, bytes, USE_ALLOCATION) == 0)
        return CUDA_SUCCESS;
    pools_trim_all(device);
    return state_take(gpu, bytes, USE_ALLOCATION) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void memory_refund(struct device *device, size_t bytes)
{
    state_give(device->gpu->index, bytes, USE_ALLOCATION);
}

static CUresult allocate(CUcontext context, enum range_kind kind, size_t bytes, unsigned int flags,
                         void *(*take)(size_t bytes), CUdeviceptr *address)
{
    size_t charged = granule_of(bytes);

    if (charged == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = memory_charge(context->device, charged);
    if (result != CUDA_SUCCESS)
        return result;
    void *memory = take(charged);
    if (!memory) {
        memory_refund(context->device, charged);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = range_address(memory);
    range_add((struct range){.base = *address,
                             .bytes = bytes,
                             .charged = charged,
                             .kind = kind,
                             .device = context->device,
                             .context = context,
                             .flags = flags},
              &context->memory);
    return CUDA_SUCCESS;
}

CUresult memory_allocate(CUcontext context, enum range_kind kind, size_t bytes, unsigned int flags,
                         CUdeviceptr *address)
{
    return allocate(context, kind, bytes, flags, backing_take, address);
}

void memory_release(struct range *range)
{
    if (range->kind == RANGE_DEVICE || range->kind == RANGE_MANAGED) {
        backing_give(range_pointer(range->base), range->charged);
        memory_refund(range->device, range->charged);
    } else if (range->kind == RANGE_GLOBAL) {
        backing_give(range_pointer(range->base), range->charged);
        context_give_overhead(range->context, range->charged);
    } else if (range->kind == RANGE_HOST) {
        backing_give(range_pointer(range->base), range->charged);
    } else if (range->kind == RANGE_IMPORTED) {
        munmap(range_pointer(range->base - range->offset), range->mapped);
    }
    range_remove(range, &range->context->memory);
}

void memory_empty(CUcontext context)
{
    while (context->memory)
        memory_release(context->memory);
}

CUresult sim_cuMemGetInfo_v2(size_t *available, size_t *total)
{
    const struct gpu *gpu = context_current_device()->gpu;

    if (available)
        *available = state_free_bytes(gpu->index);
    if (total)
        *total = gpu->bytes;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    if (!address || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    return memory_allocate(context_current(), RANGE_DEVICE, bytes, 0, address);
}

/* Of no driver so far: README.md, "a function that only a driver of the future has". */
CUresult sim_cuMemAlloc_v3(CUdeviceptr *address, size_t bytes, unsigned long long flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : sim_cuMemAlloc_v2(address, bytes);
}

CUresult sim_cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                                unsigned int element_bytes)
{
    size_t bytes;

    if (!address || !pitch || width == 0 || height == 0 ||
        (element_bytes != 4 && element_bytes != 8 && element_bytes != 16))
        return CUDA_ERROR_INVALID_VALUE;
    size_t row = granule_up(width, GRANULE_PITCH);
    if (row == 0 || __builtin_mul_overflow(row, height, &bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = memory_allocate(context_current(), RANGE_DEVICE, bytes, 0, address);
    if (result == CUDA_SUCCESS)
        *pitch = row;
    return result;
}

CUresult sim_cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
    if (!address || bytes == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    return memory_allocate(context_current(), RANGE_MANAGED, bytes, flags, address);
}

CUresult sim_cuMemFree_v2(CUdeviceptr address)
{
    struct range *range = address ? range_from(address) : NULL;

    if (!address)
        return CUDA_SUCCESS;
    if (!range)
        return CUDA_ERROR_INVALID_VALUE;
    if (range->kind == RANGE_POOL || range->kind == RANGE_GRAPH)
        return graph_memory_free(address);
    if ((range->kind != RANGE_DEVICE && range->kind != RANGE_MANAGED && !range->freeable) ||
        !range->context)
        return CUDA_ERROR_INVALID_VALUE;
    memory_release(range);
    return CUDA_SUCCESS;
}

/* The entries of CUDA 3.1 and before: sizes and addresses of 32 bits. Figures that don't fit are
 * the greatest that do (assumed). */
static unsigned int in_32_bits(size_t bytes)
{
    return bytes < UINT32_MAX ? (unsigned int)bytes : UINT32_MAX;
}

CUresult sim_cuMemGetInfo(unsigned int *available, unsigned int *total)
{
    size_t all[2];
    CUresult result = sim_cuMemGetInfo_v2(&all[0], &all[1]);

    if (available)
        *available = in_32_bits(all[0]);
    if (total)
        *total = in_32_bits(all[1]);
    return result;
}

CUresult sim_cuDeviceTotalMem(unsigned int *bytes, CUdevice ordinal)
{
    size_t all;
    CUresult result = sim_cuDeviceTotalMem_v2(bytes ? &all : NULL, ordinal);

    if (result == CUDA_SUCCESS)
        *bytes = in_32_bits(all);
    return result;
}

static CUresult allocate_low(CUdeviceptr_v1 *address, size_t bytes)
{
    CUdeviceptr low;
    CUresult result = allocate(context_current(), RANGE_DEVICE, bytes, 0, backing_take_low, &low);

    if (result == CUDA_SUCCESS)
        *address = (CUdeviceptr_v1)low;
    return result;
}

CUresult sim_cuMemAlloc(CUdeviceptr_v1 *address, unsigned int bytes)
{
    return address && bytes ? allocate_low(address, bytes) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemAllocPitch(CUdeviceptr_v1 *address, unsigned int *pitch, unsigned int width,
                             unsigned int height, unsigned int element_bytes)
{
    const size_t row = granule_up(width, GRANULE_PITCH);

    if (!address || !pitch || width == 0 || height == 0 ||
        (element_bytes != 4 && element_bytes != 8 && element_bytes != 16))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = allocate_low(address, row * height);
    if (result == CUDA_SUCCESS)
        *pitch = (unsigned int)row;
    return result;
}

CUresult sim_cuMemFree(CUdeviceptr_v1 address) { return sim_cuMemFree_v2(address); }

CUresult sim_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    struct range *range = range_at(address);

    if (!range)
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = range->base;
    if (bytes)
        *bytes = range->bytes;
    return CUDA_SUCCESS;
}
