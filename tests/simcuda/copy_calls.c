/* copy_calls.c -- the driver's many copies and sets, each brought to the one form of copy.h.
 *
 * Knows: the calls. Must not know: how bytes move. On a capturing stream they become nodes.
 */
#include "api.h"
#include "capture.h"
#include "context.h"
#include "copy.h"
#include "graph.h"
#include "streams.h"

static CUresult on_stream(CUstream stream, const struct copy_3d *copy)
{
    struct work work = {.type = NODE_MEMCPY, .copy = *copy};

    return capture_or_run(stream, &work);
}

static struct copy_3d linear(size_t bytes)
{
    return (struct copy_3d){.src_type = MEMORY_TYPE_UNIFIED,
                            .dst_type = MEMORY_TYPE_UNIFIED,
                            .width_bytes = bytes,
                            .height = 1,
                            .depth = 1};
}

static struct copy_3d device_to_device(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    struct copy_3d copy = linear(bytes);

    copy.dst_device = to;
    copy.src_device = from;
    return copy;
}

static struct copy_3d host_to_device(CUdeviceptr to, const void *from, size_t bytes)
{
    struct copy_3d copy = linear(bytes);

    copy.dst_type = MEMORY_TYPE_DEVICE;
    copy.dst_device = to;
    copy.src_type = MEMORY_TYPE_HOST;
    copy.src_host = from;
    return copy;
}

static struct copy_3d device_to_host(void *to, CUdeviceptr from, size_t bytes)
{
    struct copy_3d copy = linear(bytes);

    copy.dst_type = MEMORY_TYPE_HOST;
    copy.dst_host = to;
    copy.src_type = MEMORY_TYPE_DEVICE;
    copy.src_device = from;
    return copy;
}

CUresult sim_cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    struct copy_3d copy = device_to_device(to, from, bytes);
    return copy_run(&copy);
}

CUresult sim_cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    struct copy_3d copy = device_to_device(to, from, bytes);
    return on_stream(stream, &copy);
}

CUresult sim_cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    struct copy_3d copy = device_to_device(to, from, bytes);
    copy.src_type = copy.dst_type = MEMORY_TYPE_DEVICE;
    return copy_run(&copy);
}

CUresult sim_cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    struct copy_3d copy = device_to_device(to, from, bytes);
    copy.src_type = copy.dst_type = MEMORY_TYPE_DEVICE;
    return on_stream(stream, &copy);
}

CUresult sim_cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                          CUcontext from_context, size_t bytes)
{
    if (!context_known(to_context) || !context_known(from_context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return sim_cuMemcpyDtoD_v2(to, from, bytes);
}

CUresult sim_cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                               CUcontext from_context, size_t bytes, CUstream stream)
{
    if (!context_known(to_context) || !context_known(from_context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return sim_cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}

CUresult sim_cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    struct copy_3d copy = host_to_device(to, from, bytes);
    return copy_run(&copy);
}

CUresult sim_cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    struct copy_3d copy = host_to_device(to, from, bytes);
    return on_stream(stream, &copy);
}

CUresult sim_cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    struct copy_3d copy = device_to_host(to, from, bytes);
    return copy_run(&copy);
}

CUresult sim_cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    struct copy_3d copy = device_to_host(to, from, bytes);
    return on_stream(stream, &copy);
}

CUresult sim_cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                                   void *attributes, size_t *indices, size_t attribute_count,
                                   CUstream stream)
{
    (void)attributes, (void)indices, (void)attribute_count;
    if (!to || !from || !bytes || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        CUresult result = sim_cuMemcpyAsync(to[i], from[i], bytes[i], stream);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                                void *attributes, size_t *indices, size_t attribute_count,
                                size_t *failed, CUstream stream)
{
    if (failed)
        *failed = (size_t)-1;
    return sim_cuMemcpyBatchAsync_v2(to, from, bytes, count, attributes, indices, attribute_count,
                                     stream);
}

/* One copy of a batch, whose elements are taken to be bytes. */
static struct copy_3d of_batch(const CUDA_MEMCPY3D_BATCH_OP *one)
{
    struct copy_3d copy = {.src_type = MEMORY_TYPE_UNIFIED,
                           .dst_type = MEMORY_TYPE_UNIFIED,
                           .width_bytes = one->extent.width,
                           .height = one->extent.height,
                           .depth = one->extent.depth};

    if (one->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        copy.src_type = MEMORY_TYPE_ARRAY;
        copy.src_array = one->src.op.array.array;
        copy.src_x = one->src.op.array.offset.x;
        copy.src_y = one->src.op.array.offset.y;
        copy.src_z = one->src.op.array.offset.z;
    } else {
        copy.src_device = one->src.op.ptr.ptr;
        copy.src_pitch = one->src.op.ptr.rowLength;
        copy.src_height = one->src.op.ptr.layerHeight;
    }
    if (one->dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        copy.dst_type = MEMORY_TYPE_ARRAY;
        copy.dst_array = one->dst.op.array.array;
        copy.dst_x = one->dst.op.array.offset.x;
        copy.dst_y = one->dst.op.array.offset.y;
        copy.dst_z = one->dst.op.array.offset.z;
    } else {
        copy.dst_device = one->dst.op.ptr.ptr;
        copy.dst_pitch = one->dst.op.ptr.rowLength;
        copy.dst_height = one->dst.op.ptr.layerHeight;
    }
    return copy;
}

CUresult sim_cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *list,
                                     unsigned long long flags, CUstream stream)
{
    if (count == 0 || !list || flags)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        struct copy_3d copy = of_batch(&list[i]);
        CUresult result = on_stream(stream, &copy);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed,
                                  unsigned long long flags, CUstream stream)
{
    if (failed)
        *failed = (size_t)-1;
    return sim_cuMemcpy3DBatchAsync_v2(count, list, flags, stream);
}

