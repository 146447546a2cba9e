/* hook_prefetch.c -- cross_device_copy = deny: managed memory that is sent to another GPU than the
 * one that it was allocated on.
 *
 * Knows: the calls that say where it is to be. Must not know: where it is (copy.h), which is the
 * driver's secret; what migrates on a page fault goes by no call.
 */
#include "copy.h"
#include "hook.h"

static int device_of(CUmemLocation location)
{
    return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : NO_DEVICE;
}

/* Only what moves the memory, or maps it for another GPU; other advice names a device for nothing,
 * or takes back what was said. */
static CUresult check_advice(CUdeviceptr address, size_t bytes, CUmem_advise advice, int device)
{
    if (advice != CU_MEM_ADVISE_SET_PREFERRED_LOCATION && advice != CU_MEM_ADVISE_SET_ACCESSED_BY)
        return CUDA_SUCCESS;
    return copy_check_move("cuMemAdvise", address, bytes, device);
}

CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device)
{
    HOOK_ENTER(cuMemAdvise, (address, bytes, advice, device));
    CUresult rc = check_advice(address, bytes, advice, device);
    return rc == CUDA_SUCCESS ? real.cuMemAdvise(address, bytes, advice, device) : rc;
}

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice,
                        CUmemLocation location)
{
    HOOK_ENTER(cuMemAdvise_v2, (address, bytes, advice, location));
    CUresult rc = check_advice(address, bytes, advice, device_of(location));
    return rc == CUDA_SUCCESS ? real.cuMemAdvise_v2(address, bytes, advice, location) : rc;
}

#define PREFETCH(symbol)                                                                           \
    CUresult symbol(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream)           \
    {                                                                                              \
        HOOK_ENTER(symbol, (address, bytes, device, stream));                                      \
        CUresult rc = copy_check_move("cuMemPrefetchAsync", address, bytes, device);               \
        return rc == CUDA_SUCCESS ? real.symbol(address, bytes, device, stream) : rc;              \
    }
#define PREFETCH_TO_LOCATION(symbol)                                                               \
    CUresult symbol(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned int flags, \
                    CUstream stream)                                                               \
    {                                                                                              \
        HOOK_ENTER(symbol, (address, bytes, location, flags, stream));                             \
        CUresult rc = copy_check_move("cuMemPrefetchAsync", address, bytes, device_of(location));  \
        return rc == CUDA_SUCCESS ? real.symbol(address, bytes, location, flags, stream) : rc;     \
    }

PREFETCH(cuMemPrefetchAsync)
PREFETCH(cuMemPrefetchAsync_ptsz)
PREFETCH_TO_LOCATION(cuMemPrefetchAsync_v2)
PREFETCH_TO_LOCATION(cuMemPrefetchAsync_v2_ptsz)

/* locations[k] holds for the memory from indices[k] up to indices[k + 1]. All is looked at before
 * anything moves. */
static CUresult check_batch(const char *call, const CUdeviceptr *addresses, const size_t *bytes,
                            size_t count, const CUmemLocation *locations, const size_t *indices,
                            size_t location_count)
{
    CUresult rc = CUDA_SUCCESS;
    if (!addresses || !bytes || !locations || !indices || !location_count)
        return rc; /* the driver's to refuse */
    for (size_t i = 0, k = 0; rc == CUDA_SUCCESS && i < count; i++) {
        while (k + 1 < location_count && indices[k + 1] <= i)
            k++;
        rc = copy_check_move(call, addresses[i], bytes[i], device_of(locations[k]));
    }
    return rc;
}

#define PREFETCH_BATCH(symbol, call)                                                               \
    CUresult symbol(CUdeviceptr *addresses, size_t *bytes, size_t count, CUmemLocation *locations, \
                    size_t *indices, size_t location_count, unsigned long long flags,              \
                    CUstream stream)                                                               \
    {                                                                                              \
        HOOK_ENTER(symbol,                                                                         \
                   (addresses, bytes, count, locations, indices, location_count, flags, stream));  \
        CUresult rc =                                                                              \
            check_batch(call, addresses, bytes, count, locations, indices, location_count);        \
        return rc == CUDA_SUCCESS ? real.symbol(addresses, bytes, count, locations, indices,       \
                                                location_count, flags, stream)                     \
                                  : rc;                                                            \
    }

PREFETCH_BATCH(cuMemPrefetchBatchAsync, "cuMemPrefetchBatchAsync")
PREFETCH_BATCH(cuMemPrefetchBatchAsync_ptsz, "cuMemPrefetchBatchAsync")
PREFETCH_BATCH(cuMemDiscardAndPrefetchBatchAsync, "cuMemDiscardAndPrefetchBatchAsync")
PREFETCH_BATCH(cuMemDiscardAndPrefetchBatchAsync_ptsz, "cuMemDiscardAndPrefetchBatchAsync")
