/* capture.c -- see capture.h. */
#include "capture.h"

#include "api.h"
#include "context.h"
#include "events.h"
#include "graph.h"
#include "streams.h"

#include <stdlib.h>
#include <string.h>

struct session {
    unsigned long long id;
    CUstreamCaptureMode mode;
    CUstreamCaptureStatus status;
    CUgraph graph;
    CUstream origin;
    const void *thread;
    int own_graph; /* made by the capture, not given to it */
    struct session *next;
};

static struct session *sessions;
static unsigned long long last_id;
static __thread CUstreamCaptureMode thread_mode;
static __thread char this_thread; /* its address tells threads apart */

static struct session *session_of(CUstream stream)
{
    return stream_is_default(stream) ? NULL : stream->session;
}

static struct session *session_by_id(unsigned long long id)
{
    struct session *session = sessions;

    while (session && session->id != id)
        session = session->next;
    return session;
}

int capture_active(CUstream stream) { return session_of(stream) != NULL; }

static void set_last(CUstream stream, const CUgraphNode *nodes, size_t count)
{
    CUgraphNode *copy = calloc(count + 1, sizeof *copy);

    if (!copy)
        abort();
    if (count)
        memcpy(copy, nodes, count * sizeof *copy);
    free(stream->last);
    stream->last = copy;
    stream->last_count = count;
}

static void add_last(CUstream stream, const CUgraphNode *nodes, size_t count)
{
    size_t total = stream->last_count + count;
    CUgraphNode *both = calloc(total + 1, sizeof *both);

    if (!both)
        abort();
    if (stream->last_count)
        memcpy(both, stream->last, stream->last_count * sizeof *both);
    if (count)
        memcpy(both + stream->last_count, nodes, count * sizeof *both);
    set_last(stream, both, total);
    free(both);
}