static struct copy_3d flat(const struct copy_2d *copy)
{
    return (struct copy_3d){.src_x = copy->src_x,
                            .src_y = copy->src_y,
                            .src_type = copy->src_type,
                            .src_host = copy->src_host,
                            .src_device = copy->src_device,
                            .src_array = copy->src_array,
                            .src_pitch = copy->src_pitch,
                            .dst_x = copy->dst_x,
                            .dst_y = copy->dst_y,
                            .dst_type = copy->dst_type,
                            .dst_host = copy->dst_host,
                            .dst_device = copy->dst_device,
                            .dst_array = copy->dst_array,
                            .dst_pitch = copy->dst_pitch,
                            .width_bytes = copy->width_bytes,
                            .height = copy->height,
                            .depth = 1};
}

CUresult sim_cuMemcpy2D_v2(const struct copy_2d *copy)
{
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    struct copy_3d deep = flat(copy);
    return copy_run(&deep);
}

CUresult sim_cuMemcpy2DAsync_v2(const struct copy_2d *copy, CUstream stream)
{
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    struct copy_3d deep = flat(copy);
    return on_stream(stream, &deep);
}

CUresult sim_cuMemcpy3D_v2(const struct copy_3d *copy)
{
    return copy ? copy_run(copy) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemcpy3DAsync_v2(const struct copy_3d *copy, CUstream stream)
{
    return copy ? on_stream(stream, copy) : CUDA_ERROR_INVALID_VALUE;
}

/* One-dimensional copies to and from arrays, by byte offset in the first row. */
static struct copy_3d array_copy(CUarray to, size_t to_at, CUarray from, size_t from_at,
                                 size_t bytes)
{
    struct copy_3d copy = linear(bytes);

    if (to) {
        copy.dst_type = MEMORY_TYPE_ARRAY;
        copy.dst_array = to;
        copy.dst_x = to_at;
    }
    if (from) {
        copy.src_type = MEMORY_TYPE_ARRAY;
        copy.src_array = from;
        copy.src_x = from_at;
    }
    return copy;
}

CUresult sim_cuMemcpyDtoA_v2(CUarray to, size_t at, CUdeviceptr from, size_t bytes)
{
    struct copy_3d copy = array_copy(to, at, NULL, 0, bytes);
    copy.src_device = from;
    return copy_run(&copy);
}

CUresult sim_cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t at, size_t bytes)
{
    struct copy_3d copy = array_copy(NULL, 0, from, at, bytes);
    copy.dst_device = to;
    return copy_run(&copy);
}

CUresult sim_cuMemcpyAtoA_v2(CUarray to, size_t to_at, CUarray from, size_t from_at, size_t bytes)
{
    struct copy_3d copy = array_copy(to, to_at, from, from_at, bytes);
    return copy_run(&copy);
}

CUresult sim_cuMemcpyHtoAAsync_v2(CUarray to, size_t at, const void *from, size_t bytes,
                                  CUstream stream)
{
    struct copy_3d copy = array_copy(to, at, NULL, 0, bytes);
    copy.src_type = MEMORY_TYPE_HOST;
    copy.src_host = from;
    return on_stream(stream, &copy);
}

CUresult sim_cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t at, size_t bytes, CUstream stream)
{
    struct copy_3d copy = array_copy(NULL, 0, from, at, bytes);
    copy.dst_type = MEMORY_TYPE_HOST;
    copy.dst_host = to;
    return on_stream(stream, &copy);
}

CUresult sim_cuMemcpyHtoA_v2(CUarray to, size_t at, const void *from, size_t bytes)
{
    return sim_cuMemcpyHtoAAsync_v2(to, at, from, bytes, NULL);
}

CUresult sim_cuMemcpyAtoH_v2(void *to, CUarray from, size_t at, size_t bytes)
{
    return sim_cuMemcpyAtoHAsync_v2(to, from, at, bytes, NULL);
}

static CUresult set_on(CUstream stream, CUdeviceptr to, size_t pitch, unsigned int value,
                       unsigned int element_bytes, size_t width, size_t height)
{
    struct work work = {.type = NODE_MEMSET,
                        .set = {.dst = to,
                                .pitch = pitch,
                                .value = value,
                                .element_bytes = element_bytes,
                                .width = width,
                                .height = height}};
    return capture_or_run(stream, &work);
}

#define SETS(bits, type)                                                                           \
    CUresult sim_cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t count)                    \
    {                                                                                              \
        return set_on(NULL, to, 0, value, sizeof value, count, 1);                                 \
    }                                                                                              \
    CUresult sim_cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t count, CUstream stream) \
    {                                                                                              \
        return set_on(stream, to, 0, value, sizeof value, count, 1);                               \
    }                                                                                              \
    CUresult sim_cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t width,    \
                                        size_t height)                                             \
    {                                                                                              \
        return set_on(NULL, to, pitch, value, sizeof value, width, height);                        \
    }                                                                                              \
    CUresult sim_cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t width,  \
                                          size_t height, CUstream stream)                          \
    {                                                                                              \
        return set_on(stream, to, pitch, value, sizeof value, width, height);                      \
    }

SETS(8, unsigned char)
SETS(16, unsigned short)
SETS(32, unsigned int)
