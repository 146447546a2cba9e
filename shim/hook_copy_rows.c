/* hook_copy_rows.c -- cross_device_copy = deny: copies in two and three dimensions.
 *
 * Knows: the structs that describe them, and which bytes each end touches. Must not know: where
 * addresses lie (copy.h).
 */
#include "copy.h"
#include "hook.h"

/* What all of the driver's structs say of one end, and of the whole. */
struct rows {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    CUcontext context;
    uint64_t x, y, z;       /* where it begins */
    uint64_t pitch, height; /* bytes from row to row; rows from plane to plane */
};
struct extent {
    uint64_t width, height, depth; /* bytes, rows, planes */
};

/* From the first byte to behind the last, what lies between the rows included. Numbers that make no
 * sense wrap around, and are the driver's to refuse. */
static struct copy_end end_of(const struct rows *rows, const struct extent *extent)
{
    if (rows->type == CU_MEMORYTYPE_ARRAY)
        return (struct copy_end){.array = rows->array};
    const uint64_t pitch = rows->pitch ? rows->pitch : extent->width;
    const uint64_t height = rows->height ? rows->height : extent->height;
    const uint64_t base =
        rows->type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)rows->host : rows->device;
    return (struct copy_end){
        .address = base + (rows->z * height + rows->y) * pitch + rows->x,
        .bytes = ((extent->depth - 1) * height + extent->height - 1) * pitch + extent->width,
        .context = rows->context,
    };
}

static CUresult check(const char *call, const struct rows *to, const struct rows *from,
                      const struct extent *extent)
{
    if (!extent->width || !extent->height || !extent->depth)
        return CUDA_SUCCESS; /* nothing is copied */
    const struct copy_end target = end_of(to, extent), source = end_of(from, extent);
    return copy_check(call, &target, &source);
}

#define ROWS_2D(copy, end)                                                                         \
    (copy)->end##MemoryType, (copy)->end##Host, (copy)->end##Device, (copy)->end##Array, NULL,     \
        (copy)->end##XInBytes, (copy)->end##Y, 0, (copy)->end##Pitch, 0
#define ROWS_3D(copy, end, context)                                                                \
    (copy)->end##MemoryType, (copy)->end##Host, (copy)->end##Device, (copy)->end##Array, context,  \
        (copy)->end##XInBytes, (copy)->end##Y, (copy)->end##Z, (copy)->end##Pitch,                 \
        (copy)->end##Height

#define CHECK_2D(name, type)                                                                       \
    static CUresult name(const char *call, const type *copy)                                       \
    {                                                                                              \
        if (!copy)                                                                                 \
            return CUDA_SUCCESS;                                                                   \
        const struct rows to = {ROWS_2D(copy, dst)}, from = {ROWS_2D(copy, src)};                  \
        return check(call, &to, &from, &(struct extent){copy->WidthInBytes, copy->Height, 1});     \
    }
#define CHECK_3D(name, type, to_context, from_context)                                             \
    CUresult name(const char *call, const type *copy)                                              \
    {                                                                                              \
        if (!copy)                                                                                 \
            return CUDA_SUCCESS;                                                                   \
        const struct rows to = {ROWS_3D(copy, dst, to_context)},                                   \
                          from = {ROWS_3D(copy, src, from_context)};                               \
        return check(call, &to, &from,                                                             \
                     &(struct extent){copy->WidthInBytes, copy->Height, copy->Depth});             \
    }
