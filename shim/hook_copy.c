/* hook_copy.c -- cross_device_copy = deny: copies of a number of bytes, and batches of them.
 *
 * Knows: the calls, and where each of them says what it copies. Must not know: where addresses lie,
 * or what becomes of a copy between GPUs (copy.h). A refused call does nothing at all.
 *
 * Not here, since they have one end only: cuMemset*, and cuStreamWriteValue, WaitValue and
 * BatchMemOp, which write or read one word that comes from the caller; over a peer's memory that is
 * access, which peer_access rules.
 */
#include "copy.h"
#include "hook.h"

#define GUARD(symbol, parameters, arguments, check)                                                \
    CUresult symbol parameters                                                                     \
    {                                                                                              \
        HOOK_ENTER(symbol, arguments);                                                             \
        CUresult rc = (check);                                                                     \
        return rc == CUDA_SUCCESS ? real.symbol arguments : rc;                                    \
    }

static CUresult linear(const char *call, uint64_t to, uint64_t from, uint64_t bytes)
{
    const struct copy_end target = {.address = to, .bytes = bytes},
                          source = {.address = from, .bytes = bytes};
    return copy_check(call, &target, &source);
}

#define ADDRESS(of) ((uint64_t)(uintptr_t)(of))
#define LINEAR(symbol, call, to_type, from_type, bytes_type)                                       \
    GUARD(symbol, (to_type to, from_type from, bytes_type bytes), (to, from, bytes),               \
          linear(call, ADDRESS(to), ADDRESS(from), bytes))
#define LINEAR_ON(symbol, call, to_type, from_type, bytes_type)                                    \
    GUARD(symbol, (to_type to, from_type from, bytes_type bytes, CUstream stream),                 \
          (to, from, bytes, stream), linear(call, ADDRESS(to), ADDRESS(from), bytes))

LINEAR(cuMemcpy, "cuMemcpy", CUdeviceptr, CUdeviceptr, size_t)
LINEAR(cuMemcpy_ptds, "cuMemcpy", CUdeviceptr, CUdeviceptr, size_t)
LINEAR_ON(cuMemcpyAsync, "cuMemcpyAsync", CUdeviceptr, CUdeviceptr, size_t)
LINEAR_ON(cuMemcpyAsync_ptsz, "cuMemcpyAsync", CUdeviceptr, CUdeviceptr, size_t)

