/* graph_nodes.c -- the calls that add nodes to a graph. */
#include "api.h"
#include "graph.h"
#include "graph_memory.h"

#include <string.h>

static CUresult add(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t count,
                    const struct work *work)
{
    CUresult result = graph_check(graph, needs, count);

    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *node = graph_add(graph, needs, count, work);
    return result;
}

CUresult sim_cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                 size_t count)
{
    return add(node, graph, needs, count, &(struct work){.type = NODE_EMPTY});
}

CUresult sim_cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                size_t count, const struct host_node *host)
{
    if (!host || !host->function)
        return CUDA_ERROR_INVALID_VALUE;
    return add(node, graph, needs, count, &(struct work){.type = NODE_HOST, .host = *host});
}

CUresult sim_cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                  size_t count, const struct copy_3d *copy, CUcontext context)
{
    (void)context;
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    return add(node, graph, needs, count, &(struct work){.type = NODE_MEMCPY, .copy = *copy});
}

CUresult sim_cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                  size_t count, const struct memset_node *set, CUcontext context)
{
    (void)context;
    if (!set)
        return CUDA_ERROR_INVALID_VALUE;
    return add(node, graph, needs, count, &(struct work){.type = NODE_MEMSET, .set = *set});
}

CUresult sim_cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                  size_t count, const void *kernel)
{
    if (!kernel)
        return CUDA_ERROR_INVALID_VALUE;
    return add(node, graph, needs, count, &(struct work){.type = NODE_KERNEL});
}

CUresult sim_cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                      size_t count, CUgraph child)
{
    if (!node || graph_check(graph, needs, count) != CUDA_SUCCESS ||
        graph_check(child, NULL, 0) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (graph_has_memory(child)) /* such a graph can only be moved into another */
        return CUDA_ERROR_NOT_SUPPORTED;
    struct work work = {.type = NODE_CHILD, .child = graph_copy(child)};
    work.child->inner = 1;
    return add(node, graph, needs, count, &work);
}

enum { CHILD_MOVED = 1 };

static CUresult add_child(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t count,
                          CUgraph child, int ownership)
{
    if (ownership != CHILD_MOVED)
        return sim_cuGraphAddChildGraphNode(node, graph, needs, count, child);
    if (!node || graph_check(graph, needs, count) != CUDA_SUCCESS ||
        graph_check(child, NULL, 0) != CUDA_SUCCESS || child->inner || child == graph)
        return CUDA_ERROR_INVALID_VALUE;
    child->inner = 1;
    return add(node, graph, needs, count, &(struct work){.type = NODE_CHILD, .child = child});
}

CUresult sim_cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph)
{
    if (!graph || !handle_is(node, HANDLE_NODE) || node->work.type != NODE_CHILD)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = node->work.child;
    return CUDA_SUCCESS;
}

static CUresult add_event(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs, size_t count,
                          CUevent event, enum node_type type)
{
    if (!handle_is(event, HANDLE_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    return add(node, graph, needs, count, &(struct work){.type = type, .event = event});
}

CUresult sim_cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                       size_t count, CUevent event)
{
    return add_event(node, graph, needs, count, event, NODE_EVENT_RECORD);
}

CUresult sim_cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                     size_t count, CUevent event)
{
    return add_event(node, graph, needs, count, event, NODE_EVENT_WAIT);
}

CUresult sim_cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                    size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    struct work work = {.type = NODE_MEM_ALLOC};

    if (!node || !params || graph_check(graph, needs, count) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = graph_alloc(graph, needs, count, params, &work);
    if (result == CUDA_SUCCESS)
        *node = graph_add(graph, needs, count, &work);
    return result;
}

CUresult sim_cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                                   size_t count, CUdeviceptr address)
{
    if (!graph_memory_known(address))
        return CUDA_ERROR_INVALID_VALUE;
    return add(node, graph, needs, count, &(struct work){.type = NODE_MEM_FREE, .freed = address});
}

CUresult sim_cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    if (!params || !handle_is(node, HANDLE_NODE) || node->work.type != NODE_MEM_ALLOC)
        return CUDA_ERROR_INVALID_VALUE;
    *params = node->work.alloc.params;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *address)
{
    if (!address || !handle_is(node, HANDLE_NODE) || node->work.type != NODE_MEM_FREE)
        return CUDA_ERROR_INVALID_VALUE;
    *address = node->work.freed;
    return CUDA_SUCCESS;
}

/* The generic call serves the kinds whose parameters shim/cuda_abi.h knows, and those without any.
 */
CUresult sim_cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                            size_t count, CUgraphNodeParams *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    switch ((int)params->type) {
    case NODE_MEMCPY: {
        struct work work = {.type = NODE_MEMCPY};
        memcpy(&work.copy, &params->memcpy.copyParams, sizeof work.copy);
        return add(node, graph, needs, count, &work);
    }
    case NODE_MEM_ALLOC:
        return sim_cuGraphAddMemAllocNode(node, graph, needs, count, &params->alloc);
    case NODE_MEM_FREE:
        return sim_cuGraphAddMemFreeNode(node, graph, needs, count,
                                         (CUdeviceptr)params->reserved1[0]);
    case NODE_CHILD:
        return add_child(node, graph, needs, count, (CUgraph)(uintptr_t)params->reserved1[0],
                         (int)params->reserved1[1]);
    case NODE_EMPTY:
    case NODE_KERNEL:
        return add(node, graph, needs, count, &(struct work){.type = (enum node_type)params->type});
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult sim_cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
                               const CUgraphEdgeData *edges, size_t count,
                               CUgraphNodeParams *params)
{
    (void)edges;
    return sim_cuGraphAddNode(node, graph, needs, count, params);
}
