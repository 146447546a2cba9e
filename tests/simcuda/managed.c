/* managed.c -- advice and prefetching. Managed memory stays where it was allocated; only the
 * arguments are judged. */
#include "api.h"
#include "devices.h"
#include "ranges.h"

#include <string.h>

static CUresult check(CUdeviceptr address, size_t bytes)
{
    struct range *range = range_at(address);

    if (bytes == 0 || !range || range->kind != RANGE_MANAGED)
        return CUDA_ERROR_INVALID_VALUE;
    return address - range->base + bytes <= range->bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_device(CUdevice ordinal)
{
    return ordinal == -1 || device_of(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult check_location(CUmemLocation location)
{
    return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? check_device(location.id) : CUDA_SUCCESS;
}

CUresult sim_cuMemAdvise(CUdeviceptr address, size_t bytes, int advice, CUdevice ordinal)
{
    CUresult result = check(address, bytes);

    (void)advice;
    return result == CUDA_SUCCESS ? check_device(ordinal) : result;
}

CUresult sim_cuMemAdvise_v2(CUdeviceptr address, size_t bytes, int advice, CUmemLocation location)
{
    CUresult result = check(address, bytes);

    (void)advice;
    return result == CUDA_SUCCESS ? check_location(location) : result;
}

CUresult sim_cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice ordinal,
                                CUstream stream)
{
    (void)stream;
    return sim_cuMemAdvise(address, bytes, 0, ordinal);
}

CUresult sim_cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location,
                                   unsigned int flags, CUstream stream)
{
    (void)flags, (void)stream;
    return sim_cuMemAdvise_v2(address, bytes, 0, location);
}

CUresult sim_cuMemPrefetchBatchAsync(CUdeviceptr *addresses, size_t *bytes, size_t count,
                                     CUmemLocation *locations, size_t *indices,
                                     size_t location_count, unsigned long long flags,
                                     CUstream stream)
{
    if (!addresses || !bytes || !locations || !indices || !location_count || flags)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0, which = 0; i < count; i++) {
        while (which + 1 < location_count && indices[which + 1] <= i)
            which++;
        CUresult result =
            sim_cuMemPrefetchAsync_v2(addresses[i], bytes[i], locations[which], 0, stream);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuMemDiscardBatchAsync(CUdeviceptr *addresses, size_t *bytes, size_t count,
                                    unsigned long long flags, CUstream stream)
{
    (void)stream;
    if (!addresses || !bytes || flags)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (check(addresses[i], bytes[i]) != CUDA_SUCCESS)
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemRangeGetAttribute(void *out, size_t out_bytes, int attribute, CUdeviceptr address,
                                    size_t bytes)
{
    (void)attribute;
    CUresult result = out ? check(address, bytes) : CUDA_ERROR_INVALID_VALUE;

    if (result == CUDA_SUCCESS)
        memset(out, 0, out_bytes);
    return result;
}

CUresult sim_cuMemRangeGetAttributes(void **out, size_t *out_bytes, int *attributes, size_t count,
                                     CUdeviceptr address, size_t bytes)
{
    if (!out || !out_bytes || !attributes)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        CUresult result =
            sim_cuMemRangeGetAttribute(out[i], out_bytes[i], attributes[i], address, bytes);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}
