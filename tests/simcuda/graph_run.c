/* graph_run.c -- executable graphs, and doing the work of nodes. */
#include "api.h"
#include "capture.h"
#include "context.h"
#include "copy.h"
#include "devices.h"
#include "entry.h"
#include "events.h"
#include "graph.h"
#include "graph_memory.h"
#include "pools.h"
#include "streams.h"

#include <string.h>

enum { INSTANTIATE_AUTO_FREE_ON_LAUNCH = 1, INSTANTIATE_UPLOAD = 2 };

struct CUgraphExec_st {
    struct handle handle;
    CUgraph graph; /* its own copy */
    cuuint64_t flags;
    int mapped; /* uploaded or launched, and not trimmed since */
};

/* The next executable graph after a handle (NULL: the first). */
static CUgraphExec next_executable(const struct handle *handle)
{
    struct handle *each = handle ? handle_after(handle) : handle_first();

    while (each && each->kind != HANDLE_EXECUTABLE_GRAPH)
        each = handle_after(each);
    return (CUgraphExec)(void *)each;
}

/* Calls `visit` for each memory of a graph once, until it returns other than 0. */
static int visit_memory(CUgraph graph, int (*visit)(struct graph_memory *memory, void *context),
                        void *context)
{
    int answer = 0;

    for (size_t i = 0; !answer && i < graph->count; i++) {
        const struct work *work = &graph->nodes[i]->work;
        int again = 0;
        if (work->type == NODE_CHILD)
            answer = visit_memory(work->child, visit, context);
        if (work->type != NODE_MEM_ALLOC)
            continue;
        for (size_t k = 0; k < i; k++)
            again |= graph->nodes[k]->work.type == NODE_MEM_ALLOC &&
                     graph->nodes[k]->work.alloc.memory == work->alloc.memory;
        if (!again)
            answer = visit(work->alloc.memory, context);
    }
    return answer;
}

struct need {
    const struct device *device;
    size_t bytes;
};

static int add_need(struct graph_memory *memory, void *context)
{
    struct need *need = context;

    if (!graph_memory_is_live(memory))
        need->bytes += graph_memory_bytes(memory, need->device);
    return 0;
}

static int is_live(struct graph_memory *memory, void *context)
{
    (void)context;
    return graph_memory_is_live(memory);
}

static int is_same(struct graph_memory *memory, void *context) { return memory == context; }

static int is_executable(struct graph_memory *memory, void *context)
{
    (void)context;
    for (CUgraphExec each = next_executable(NULL); each; each = next_executable(&each->handle))
        if (visit_memory(each->graph, is_same, memory))
            return 1;
    return 0;
}

static int stop(struct graph_memory *memory, void *context)
{
    (void)context;
    graph_memory_stop(memory);
    return 0;
}

size_t graph_mapped(const struct device *device)
{
    size_t most = 0;

    for (CUgraphExec each = next_executable(NULL); each; each = next_executable(&each->handle)) {
        struct need need = {device, 0};
        if (each->mapped)
            visit_memory(each->graph, add_need, &need);
        if (need.bytes > most)
            most = need.bytes;
    }
    return most;
}

void graph_unmap(void)
{
    for (CUgraphExec each = next_executable(NULL); each; each = next_executable(&each->handle))
        each->mapped = 0;
}

/* All memory that the graph may need is there before its first node runs. */
static CUresult map(CUgraphExec executable)
{
    CUresult result = CUDA_SUCCESS;
    struct device *device;

    for (int i = 0; result == CUDA_SUCCESS && (device = device_of(i)) != NULL; i++) {
        struct need need = {device, 0};
        visit_memory(executable->graph, add_need, &need);
        if (need.bytes)
            result = pool_reserve(pool_of_graphs(device), need.bytes);
    }
    executable->mapped |= result == CUDA_SUCCESS;
    return result;
}

CUgraph graph_of_executable(CUgraphExec executable)
{
    return handle_is(executable, HANDLE_EXECUTABLE_GRAPH) ? executable->graph : NULL;
}

CUresult work_run(const struct work *work)
{
    int held;

    switch (work->type) {
    case NODE_MEMCPY:
        return copy_run(&work->copy);
    case NODE_MEMSET:
        return copy_set(&work->set);
    case NODE_HOST:
        held = entry_release();
        work->host.function(work->host.data);
        entry_regain(held);
        return CUDA_SUCCESS;
    case NODE_CHILD:
        return graph_run(work->child);
    case NODE_EVENT_RECORD:
        event_recorded(work->event);
        return CUDA_SUCCESS;
    case NODE_MEM_ALLOC:
        return graph_memory_start(work->alloc.memory);
    case NODE_MEM_FREE:
        return graph_memory_free(work->freed);
    default:
        return CUDA_SUCCESS;
    }
}

