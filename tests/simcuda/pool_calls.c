/* pool_calls.c -- the driver's calls on pools and stream-ordered memory. pool_share.c has those
 * between processes. */
#include "api.h"
#include "backing.h"
#include "capture.h"
#include "context.h"
#include "devices.h"
#include "granule.h"
#include "graph.h"
#include "graph_memory.h"
#include "pools.h"
#include "streams.h"

#include <string.h>

CUresult sim_cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice ordinal)
{
    struct device *device = device_of(ordinal);

    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *pool = pool_of_device(device);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice ordinal)
{
    struct device *device = device_of(ordinal);

    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *pool = device->current_pool ? device->current_pool : pool_of_device(device);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool pool)
{
    struct device *device = device_of(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!pool_known(pool) || pool->device != device || pool->imported ||
        pool->props.allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    device->current_pool = pool;
    return CUDA_SUCCESS;
}

/* Host memory's pools of the driver's own aren't simulated. Managed memory without a preferred
 * location is device 0's (assumed: where it is counted is our choice). */
static CUresult find_device(const CUmemLocation *location, CUmemAllocationType type,
                            struct device **device)
{
    int managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;

    if (!location || (!managed && type != CU_MEM_ALLOCATION_TYPE_PINNED))
        return CUDA_ERROR_INVALID_VALUE;
    if (location->type == CU_MEM_LOCATION_TYPE_INVALID && !managed)
        return CUDA_ERROR_INVALID_VALUE;
    if (location->type > CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    *device = device_of(location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : 0);
    return *device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim_cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location,
                                    CUmemAllocationType type)
{
    struct device *device;
    CUresult result = pool ? find_device(location, type, &device) : CUDA_ERROR_INVALID_VALUE;

    if (result == CUDA_SUCCESS)
        *pool = type == CU_MEM_ALLOCATION_TYPE_MANAGED ? pool_of_managed(device)
                                                       : pool_of_device(device);
    return result;
}

CUresult sim_cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    struct device *device;
    CUresult result = pool ? find_device(location, type, &device) : CUDA_ERROR_INVALID_VALUE;

    if (result != CUDA_SUCCESS)
        return result;
    if (type == CU_MEM_ALLOCATION_TYPE_PINNED)
        return sim_cuDeviceGetMemPool(pool, device->ordinal);
    *pool = device->current_managed_pool ? device->current_managed_pool : pool_of_managed(device);
    return CUDA_SUCCESS;
}

CUresult sim_cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    struct device *device;
    CUresult result = find_device(location, type, &device);

    if (result != CUDA_SUCCESS)
        return result;
    if (type == CU_MEM_ALLOCATION_TYPE_PINNED)
        return sim_cuDeviceSetMemPool(device->ordinal, pool);
    if (!pool_known(pool) || pool->device != device || pool->imported ||
        pool->props.allocType != CU_MEM_ALLOCATION_TYPE_MANAGED)
        return CUDA_ERROR_INVALID_VALUE;
    device->current_managed_pool = pool;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    struct device *device = NULL;

    if (!pool || !props ||
        (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED &&
         props->allocType != CU_MEM_ALLOCATION_TYPE_MANAGED))
        return CUDA_ERROR_INVALID_VALUE;
    if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE &&
        props->handleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (props->location.type <= CU_MEM_LOCATION_TYPE_DEVICE) {
        CUresult result = find_device(&props->location, props->allocType, &device);
        if (result != CUDA_SUCCESS)
            return result;
    }
    *pool = pool_new(device, props);
    return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolDestroy(CUmemoryPool pool)
{
    if (!pool_known(pool) || pool->own)
        return CUDA_ERROR_INVALID_VALUE;
    if (pool->device && pool->device->current_pool == pool)
        pool->device->current_pool = NULL;
    if (pool->device && pool->device->current_managed_pool == pool)
        pool->device->current_managed_pool = NULL;
    pool_doom(pool);
    return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    if (!pool_known(pool))
        return CUDA_ERROR_INVALID_VALUE;
    pool_trim(pool, keep);
    return CUDA_SUCCESS;
}

/* The 64-bit attributes; NULL for the others. */
static cuuint64_t *number_of(CUmemoryPool pool, int attribute)
{
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return &pool->threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return &pool->reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return &pool->reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return &pool->used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return &pool->used_high;
    default:
        return NULL;
    }
}

