/* pools.c -- see pools.h. Idle reserve is one number: fragmentation is not simulated. */
#include "pools.h"

#include "backing.h"
#include "devices.h"
#include "granule.h"
#include "settings.h"
#include "state.h"

#include <stdlib.h>

static CUmemoryPool pools;

int pool_known(CUmemoryPool pool)
{
    for (CUmemoryPool each = pools; each; each = each->next)
        if (each == pool)
            return !pool->doomed;
    return 0;
}

CUmemoryPool pool_new(struct device *device, const CUmemPoolProps *props)
{
    CUmemoryPool pool = calloc(1, sizeof *pool);

    if (!pool)
        abort();
    pool->device = device;
    pool->props = *props;
    pool->chunk = GRANULE_POOL;
    for (int i = 0; i < 3; i++)
        pool->reuse[i] = 1;
    pool->next = pools;
    pools = pool;
    return pool;
}

static CUmemoryPool driver_pool(struct device *device, CUmemoryPool *pool)
{
    if (!*pool) {
        CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, device->ordinal}};
        *pool = pool_new(device, &props);
        (*pool)->own = 1;
    }
    return *pool;
}

CUmemoryPool pool_of_device(struct device *device)
{
    return driver_pool(device, &device->default_pool);
}

CUmemoryPool pool_of_graphs(struct device *device)
{
    CUmemoryPool pool = driver_pool(device, &device->graph_pool);

    pool->threshold = UINT64_MAX; /* graph memory goes back by trim alone */
    pool->chunk = settings_graph_chunk_bytes();
    return pool;
}

CUmemoryPool pool_of_managed(struct device *device)
{
    CUmemoryPool pool = driver_pool(device, &device->default_managed_pool);

    pool->props.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
    return pool;
}

/* Takes whole chunks of the card for a request; other pools' idle memory goes first. */
static CUresult grow(CUmemoryPool pool, size_t bytes)
{
    size_t growth = granule_up(bytes, pool->chunk);

    if (growth == 0 || (pool->props.maxSize &&
                        pool->reserved + growth > granule_up(pool->props.maxSize, pool->chunk)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (pool->device && state_take(pool->device->gpu->index, growth, USE_ALLOCATION) != 0) {
        pools_trim_all(pool->device);
        if (state_take(pool->device->gpu->index, growth, USE_ALLOCATION) != 0)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pool->reserved += growth;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    return CUDA_SUCCESS;
}

CUresult pool_take(CUmemoryPool pool, size_t bytes)
{
    if (bytes > pool->reserved - pool->used) {
        CUresult result = grow(pool, bytes);
        if (result != CUDA_SUCCESS)
            return result;
    }
    pool->used += bytes;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    return CUDA_SUCCESS;
}

void pool_return(CUmemoryPool pool, size_t bytes) { pool->used -= bytes; }

CUresult pool_reserve(CUmemoryPool pool, size_t bytes)
{
    const cuuint64_t idle = pool->reserved - pool->used;
    CUresult result = bytes > idle ? grow(pool, bytes - idle) : CUDA_SUCCESS;

    if (result == CUDA_SUCCESS && pool->used + bytes > pool->used_high)
        pool->used_high = pool->used + bytes;
    return result;
}

void pool_trim(CUmemoryPool pool, cuuint64_t keep)
{
    cuuint64_t floor = keep > pool->used ? keep : pool->used;

    if (pool->reserved <= floor)
        return;
    cuuint64_t given = (pool->reserved - floor) & ~((cuuint64_t)pool->chunk - 1);
    pool->reserved -= given;
    if (pool->device && given)
        state_give(pool->device->gpu->index, given, USE_ALLOCATION);
}

/* Frees a pool that the program has destroyed, once nothing of it is alive. */
static void bury(CUmemoryPool pool)
{
    CUmemoryPool *link = &pools;

    if (!pool->doomed || pool->used)
        return;
    pool_trim(pool, 0);
    while (*link != pool)
        link = &(*link)->next;
    *link = pool->next;
    free(pool);
}

void pool_doom(CUmemoryPool pool)
{
    pool->doomed = 1;
    bury(pool);
}

void pool_free(struct range *range)
{
    CUmemoryPool pool = range->pool;

    backing_give(range_pointer(range->base), range->charged);
    pool_return(pool, range->charged);
    range_remove(range, &pool->memory);
    bury(pool);
}

void pools_trim_all(struct device *device)
{
    for (CUmemoryPool pool = pools; pool; pool = pool->next)
        if (pool->device == device)
            pool_trim(pool, 0);
}

void pools_synchronized(struct device *device)
{
    for (CUmemoryPool pool = pools; pool; pool = pool->next)
        if (pool->device == device)
            pool_trim(pool, pool->threshold);
}

void pools_empty(struct device *device)
{
    CUmemoryPool next;

    for (CUmemoryPool pool = pools; pool; pool = next) {
        next = pool->next;
        if (pool->device != device)
            continue;
        int doomed = pool->doomed;
        pool->doomed = 0; /* not to be buried under our feet */
        while (pool->memory)
            pool_free(pool->memory);
        pool_trim(pool, 0);
        pool->doomed = doomed;
        bury(pool);
    }
}
