/* graph_params.c -- the calls that change what a node copies, in a graph and in an executable one.
 *
 * Knows: nodes that copy; the generic calls change no others. An executable graph's node is the one
 * that stands where the graph's own does, so the graph must be as it was at instantiation.
 */
#include "api.h"
#include "graph.h"

#include <string.h>

static CUresult set(CUgraphNode node, const struct copy_3d *copy)
{
    if (!copy || !handle_is(node, HANDLE_NODE) || node->work.type != NODE_MEMCPY)
        return CUDA_ERROR_INVALID_VALUE;
    node->work.copy = *copy;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphMemcpyNodeSetParams(CUgraphNode node, const struct copy_3d *copy)
{
    return set(node, copy);
}

CUresult sim_cuGraphMemcpyNodeGetParams(CUgraphNode node, struct copy_3d *copy)
{
    if (!copy || !handle_is(node, HANDLE_NODE) || node->work.type != NODE_MEMCPY)
        return CUDA_ERROR_INVALID_VALUE;
    *copy = node->work.copy;
    return CUDA_SUCCESS;
}

static CUgraphNode counterpart(CUgraphExec executable, CUgraphNode node)
{
    CUgraph own = graph_of_executable(executable);

    if (!own || !handle_is(node, HANDLE_NODE))
        return NULL;
    for (size_t i = 0; i < node->graph->count && i < own->count; i++)
        if (node->graph->nodes[i] == node)
            return own->nodes[i];
    return NULL;
}

CUresult sim_cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                            const struct copy_3d *copy, CUcontext context)
{
    CUgraphNode own = counterpart(executable, node);

    (void)context;
    return own ? set(own, copy) : CUDA_ERROR_INVALID_VALUE;
}

/* CUDA_MEMCPY3D as we name it. */
static struct copy_3d copy_of(const CUgraphNodeParams *params)
{
    struct copy_3d copy;

    _Static_assert(sizeof copy == sizeof params->memcpy.copyParams, "two names of one struct");
    memcpy(&copy, &params->memcpy.copyParams, sizeof copy);
    return copy;
}

CUresult sim_cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    if (params->type != CU_GRAPH_NODE_TYPE_MEMCPY)
        return CUDA_ERROR_NOT_SUPPORTED;
    struct copy_3d copy = copy_of(params);
    return set(node, &copy);
}

CUresult sim_cuGraphExecNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                      CUgraphNodeParams *params)
{
    CUgraphNode own = counterpart(executable, node);

    return own ? sim_cuGraphNodeSetParams(own, params) : CUDA_ERROR_INVALID_VALUE;
}
