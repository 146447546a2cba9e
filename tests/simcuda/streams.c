/* streams.c -- see streams.h. */
#include "streams.h"

#include "api.h"
#include "capture.h"
#include "context.h"
#include "devices.h"
#include "entry.h"
#include "events.h"
#include "graph.h"
#include "pools.h"
#include "ranges.h"

#include <string.h>

enum { STREAM_ATTRIBUTE_BYTES = 64 };

static unsigned long long last_id = 2; /* those of the default streams come before */

int stream_is_default(CUstream stream)
{
    return stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

CUresult stream_check(CUstream stream)
{
    return stream_is_default(stream) || handle_is(stream, HANDLE_STREAM)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_HANDLE;
}

CUcontext stream_context(CUstream stream)
{
    return stream_is_default(stream) ? context_current() : stream->handle.context;
}

struct device *stream_device(CUstream stream) { return stream_context(stream)->device; }

CUresult sim_cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority)
{
    if (!out || flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    CUstream stream = handle_new(HANDLE_STREAM, sizeof *stream, context_current());
    stream->flags = flags;
    stream->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    stream->id = ++last_id;
    *out = stream;
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamCreate(CUstream *out, unsigned int flags)
{
    return sim_cuStreamCreateWithPriority(out, flags, 0);
}

CUresult sim_cuStreamDestroy(CUstream stream)
{
    if (!handle_is(stream, HANDLE_STREAM))
        return CUDA_ERROR_INVALID_HANDLE;
    capture_leave(stream);
    handle_delete(stream);
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamSynchronize(CUstream stream)
{
    CUresult result = stream_check(stream);

    if (result == CUDA_SUCCESS)
        result = capture_check_wait(stream);
    if (result == CUDA_SUCCESS)
        pools_synchronized(stream_device(stream));
    return result;
}

CUresult sim_cuStreamQuery(CUstream stream)
{
    CUresult result = stream_check(stream);

    return result == CUDA_SUCCESS ? capture_check_wait(stream) : result;
}

CUresult sim_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    CUresult result = stream_check(stream);

    (void)flags;
    if (result == CUDA_SUCCESS && !handle_is(event, HANDLE_EVENT))
        result = CUDA_ERROR_INVALID_HANDLE;
    return result == CUDA_SUCCESS ? capture_wait(stream, event) : result;
}

CUresult sim_cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data,
                                 unsigned int flags)
{
    CUresult result = stream_check(stream);

    if (!callback || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && capture_active(stream))
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (result != CUDA_SUCCESS)
        return result;
    int held = entry_release();
    callback(stream, CUDA_SUCCESS, data);
    entry_regain(held);
    return CUDA_SUCCESS;
}

CUresult sim_cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
    CUresult result = stream_check(stream);

    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    return capture_or_run(stream, &(struct work){.type = NODE_HOST, .host = {function, data}});
}

CUresult sim_cuStreamGetPriority(CUstream stream, int *priority)
{
    CUresult result = stream_check(stream);

    if (!priority)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *priority = stream_is_default(stream) ? 0 : stream->priority;
    return result;
}

CUresult sim_cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
    CUresult result = stream_check(stream);

    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *flags = stream_is_default(stream) ? 0 : stream->flags;
    return result;
}

CUresult sim_cuStreamGetId(CUstream stream, unsigned long long *id)
{
    CUresult result = stream_check(stream);

    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *id = !stream_is_default(stream) ? stream->id : stream == CU_STREAM_PER_THREAD ? 2 : 1;
    return result;
}

CUresult sim_cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    CUresult result = stream_check(stream);

    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *context = stream_context(stream);
    return result;
}

CUresult sim_cuStreamGetCtx_v2(CUstream stream, CUcontext *context, void **green)
{
    if (green)
        *green = NULL;
    return sim_cuStreamGetCtx(stream, context);
}

CUresult sim_cuStreamGetDevice(CUstream stream, CUdevice *device)
{
    CUresult result = stream_check(stream);

    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *device = stream_device(stream)->ordinal;
    return result;
}

CUresult sim_cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t bytes,
                                    unsigned int flags)
{
    struct range *range = range_at(address);
    CUresult result = stream_check(stream);

    (void)bytes, (void)flags;
    if (result == CUDA_SUCCESS && (!range || range->kind != RANGE_MANAGED))
        result = CUDA_ERROR_INVALID_VALUE;
    return result;
}

CUresult sim_cuStreamGetAttribute(CUstream stream, int attribute, void *value)
{
    CUresult result = stream_check(stream);

    (void)attribute;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        memset(value, 0, STREAM_ATTRIBUTE_BYTES);
    return result;
}

CUresult sim_cuStreamSetAttribute(CUstream stream, int attribute, const void *value)
{
    (void)attribute;
    return value ? stream_check(stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuStreamCopyAttributes(CUstream to, CUstream from)
{
    CUresult result = stream_check(to);

    return result == CUDA_SUCCESS ? stream_check(from) : result;
}

static CUresult write_word(CUstream stream, CUdeviceptr address, const void *value, size_t bytes)
{
    struct range *range = range_at(address);
    CUresult result = stream_check(stream);

    if (!range || range->closed || address % bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        memcpy(range_pointer(address), value, bytes);
    return result;
}

CUresult sim_cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, unsigned int value,
                                     unsigned int flags)
{
    (void)flags;
    return write_word(stream, address, &value, sizeof value);
}

CUresult sim_cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                     unsigned int flags)
{
    (void)flags;
    return write_word(stream, address, &value, sizeof value);
}

/* Nothing runs beside the caller, so that a wait could only be for ever: it is over at once. */
CUresult sim_cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, unsigned int value,
                                    unsigned int flags)
{
    (void)value, (void)flags;
    return range_at(address) ? stream_check(stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                    unsigned int flags)
{
    (void)value, (void)flags;
    return range_at(address) ? stream_check(stream) : CUDA_ERROR_INVALID_VALUE;
}