/* A context is what tells device memory apart; of the other kinds the address or handle does. */
#define CONTEXT(copy, end)                                                                         \
    ((copy)->end##MemoryType == CU_MEMORYTYPE_DEVICE ? (copy)->end##Context : NULL)

CHECK_2D(check_2d, CUDA_MEMCPY2D)
CHECK_2D(check_2d_v1, CUDA_MEMCPY2D_v1)
CHECK_3D(copy_check_3d, CUDA_MEMCPY3D, NULL, NULL)
static CHECK_3D(check_3d_v1, CUDA_MEMCPY3D_v1, NULL,
                NULL) static CHECK_3D(check_peer, CUDA_MEMCPY3D_PEER, CONTEXT(copy, dst),
                                      CONTEXT(copy, src))

#define ROWS(symbol, call, type, check)                                                            \
    CUresult symbol(const type *copy)                                                              \
    {                                                                                              \
        HOOK_ENTER(symbol, (copy));                                                                \
        CUresult rc = check(call, copy);                                                           \
        return rc == CUDA_SUCCESS ? real.symbol(copy) : rc;                                        \
    }
#define ROWS_ON(symbol, call, type, check)                                                         \
    CUresult symbol(const type *copy, CUstream stream)                                             \
    {                                                                                              \
        HOOK_ENTER(symbol, (copy, stream));                                                        \
        CUresult rc = check(call, copy);                                                           \
        return rc == CUDA_SUCCESS ? real.symbol(copy, stream) : rc;                                \
    }

    ROWS(cuMemcpy2D, "cuMemcpy2D", CUDA_MEMCPY2D_v1,
         check_2d_v1) ROWS(cuMemcpy2D_v2, "cuMemcpy2D", CUDA_MEMCPY2D,
                           check_2d) ROWS(cuMemcpy2D_v2_ptds, "cuMemcpy2D", CUDA_MEMCPY2D, check_2d)
        ROWS(cuMemcpy2DUnaligned, "cuMemcpy2DUnaligned", CUDA_MEMCPY2D_v1, check_2d_v1)
            ROWS(cuMemcpy2DUnaligned_v2, "cuMemcpy2DUnaligned", CUDA_MEMCPY2D, check_2d)
                ROWS(cuMemcpy2DUnaligned_v2_ptds, "cuMemcpy2DUnaligned", CUDA_MEMCPY2D,
                     check_2d) ROWS_ON(cuMemcpy2DAsync, "cuMemcpy2DAsync", CUDA_MEMCPY2D_v1,
                                       check_2d_v1) ROWS_ON(cuMemcpy2DAsync_v2, "cuMemcpy2DAsync",
                                                            CUDA_MEMCPY2D, check_2d)
                    ROWS_ON(cuMemcpy2DAsync_v2_ptsz, "cuMemcpy2DAsync", CUDA_MEMCPY2D,
                            check_2d) ROWS(cuMemcpy3D, "cuMemcpy3D", CUDA_MEMCPY3D_v1, check_3d_v1)
                        ROWS(cuMemcpy3D_v2, "cuMemcpy3D", CUDA_MEMCPY3D, copy_check_3d)
                            ROWS(cuMemcpy3D_v2_ptds, "cuMemcpy3D", CUDA_MEMCPY3D, copy_check_3d)
                                ROWS_ON(cuMemcpy3DAsync, "cuMemcpy3DAsync", CUDA_MEMCPY3D_v1,
                                        check_3d_v1) ROWS_ON(cuMemcpy3DAsync_v2, "cuMemcpy3DAsync",
                                                             CUDA_MEMCPY3D, copy_check_3d)
                                    ROWS_ON(cuMemcpy3DAsync_v2_ptsz, "cuMemcpy3DAsync",
                                            CUDA_MEMCPY3D, copy_check_3d)
                                        ROWS(cuMemcpy3DPeer, "cuMemcpy3DPeer", CUDA_MEMCPY3D_PEER,
                                             check_peer) ROWS(cuMemcpy3DPeer_ptds, "cuMemcpy3DPeer",
                                                              CUDA_MEMCPY3D_PEER, check_peer)
                                            ROWS_ON(cuMemcpy3DPeerAsync, "cuMemcpy3DPeerAsync",
                                                    CUDA_MEMCPY3D_PEER, check_peer)
                                                ROWS_ON(cuMemcpy3DPeerAsync_ptsz,
                                                        "cuMemcpy3DPeerAsync", CUDA_MEMCPY3D_PEER,
                                                        check_peer)

    /* Rows are counted in elements, whose size an array on the other side knows: taken for one
     * byte, which finds where an end begins. */
    static struct copy_end
    end_of_operand(const CUmemcpy3DOperand *operand, const CUDA_MEMCPY3D_BATCH_OP *op)
{
    const struct extent extent = {op->extent.width, op->extent.height, op->extent.depth};
    const struct rows rows = {
        .type = operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY ? CU_MEMORYTYPE_ARRAY
                                                              : CU_MEMORYTYPE_UNIFIED,
        .device = operand->op.ptr.ptr,
        .array = operand->op.array.array,
        .pitch = operand->op.ptr.rowLength,
        .height = operand->op.ptr.layerHeight,
    };
    return end_of(&rows, &extent);
}

/* As in hook_copy.c: all of them before the first. */
static CUresult check_batch(const CUDA_MEMCPY3D_BATCH_OP *list, size_t count, size_t *failed)
{
    for (size_t i = 0; list && i < count; i++) {
        const struct copy_end to = end_of_operand(&list[i].dst, &list[i]),
                              from = end_of_operand(&list[i].src, &list[i]);
        CUresult rc = copy_check("cuMemcpy3DBatchAsync", &to, &from);
        if (rc == CUDA_SUCCESS)
            continue;
        if (failed)
            *failed = i;
        return rc;
    }
    return CUDA_SUCCESS;
}

#define BATCH_FAILED(symbol)                                                                       \
    CUresult symbol(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed,                    \
                    unsigned long long flags, CUstream stream)                                     \
    {                                                                                              \
        HOOK_ENTER(symbol, (count, list, failed, flags, stream));                                  \
        CUresult rc = check_batch(list, count, failed);                                            \
        return rc == CUDA_SUCCESS ? real.symbol(count, list, failed, flags, stream) : rc;          \
    }
#define BATCH(symbol)                                                                              \
    CUresult symbol(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags,          \
                    CUstream stream)                                                               \
    {                                                                                              \
        HOOK_ENTER(symbol, (count, list, flags, stream));                                          \
        CUresult rc = check_batch(list, count, NULL);                                              \
        return rc == CUDA_SUCCESS ? real.symbol(count, list, flags, stream) : rc;                  \
    }

BATCH_FAILED(cuMemcpy3DBatchAsync)
BATCH_FAILED(cuMemcpy3DBatchAsync_ptsz)
BATCH(cuMemcpy3DBatchAsync_v2)
BATCH(cuMemcpy3DBatchAsync_v2_ptsz)
