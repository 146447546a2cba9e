/* graph_run.c -- executable graphs, and doing the work of nodes. */
#include "api.h"
#include "context.h"
#include "copy.h"
#include "entry.h"
#include "events.h"
#include "graph.h"
#include "graph_memory.h"
#include "streams.h"

#include <string.h>

enum { INSTANTIATE_AUTO_FREE_ON_LAUNCH = 1 };

struct CUgraphExec_st {
    struct handle handle;
    CUgraph graph; /* its own copy */
    cuuint64_t flags;
};

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
    return sim_cuGraphInstantiateWithFlags(executable, graph, params->flags);
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

static void free_before_launch(CUgraph graph)
{
    for (size_t i = 0; i < graph->count; i++)
        if (graph->nodes[i]->work.type == NODE_MEM_ALLOC)
            graph_memory_stop(graph->nodes[i]->work.alloc.memory);
}

CUresult sim_cuGraphLaunch(CUgraphExec executable, CUstream stream)
{
    CUresult result = stream_check(stream);

    if (result != CUDA_SUCCESS)
        return result;
    if (!handle_is(executable, HANDLE_EXECUTABLE_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    if (executable->flags & INSTANTIATE_AUTO_FREE_ON_LAUNCH)
        free_before_launch(executable->graph);
    return graph_run(executable->graph);
}

CUresult sim_cuGraphUpload(CUgraphExec executable, CUstream stream)
{
    CUresult result = stream_check(stream);

    if (result == CUDA_SUCCESS && !handle_is(executable, HANDLE_EXECUTABLE_GRAPH))
        result = CUDA_ERROR_INVALID_VALUE;
    return result;
}
