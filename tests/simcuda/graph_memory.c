/* graph_memory.c -- see graph_memory.h; the graph memory attributes of devices. Accounting is a
 * pool's (pools.h). */
#include "graph_memory.h"

#include "api.h"
#include "backing.h"
#include "devices.h"
#include "granule.h"
#include "graph.h"
#include "pools.h"
#include "ranges.h"

#include <stdlib.h>

enum graph_attribute { USED_CURRENT, USED_HIGH, RESERVED_CURRENT, RESERVED_HIGH };

struct graph_memory {
    struct range *range;
    void *backing;
    size_t backing_bytes;
    struct device *device;
    unsigned int references;
    struct graph_memory *next;
};

static struct graph_memory *all;
static struct range *ranges;

CUresult graph_memory_reserve(CUDA_MEM_ALLOC_NODE_PARAMS *params, struct graph_memory **out)
{
    struct device *device = device_of(params->poolProps.location.id);
    size_t charged = granule_of(params->bytesize);

    if (params->bytesize == 0 || params->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        params->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE || !device)
        return CUDA_ERROR_INVALID_VALUE;
    /* what has pages of its own begins with a page of the card */
    size_t slack = charged % GRANULE_LARGE ? 0 : GRANULE_LARGE;
    void *address = charged ? backing_take(charged + slack) : NULL;
    struct graph_memory *memory = address ? calloc(1, sizeof *memory) : NULL;
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memory->backing = address;
    memory->backing_bytes = charged + slack;
    memory->device = device;
    if (slack)
        address = range_pointer(granule_up(range_address(address), GRANULE_LARGE));
    memory->references = 1;
    memory->range = range_add((struct range){.base = range_address(address),
                                             .bytes = params->bytesize,
                                             .charged = charged,
                                             .kind = RANGE_GRAPH,
                                             .device = device,
                                             .dormant = 1},
                              &ranges);
    memory->next = all;
    all = memory;
    params->dptr = memory->range->base;
    *out = memory;
    return CUDA_SUCCESS;
}

int graph_memory_serves(const struct graph_memory *memory, const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    return memory->device == device_of(params->poolProps.location.id) &&
           memory->range->charged == granule_of(params->bytesize);
}

CUdeviceptr graph_memory_address(const struct graph_memory *memory) { return memory->range->base; }

size_t graph_memory_bytes(const struct graph_memory *memory, const struct device *device)
{
    return memory->device == device ? memory->range->charged : 0;
}

int graph_memory_is_live(const struct graph_memory *memory) { return !memory->range->dormant; }

int graph_memory_known(CUdeviceptr address)
{
    const struct range *range = range_from(address);

    return range && range->kind == RANGE_GRAPH;
}

void graph_memory_hold(struct graph_memory *memory) { memory->references++; }

void graph_memory_drop(struct graph_memory *memory)
{
    struct graph_memory **link = &all;

    if (--memory->references > 0 || !memory->range->dormant)
        return; /* a live allocation outlives its graph until it is freed */
    while (*link != memory)
        link = &(*link)->next;
    *link = memory->next;
    backing_give(memory->backing, memory->backing_bytes);
    range_remove(memory->range, &ranges);
    free(memory);
}

CUresult graph_memory_start(struct graph_memory *memory)
{
    if (!memory->range->dormant)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = pool_take(pool_of_graphs(memory->device), memory->range->charged);
    if (result == CUDA_SUCCESS)
        memory->range->dormant = 0;
    return result;
}

void graph_memory_stop(struct graph_memory *memory)
{
    if (memory->range->dormant)
        return;
    pool_return(pool_of_graphs(memory->device), memory->range->charged);
    memory->range->dormant = 1;
    if (memory->references == 0) {
        memory->references = 1;
        graph_memory_drop(memory);
    }
}

CUresult graph_memory_free(CUdeviceptr address)
{
    struct range *range = range_from(address);

    if (range && range->kind == RANGE_POOL) {
        pool_free(range);
        return CUDA_SUCCESS;
    }
    for (struct graph_memory *memory = all; memory; memory = memory->next)
        if (memory->range == range && !range->dormant) {
            graph_memory_stop(memory);
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

void graph_memory_empty(struct device *device)
{
    struct graph_memory *next;

    for (struct graph_memory *memory = all; memory; memory = next) {
        next = memory->next;
        if (memory->device == device)
            graph_memory_stop(memory);
    }
}

CUresult sim_cuDeviceGetGraphMemAttribute(CUdevice ordinal, int attribute, void *value)
{
    static const CUmemPool_attribute pool_attributes[] = {
        [USED_CURRENT] = CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
        [USED_HIGH] = CU_MEMPOOL_ATTR_USED_MEM_HIGH,
        [RESERVED_CURRENT] = CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
        [RESERVED_HIGH] = CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
    };
    struct device *device = device_of(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || attribute < USED_CURRENT || attribute > RESERVED_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result =
        sim_cuMemPoolGetAttribute(pool_of_graphs(device), (int)pool_attributes[attribute], value);
    if (attribute == USED_CURRENT) /* alive, or still mapped by a graph that has run */
        *(cuuint64_t *)value += graph_mapped(device);
    return result;
}

CUresult sim_cuDeviceSetGraphMemAttribute(CUdevice ordinal, int attribute, void *value)
{
    struct device *device = device_of(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || (attribute != USED_HIGH && attribute != RESERVED_HIGH))
        return CUDA_ERROR_INVALID_VALUE;
    return sim_cuMemPoolSetAttribute(pool_of_graphs(device),
                                     attribute == USED_HIGH ? CU_MEMPOOL_ATTR_USED_MEM_HIGH
                                                            : CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH,
                                     value);
}

CUresult sim_cuDeviceGraphMemTrim(CUdevice ordinal)
{
    struct device *device = device_of(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    graph_unmap();
    pool_trim(pool_of_graphs(device), 0);
    return CUDA_SUCCESS;
}
