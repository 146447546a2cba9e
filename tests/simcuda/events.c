/* events.c -- see events.h. */
#include "events.h"

#include "api.h"
#include "capture.h"
#include "context.h"
#include "graph.h"
#include "pools.h"
#include "streams.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EVENT_DISABLE_TIMING = 2, EVENT_INTERPROCESS = 4, RECORD_EXTERNAL = 1 };

void event_recorded(CUevent event)
{
    struct timespec now;

    if (!handle_is(event, HANDLE_EVENT))
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->nanoseconds = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    event->recorded = 1;
    event->capture_id = 0;
}

CUresult sim_cuEventCreate(CUevent *out, unsigned int flags)
{
    if (!out || flags > 7 || ((flags & EVENT_INTERPROCESS) && !(flags & EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    CUevent event = handle_new(HANDLE_EVENT, sizeof *event, context_current());
    event->flags = flags;
    *out = event;
    return CUDA_SUCCESS;
}

CUresult sim_cuEventDestroy(CUevent event)
{
    if (!handle_is(event, HANDLE_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    free(event->last);
    handle_delete(event);
    return CUDA_SUCCESS;
}

CUresult sim_cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
    CUresult result = stream_check(stream);

    if (result == CUDA_SUCCESS && !handle_is(event, HANDLE_EVENT))
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result != CUDA_SUCCESS)
        return result;
    if (!capture_active(stream))
        event_recorded(event);
    else if (flags & RECORD_EXTERNAL)
        return capture_or_run(stream, &(struct work){.type = NODE_EVENT_RECORD, .event = event});
    else
        capture_record(stream, event);
    return CUDA_SUCCESS;
}

CUresult sim_cuEventRecord(CUevent event, CUstream stream)
{
    return sim_cuEventRecordWithFlags(event, stream, 0);
}

static CUresult check_wait(CUevent event)
{
    if (!handle_is(event, HANDLE_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    return event->capture_id ? (CUresult)907 : CUDA_SUCCESS; /* recorded in a capture */
}

CUresult sim_cuEventQuery(CUevent event) { return check_wait(event); }

CUresult sim_cuEventSynchronize(CUevent event)
{
    CUresult result = check_wait(event);

    if (result == CUDA_SUCCESS && event->handle.context)
        pools_synchronized(event->handle.context->device);
    return result;
}

CUresult sim_cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    CUresult result = check_wait(start);

    if (!milliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = check_wait(end);
    if (result != CUDA_SUCCESS)
        return result;
    if (!start->recorded || !end->recorded || ((start->flags | end->flags) & EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    *milliseconds = (float)((double)(int64_t)(end->nanoseconds - start->nanoseconds) / 1e6);
    return CUDA_SUCCESS;
}

/* Between processes an event has always happened: the handle says only that it is one. */
static const char event_mark[] = "simcuda event";

CUresult sim_cuIpcGetEventHandle(struct ipc_handle *handle, CUevent event)
{
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(event, HANDLE_EVENT) || !(event->flags & EVENT_INTERPROCESS))
        return CUDA_ERROR_INVALID_HANDLE;
    memset(handle, 0, sizeof *handle);
    memcpy(handle->bytes, event_mark, sizeof event_mark);
    return CUDA_SUCCESS;
}

CUresult sim_cuIpcOpenEventHandle(CUevent *event, struct ipc_handle handle)
{
    if (!event || memcmp(handle.bytes, event_mark, sizeof event_mark) != 0)
        return CUDA_ERROR_INVALID_HANDLE;
    return sim_cuEventCreate(event, EVENT_DISABLE_TIMING | EVENT_INTERPROCESS);
}