CUresult capture_or_run(CUstream stream, const struct work *work)
{
    CUresult result = stream_check(stream);

    if (result != CUDA_SUCCESS)
        return result;
    struct session *session = session_of(stream);
    if (!session)
        return work_run(work);
    if (session->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    CUgraphNode node = graph_add(session->graph, stream->last, stream->last_count, work);
    set_last(stream, &node, 1);
    return CUDA_SUCCESS;
}

CUgraph capture_graph(CUstream stream, const CUgraphNode **last, size_t *count)
{
    struct session *session = session_of(stream);

    if (!session || session->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return NULL;
    *last = stream->last;
    *count = stream->last_count;
    return session->graph;
}

CUresult capture_check_unsafe(void)
{
    CUresult result = CUDA_SUCCESS;

    for (struct session *session = sessions; session; session = session->next) {
        int here = session->thread == &this_thread;
        if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
            session->mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
            (!here && (session->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
                       thread_mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)))
            continue;
        session->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

CUresult capture_check_wait(CUstream stream)
{
    struct session *session = session_of(stream);

    if (!session)
        return CUDA_SUCCESS;
    session->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

void capture_record(CUstream stream, CUevent event)
{
    free(event->last);
    event->last = calloc(stream->last_count + 1, sizeof *event->last);
    if (!event->last)
        abort();
    if (stream->last_count)
        memcpy(event->last, stream->last, stream->last_count * sizeof *event->last);
    event->last_count = stream->last_count;
    event->capture_id = stream->session->id;
}

CUresult capture_wait(CUstream stream, CUevent event)
{
    struct session *session = event->capture_id ? session_by_id(event->capture_id) : NULL;

    if (!session)
        return CUDA_SUCCESS;
    if (stream_is_default(stream) || (stream->session && stream->session != session))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    stream->session = session;
    add_last(stream, event->last, event->last_count);
    return CUDA_SUCCESS;
}

/* Forgets a capture; its streams go back to doing. */
static void end_session(struct session *session)
{
    struct session **link = &sessions;

    while (*link != session)
        link = &(*link)->next;
    *link = session->next;
    for (struct handle *handle = handle_first(); handle; handle = handle_after(handle))
        if (handle->kind == HANDLE_STREAM && ((CUstream)(void *)handle)->session == session) {
            CUstream stream = (CUstream)(void *)handle;
            stream->session = NULL;
            set_last(stream, NULL, 0);
        }
    free(session);
}

void capture_leave(CUstream stream)
{
    struct session *session = stream->session;

    if (session && session->origin == stream) {
        if (session->own_graph)
            graph_delete(session->graph);
        end_session(session);
    }
    free(stream->last);
    stream->last = NULL;
}

void capture_forget_context(CUcontext context)
{
    for (struct handle *handle = handle_first(); handle; handle = handle_after(handle))
        if (handle->kind == HANDLE_STREAM && handle->context == context)
            capture_leave((CUstream)(void *)handle);
}

static CUresult begin(CUstream stream, CUgraph graph, CUstreamCaptureMode mode)
{
    CUresult result = stream_check(stream);

    if (result != CUDA_SUCCESS)
        return result;
    if ((int)mode < 0 || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream_is_default(stream)) /* the per-thread one could be captured; here it can't */
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->session)
        return CUDA_ERROR_INVALID_VALUE;
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        abort();
    *session = (struct session){.id = ++last_id,
                                .mode = mode,
                                .status = CU_STREAM_CAPTURE_STATUS_ACTIVE,
                                .graph = graph ? graph : graph_new(),
                                .origin = stream,
                                .thread = &this_thread,
                                .own_graph = !graph,
                                .next = sessions};
    sessions = session;
    stream->session = session;
    set_last(stream, NULL, 0);
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    return begin(stream, NULL, mode);
}

CUresult sim_cuStreamBeginCapture(CUstream stream)
{
    return begin(stream, NULL, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult sim_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *needs,
                                         const CUgraphEdgeData *edges, size_t count,
                                         CUstreamCaptureMode mode)
{
    CUresult result = graph_check(graph, needs, count);

    (void)edges;
    if (result == CUDA_SUCCESS)
        result = begin(stream, graph, mode);
    if (result == CUDA_SUCCESS)
        set_last(stream, needs, count);
    return result;
}

CUresult sim_cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    CUresult result = stream_check(stream);

    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    struct session *session = session_of(stream);
    *graph = NULL;
    if (!session || session->origin != stream)
        return CUDA_ERROR_INVALID_VALUE;
    if (session->status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
        if (session->own_graph)
            graph_delete(session->graph);
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else {
        *graph = session->graph;
    }
    end_session(session);
    return result;
}

CUresult sim_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    CUresult result = stream_check(stream);

    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *status = session_of(stream) ? session_of(stream)->status : CU_STREAM_CAPTURE_STATUS_NONE;
    return result;
}

CUresult sim_cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status,
                                       cuuint64_t *id, CUgraph *graph, const CUgraphNode **last,
                                       size_t *last_count)
{
    CUresult result = sim_cuStreamIsCapturing(stream, status);

    if (result != CUDA_SUCCESS || *status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return result;
    if (id)
        *id = stream->session->id;
    if (graph)
        *graph = stream->session->graph;
    if (last)
        *last = stream->last;
    if (last_count)
        *last_count = stream->last_count;
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status,
                                       cuuint64_t *id, CUgraph *graph, const CUgraphNode **last,
                                       const CUgraphEdgeData **edges, size_t *last_count)
{
    if (edges)
        *edges = NULL;
    return sim_cuStreamGetCaptureInfo_v2(stream, status, id, graph, last, last_count);
}

CUresult sim_cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    return sim_cuStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL);
}

CUresult sim_cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *nodes, size_t count,
                                               unsigned int flags)
{
    CUresult result = stream_check(stream);

    if (result != CUDA_SUCCESS)
        return result;
    if (!session_of(stream) || graph_check(stream->session->graph, nodes, count) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags == 1) /* set, not add */
        set_last(stream, nodes, count);
    else
        add_last(stream, nodes, count);
    return CUDA_SUCCESS;
}

CUresult sim_cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *nodes,
                                                  const CUgraphEdgeData *edges, size_t count,
                                                  unsigned int flags)
{
    (void)edges;
    return sim_cuStreamUpdateCaptureDependencies(stream, nodes, count, flags);
}

CUresult sim_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    if (!mode || (int)*mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode old = thread_mode;
    thread_mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}