static CUresult run_node(CUgraphNode node)
{
    if (node->done)
        return CUDA_SUCCESS;
    node->done = 1;
    for (size_t i = 0; i < node->need_count; i++) {
        CUresult result = run_node(node->needs[i]);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return work_run(&node->work);
}

CUresult graph_run(CUgraph graph)
{
    CUresult result = CUDA_SUCCESS;

    for (size_t i = 0; i < graph->count; i++)
        graph->nodes[i]->done = 0;
    for (size_t i = 0; result == CUDA_SUCCESS && i < graph->count; i++)
        result = run_node(graph->nodes[i]);
    return result;
}

CUresult sim_cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph,
                                         unsigned long long flags)
{
    if (!executable || graph_check(graph, NULL, 0) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (visit_memory(graph, is_executable, NULL)) /* one at a time */
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphExec made = handle_new(HANDLE_EXECUTABLE_GRAPH, sizeof *made, NULL);
    made->graph = graph_copy(graph);
    made->graph->inner = 1;
    made->flags = flags;
    *executable = made;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphInstantiate(CUgraphExec *executable, CUgraph graph, CUgraphNode *failed,
                                char *log, size_t bytes)
{
    if (failed)
        *failed = NULL;
    if (log && bytes)
        *log = '\0';
    return sim_cuGraphInstantiateWithFlags(executable, graph, 0);
}

CUresult sim_cuGraphInstantiateWithParams(CUgraphExec *executable, CUgraph graph,
                                          struct instantiate_params *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    params->failed_node = NULL;
    params->result = 0;
    CUresult result = sim_cuGraphInstantiateWithFlags(executable, graph, params->flags);
    if (result == CUDA_SUCCESS && (params->flags & INSTANTIATE_UPLOAD)) {
        result = sim_cuGraphUpload(*executable, params->upload_stream);
        if (result != CUDA_SUCCESS)
            sim_cuGraphExecDestroy(*executable);
    }
    params->result = result != CUDA_SUCCESS;
    return result;
}

CUresult sim_cuGraphExecDestroy(CUgraphExec executable)
{
    if (!handle_is(executable, HANDLE_EXECUTABLE_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    graph_delete(executable->graph);
    handle_delete(executable);
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphExecGetFlags(CUgraphExec executable, cuuint64_t *flags)
{
    if (!flags || !handle_is(executable, HANDLE_EXECUTABLE_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = executable->flags;
    return CUDA_SUCCESS;
}

/* Any graph with as many nodes as before is taken; the real driver compares their kinds. */
CUresult sim_cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph graph, struct update_info *info)
{
    if (!info || !handle_is(executable, HANDLE_EXECUTABLE_GRAPH) ||
        graph_check(graph, NULL, 0) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    memset(info, 0, sizeof *info);
    if (graph->count != executable->graph->count) {
        info->result = 2; /* topology changed */
        return (CUresult)910;
    }
    CUgraph copy = graph_copy(graph);
    graph_delete(executable->graph);
    executable->graph = copy;
    copy->inner = 1;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphExecUpdate(CUgraphExec executable, CUgraph graph, CUgraphNode *failed, int *why)
{
    struct update_info info = {0};
    CUresult result = sim_cuGraphExecUpdate_v2(executable, graph, &info);

    if (failed)
        *failed = info.failed_node;
    if (why)
        *why = info.result;
    return result;
}

CUresult sim_cuGraphLaunch(CUgraphExec executable, CUstream stream)
{
    CUresult result = stream_check(stream);

    if (result != CUDA_SUCCESS)
        return result;
    if (!handle_is(executable, HANDLE_EXECUTABLE_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    if (capture_active(stream)) {
        if (graph_has_memory(executable->graph))
            return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        struct work work = {.type = NODE_CHILD, .child = graph_copy(executable->graph)};
        work.child->inner = 1;
        return capture_or_run(stream, &work);
    }
    if (executable->flags & INSTANTIATE_AUTO_FREE_ON_LAUNCH)
        visit_memory(executable->graph, stop, NULL);
    if (visit_memory(executable->graph, is_live, NULL))
        return CUDA_ERROR_INVALID_VALUE; /* not freed since the last launch */
    result = map(executable);
    return result == CUDA_SUCCESS ? graph_run(executable->graph) : result;
}

CUresult sim_cuGraphUpload(CUgraphExec executable, CUstream stream)
{
    CUresult result = stream_check(stream);

    if (result == CUDA_SUCCESS && !handle_is(executable, HANDLE_EXECUTABLE_GRAPH))
        result = CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? map(executable) : result;
}
