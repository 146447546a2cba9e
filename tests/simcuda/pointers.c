/* pointers.c -- what the driver says of an address. Numbers: CUpointer_attribute of CUDA 13.0. */
#include "api.h"
#include "context.h"
#include "devices.h"
#include "ranges.h"

#include <string.h>

enum pointer_attribute {
    POINTER_CONTEXT = 1,
    POINTER_MEMORY_TYPE = 2,
    POINTER_DEVICE = 3,
    POINTER_HOST = 4,
    POINTER_P2P_TOKENS = 5,
    POINTER_SYNC_MEMOPS = 6,
    POINTER_BUFFER_ID = 7,
    POINTER_IS_MANAGED = 8,
    POINTER_ORDINAL = 9,
    POINTER_LEGACY_IPC = 10,
    POINTER_RANGE_START = 11,
    POINTER_RANGE_SIZE = 12,
    POINTER_MAPPED = 13,
    POINTER_HANDLE_TYPES = 14,
    POINTER_RDMA_CAPABLE = 15,
    POINTER_ACCESS_FLAGS = 16,
    POINTER_POOL = 17,
    POINTER_MAPPING_SIZE = 18,
    POINTER_MAPPING_BASE = 19,
    POINTER_BLOCK_ID = 20,
    POINTER_LAST = 23
};

static const size_t widths[POINTER_LAST + 1] = {
    [POINTER_CONTEXT] = 8,
    [POINTER_MEMORY_TYPE] = 4,
    [POINTER_DEVICE] = 8,
    [POINTER_HOST] = 8,
    [POINTER_P2P_TOKENS] = 16,
    [POINTER_SYNC_MEMOPS] = 4,
    [POINTER_BUFFER_ID] = 8,
    [POINTER_IS_MANAGED] = 4,
    [POINTER_ORDINAL] = 4,
    [POINTER_LEGACY_IPC] = 4,
    [POINTER_RANGE_START] = 8,
    [POINTER_RANGE_SIZE] = 8,
    [POINTER_MAPPED] = 4,
    [POINTER_HANDLE_TYPES] = 8,
    [POINTER_RDMA_CAPABLE] = 4,
    [POINTER_ACCESS_FLAGS] = 4,
    [POINTER_POOL] = 8,
    [POINTER_MAPPING_SIZE] = 8,
    [POINTER_MAPPING_BASE] = 8,
    [POINTER_BLOCK_ID] = 8,
    [21] = 8,
    [22] = 4,
    [POINTER_LAST] = 4,
};

static int is_host(const struct range *range)
{
    return range->kind == RANGE_HOST || range->kind == RANGE_REGISTERED || !range->device;
}

/* The value of up to 8 bytes, as an integer. */
static uint64_t value_of(const struct range *range, int attribute, CUdeviceptr address)
{
    switch (attribute) {
    case POINTER_CONTEXT:
        return (uintptr_t)range->context;
    case POINTER_MEMORY_TYPE:
        return is_host(range) ? MEMORY_TYPE_HOST : MEMORY_TYPE_DEVICE;
    case POINTER_DEVICE:
        return address;
    case POINTER_HOST:
        return is_host(range) || range->kind == RANGE_MANAGED ? address : 0;
    case POINTER_BUFFER_ID:
    case POINTER_BLOCK_ID:
        return range->id;
    case POINTER_IS_MANAGED:
        return range->kind == RANGE_MANAGED;
    case POINTER_ORDINAL:
        return (uint64_t)(range->device ? range->device->ordinal : -1);
    case POINTER_LEGACY_IPC:
        return range->kind == RANGE_DEVICE;
    case POINTER_RANGE_START:
    case POINTER_MAPPING_BASE:
        return range->base;
    case POINTER_RANGE_SIZE:
    case POINTER_MAPPING_SIZE:
        return range->bytes;
    case POINTER_MAPPED:
        return 1;
    case POINTER_ACCESS_FLAGS:
        return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    case POINTER_POOL:
        return (uintptr_t)range->pool;
    default:
        return 0;
    }
}

/* What an address that the driver doesn't know answers: zeros and the ordinal -2. */
static uint64_t value_of_unknown(int attribute)
{
    return attribute == POINTER_ORDINAL ? (uint64_t)-2 : 0;
}

static void store(void *out, int attribute, const struct range *range, CUdeviceptr address)
{
    uint64_t words[2] = {0};

    words[0] = range ? value_of(range, attribute, address) : value_of_unknown(attribute);
    memcpy(out, words, widths[attribute]); /* little-endian */
}

/* The driver answers for the one, but for the several fills in what it can. */
CUresult sim_cuPointerGetAttribute(void *out, int attribute, CUdeviceptr address)
{
    struct range *range = range_at(address);

    if (!out || attribute < 1 || attribute > POINTER_LAST)
        return CUDA_ERROR_INVALID_VALUE;
    if (!range || (attribute == POINTER_HOST && !value_of(range, POINTER_HOST, address)))
        return CUDA_ERROR_INVALID_VALUE;
    store(out, attribute, range, address);
    return CUDA_SUCCESS;
}

CUresult sim_cuPointerGetAttributes(unsigned int count, int *attributes, void **out,
                                    CUdeviceptr address)
{
    struct range *range = range_at(address);

    if (count && (!attributes || !out))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; i++)
        if (attributes[i] < 1 || attributes[i] > POINTER_LAST || !out[i])
            return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; i++)
        store(out[i], attributes[i], range, address);
    return CUDA_SUCCESS;
}

CUresult sim_cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr address)
{
    if (!value || attribute != POINTER_SYNC_MEMOPS || !range_at(address))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}