static int is_reuse(int attribute)
{
    return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
           attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

CUresult sim_cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    if (!value || !pool_known(pool))
        return CUDA_ERROR_INVALID_VALUE;
    const cuuint64_t *number = number_of(pool, attribute);
    if (number)
        memcpy(value, number, sizeof *number);
    else if (is_reuse(attribute))
        memcpy(value, &pool->reuse[attribute - 1], sizeof(int));
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* A high-water mark can only be set to 0: it starts again from the current value. */
CUresult sim_cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
    cuuint64_t number = 0;

    if (!value || !pool_known(pool))
        return CUDA_ERROR_INVALID_VALUE;
    if (is_reuse(attribute)) {
        memcpy(&pool->reuse[attribute - 1], value, sizeof(int));
        return CUDA_SUCCESS;
    }
    memcpy(&number, value, sizeof number);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pool->threshold = number;
    else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH && number == 0)
        pool->reserved_high = pool->reserved;
    else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH && number == 0)
        pool->used_high = pool->used;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
    if (!pool_known(pool) || (count && !access))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        const struct device *other = device_of(access[i].location.id);
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !other)
            return CUDA_ERROR_INVALID_DEVICE;
        if (other == pool->device)
            continue;
        uint64_t bit = (uint64_t)1 << other->ordinal;
        if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
            pool->peers &= ~bit;
        else if (pool->device && !machine_peers(other->gpu, pool->device->gpu))
            return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
        else
            pool->peers |= bit;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolGetAccess(int *flags, CUmemoryPool pool, CUmemLocation *location)
{
    if (!flags || !location || !pool_known(pool) || !device_of(location->id))
        return CUDA_ERROR_INVALID_VALUE;
    int allowed = device_of(location->id) == pool->device || (pool->peers >> location->id & 1);
    *flags = allowed ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

static CUresult allocate(CUdeviceptr *address, size_t bytes, CUmemoryPool pool)
{
    size_t charged = granule_up(bytes, GRANULE_SMALL);
    CUresult result = charged ? pool_take(pool, charged) : CUDA_ERROR_OUT_OF_MEMORY;

    if (result != CUDA_SUCCESS)
        return result;
    void *memory = backing_take(charged);
    if (!memory) {
        pool_return(pool, charged);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = range_address(memory);
    range_add((struct range){.base = *address,
                             .bytes = bytes,
                             .charged = charged,
                             .kind = RANGE_POOL,
                             .device = pool->device,
                             .pool = pool},
              &pool->memory);
    return CUDA_SUCCESS;
}

/* On a capturing stream the allocation becomes a node, and the memory the graph's. */
static CUresult capture_allocation(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                   CUstream stream)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps = pool->props, .bytesize = bytes};
    const CUgraphNode *last;
    size_t count;
    struct work work;
    CUgraph graph = capture_graph(stream, &last, &count);

    if (!graph)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    CUresult result = graph_alloc(graph, last, count, &params, &work);
    if (result != CUDA_SUCCESS)
        return result;
    *address = params.dptr;
    return capture_or_run(stream, &work);
}

CUresult sim_cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                     CUstream stream)
{
    CUresult result = stream_check(stream);

    if (result != CUDA_SUCCESS)
        return result;
    if (!address || bytes == 0 || !pool_known(pool) || pool->imported)
        return CUDA_ERROR_INVALID_VALUE;
    if (capture_active(stream))
        return capture_allocation(address, bytes, pool, stream);
    return allocate(address, bytes, pool);
}

CUresult sim_cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream)
{
    CUmemoryPool pool = NULL;
    CUresult result = stream_check(stream);

    if (result == CUDA_SUCCESS)
        result = sim_cuDeviceGetMemPool(&pool, stream_device(stream)->ordinal);
    return result == CUDA_SUCCESS ? sim_cuMemAllocFromPoolAsync(address, bytes, pool, stream)
                                  : result;
}

CUresult sim_cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    CUresult result = stream_check(stream);

    if (result != CUDA_SUCCESS)
        return result;
    if (!address)
        return CUDA_SUCCESS;
    if (capture_active(stream) && !graph_memory_known(address))
        return CUDA_ERROR_INVALID_VALUE;
    if (capture_active(stream))
        return capture_or_run(stream, &(struct work){.type = NODE_MEM_FREE, .freed = address});
    struct range *range = range_from(address);
    if (range && (range->kind == RANGE_DEVICE || range->freeable))
        return sim_cuMemFree_v2(address);
    return graph_memory_free(address);
}