LINEAR(cuMemcpyDtoD, "cuMemcpyDtoD", CUdeviceptr_v1, CUdeviceptr_v1, unsigned int)
LINEAR(cuMemcpyDtoD_v2, "cuMemcpyDtoD", CUdeviceptr, CUdeviceptr, size_t)
LINEAR(cuMemcpyDtoD_v2_ptds, "cuMemcpyDtoD", CUdeviceptr, CUdeviceptr, size_t)
LINEAR_ON(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync", CUdeviceptr_v1, CUdeviceptr_v1, unsigned int)
LINEAR_ON(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync", CUdeviceptr, CUdeviceptr, size_t)
LINEAR_ON(cuMemcpyDtoDAsync_v2_ptsz, "cuMemcpyDtoDAsync", CUdeviceptr, CUdeviceptr, size_t)

LINEAR(cuMemcpyHtoD, "cuMemcpyHtoD", CUdeviceptr_v1, const void *, unsigned int)
LINEAR(cuMemcpyHtoD_v2, "cuMemcpyHtoD", CUdeviceptr, const void *, size_t)
LINEAR(cuMemcpyHtoD_v2_ptds, "cuMemcpyHtoD", CUdeviceptr, const void *, size_t)
LINEAR_ON(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync", CUdeviceptr_v1, const void *, unsigned int)
LINEAR_ON(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync", CUdeviceptr, const void *, size_t)
LINEAR_ON(cuMemcpyHtoDAsync_v2_ptsz, "cuMemcpyHtoDAsync", CUdeviceptr, const void *, size_t)

LINEAR(cuMemcpyDtoH, "cuMemcpyDtoH", void *, CUdeviceptr_v1, unsigned int)
LINEAR(cuMemcpyDtoH_v2, "cuMemcpyDtoH", void *, CUdeviceptr, size_t)
LINEAR(cuMemcpyDtoH_v2_ptds, "cuMemcpyDtoH", void *, CUdeviceptr, size_t)
LINEAR_ON(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync", void *, CUdeviceptr_v1, unsigned int)
LINEAR_ON(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", void *, CUdeviceptr, size_t)
LINEAR_ON(cuMemcpyDtoHAsync_v2_ptsz, "cuMemcpyDtoHAsync", void *, CUdeviceptr, size_t)

/* The contexts are named beside the addresses: what either says counts. */
static CUresult peer(const char *call, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                     CUcontext from_context, size_t bytes)
{
    const struct copy_end target = {.address = to, .bytes = bytes, .context = to_context},
                          source = {.address = from, .bytes = bytes, .context = from_context};
    return bytes ? copy_check(call, &target, &source) : CUDA_SUCCESS;
}

#define PEER(symbol, call)                                                                         \
    GUARD(symbol,                                                                                  \
          (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,         \
           size_t bytes),                                                                          \
          (to, to_context, from, from_context, bytes),                                             \
          peer(call, to, to_context, from, from_context, bytes))
#define PEER_ON(symbol, call)                                                                      \
    GUARD(symbol,                                                                                  \
          (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,         \
           size_t bytes, CUstream stream),                                                         \
          (to, to_context, from, from_context, bytes, stream),                                     \
          peer(call, to, to_context, from, from_context, bytes))

PEER(cuMemcpyPeer, "cuMemcpyPeer")
PEER(cuMemcpyPeer_ptds, "cuMemcpyPeer")
PEER_ON(cuMemcpyPeerAsync, "cuMemcpyPeerAsync")
PEER_ON(cuMemcpyPeerAsync_ptsz, "cuMemcpyPeerAsync")

/* One end is an array, which `address` is on the other side of; or both are, and it is 0. */
static CUresult array(const char *call, CUarray to, CUarray from, uint64_t address, uint64_t bytes)
{
    const struct copy_end target = {to ? 0 : address, to ? 0 : bytes, to, NULL},
                          source = {from ? 0 : address, from ? 0 : bytes, from, NULL};
    return bytes ? copy_check(call, &target, &source) : CUDA_SUCCESS;
}

#define BETWEEN_ARRAYS(symbol, bytes_type)                                                         \
    GUARD(symbol,                                                                                  \
          (CUarray to, bytes_type to_at, CUarray from, bytes_type from_at, bytes_type bytes),      \
          (to, to_at, from, from_at, bytes), array("cuMemcpyAtoA", to, from, 0, bytes))
#define FROM_ARRAY(symbol, call, to_type, bytes_type)                                              \
    GUARD(symbol, (to_type to, CUarray from, bytes_type at, bytes_type bytes),                     \
          (to, from, at, bytes), array(call, NULL, from, ADDRESS(to), bytes))
#define FROM_ARRAY_ON(symbol, call, to_type, bytes_type)                                           \
    GUARD(symbol, (to_type to, CUarray from, bytes_type at, bytes_type bytes, CUstream stream),    \
          (to, from, at, bytes, stream), array(call, NULL, from, ADDRESS(to), bytes))
#define TO_ARRAY(symbol, call, from_type, bytes_type)                                              \
    GUARD(symbol, (CUarray to, bytes_type at, from_type from, bytes_type bytes),                   \
          (to, at, from, bytes), array(call, to, NULL, ADDRESS(from), bytes))
#define TO_ARRAY_ON(symbol, call, from_type, bytes_type)                                           \
    GUARD(symbol, (CUarray to, bytes_type at, from_type from, bytes_type bytes, CUstream stream),  \
          (to, at, from, bytes, stream), array(call, to, NULL, ADDRESS(from), bytes))

BETWEEN_ARRAYS(cuMemcpyAtoA, unsigned int)
BETWEEN_ARRAYS(cuMemcpyAtoA_v2, size_t)
BETWEEN_ARRAYS(cuMemcpyAtoA_v2_ptds, size_t)

FROM_ARRAY(cuMemcpyAtoD, "cuMemcpyAtoD", CUdeviceptr_v1, unsigned int)
FROM_ARRAY(cuMemcpyAtoD_v2, "cuMemcpyAtoD", CUdeviceptr, size_t)
FROM_ARRAY(cuMemcpyAtoD_v2_ptds, "cuMemcpyAtoD", CUdeviceptr, size_t)
FROM_ARRAY(cuMemcpyAtoH, "cuMemcpyAtoH", void *, unsigned int)
FROM_ARRAY(cuMemcpyAtoH_v2, "cuMemcpyAtoH", void *, size_t)
FROM_ARRAY(cuMemcpyAtoH_v2_ptds, "cuMemcpyAtoH", void *, size_t)
FROM_ARRAY_ON(cuMemcpyAtoHAsync, "cuMemcpyAtoHAsync", void *, unsigned int)
FROM_ARRAY_ON(cuMemcpyAtoHAsync_v2, "cuMemcpyAtoHAsync", void *, size_t)
FROM_ARRAY_ON(cuMemcpyAtoHAsync_v2_ptsz, "cuMemcpyAtoHAsync", void *, size_t)

TO_ARRAY(cuMemcpyDtoA, "cuMemcpyDtoA", CUdeviceptr_v1, unsigned int)
TO_ARRAY(cuMemcpyDtoA_v2, "cuMemcpyDtoA", CUdeviceptr, size_t)
TO_ARRAY(cuMemcpyDtoA_v2_ptds, "cuMemcpyDtoA", CUdeviceptr, size_t)
TO_ARRAY(cuMemcpyHtoA, "cuMemcpyHtoA", const void *, unsigned int)
TO_ARRAY(cuMemcpyHtoA_v2, "cuMemcpyHtoA", const void *, size_t)
TO_ARRAY(cuMemcpyHtoA_v2_ptds, "cuMemcpyHtoA", const void *, size_t)
TO_ARRAY_ON(cuMemcpyHtoAAsync, "cuMemcpyHtoAAsync", const void *, unsigned int)
TO_ARRAY_ON(cuMemcpyHtoAAsync_v2, "cuMemcpyHtoAAsync", const void *, size_t)
TO_ARRAY_ON(cuMemcpyHtoAAsync_v2_ptsz, "cuMemcpyHtoAAsync", const void *, size_t)

/* All copies of a batch are looked at before the first is made. Which one is refused is told where
 * the driver would tell which one failed. */
static CUresult batch(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes,
                      size_t count, size_t *failed)
{
    for (size_t i = 0; to && from && bytes && i < count; i++) {
        CUresult rc = linear("cuMemcpyBatchAsync", to[i], from[i], bytes[i]);
        if (rc == CUDA_SUCCESS)
            continue;
        if (failed)
            *failed = i;
        return rc;
    }
    return CUDA_SUCCESS;
}

#define BATCH_FAILED(symbol)                                                                       \
    GUARD(symbol,                                                                                  \
          (CUdeviceptr * to, CUdeviceptr * from, size_t * bytes, size_t count,                     \
           CUmemcpyAttributes * attributes, size_t * indices, size_t attribute_count,              \
           size_t * failed, CUstream stream),                                                      \
          (to, from, bytes, count, attributes, indices, attribute_count, failed, stream),          \
          batch(to, from, bytes, count, failed))
#define BATCH(symbol)                                                                              \
    GUARD(symbol,                                                                                  \
          (CUdeviceptr * to, CUdeviceptr * from, size_t * bytes, size_t count,                     \
           CUmemcpyAttributes * attributes, size_t * indices, size_t attribute_count,              \
           CUstream stream),                                                                       \
          (to, from, bytes, count, attributes, indices, attribute_count, stream),                  \
          batch(to, from, bytes, count, NULL))

BATCH_FAILED(cuMemcpyBatchAsync)
BATCH_FAILED(cuMemcpyBatchAsync_ptsz)
BATCH(cuMemcpyBatchAsync_v2)
BATCH(cuMemcpyBatchAsync_v2_ptsz)
