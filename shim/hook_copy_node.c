/* hook_copy_node.c -- cross_device_copy = deny: nodes of graphs that copy.
 *
 * Knows: the calls that make or change one. Must not know: where addresses lie (copy.h). What a
 * capture records went through the copies' own hooks; a graph that is cloned, instantiated, nested
 * or taken for an update was made by the calls here. cuGraphAddNode, which makes other nodes too,
 * is in hook_peer.c.
 */
#include "copy.h"
#include "hook.h"

CUresult copy_check_node(const char *call, const CUDA_MEMCPY3D *copy, CUcontext context)
{
    CUcontext popped;
    bool within = context && real.cuCtxPushCurrent_v2 && real.cuCtxPopCurrent_v2 &&
                  real.cuCtxPushCurrent_v2(context) == CUDA_SUCCESS;
    CUresult rc = copy_check_3d(call, copy);
    if (within)
        real.cuCtxPopCurrent_v2(&popped);
    return rc;
}

static CUresult check(const char *call, const CUgraphNodeParams *params)
{
    if (!params || params->type != CU_GRAPH_NODE_TYPE_MEMCPY)
        return CUDA_SUCCESS;
    return copy_check_node(call, &params->memcpy.copyParams, params->memcpy.copyCtx);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                              size_t after_count, const CUDA_MEMCPY3D *copy, CUcontext context)
{
    HOOK_ENTER(cuGraphAddMemcpyNode, (node, graph, after, after_count, copy, context));
    CUresult rc = copy_check_node("cuGraphAddMemcpyNode", copy, context);
    return rc == CUDA_SUCCESS
               ? real.cuGraphAddMemcpyNode(node, graph, after, after_count, copy, context)
               : rc;
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *copy)
{
    HOOK_ENTER(cuGraphMemcpyNodeSetParams, (node, copy));
    CUresult rc = copy_check_3d("cuGraphMemcpyNodeSetParams", copy);
    return rc == CUDA_SUCCESS ? real.cuGraphMemcpyNodeSetParams(node, copy) : rc;
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                        const CUDA_MEMCPY3D *copy, CUcontext context)
{
    HOOK_ENTER(cuGraphExecMemcpyNodeSetParams, (executable, node, copy, context));
    CUresult rc = copy_check_node("cuGraphExecMemcpyNodeSetParams", copy, context);
    return rc == CUDA_SUCCESS ? real.cuGraphExecMemcpyNodeSetParams(executable, node, copy, context)
                              : rc;
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params)
{
    HOOK_ENTER(cuGraphNodeSetParams, (node, params));
    CUresult rc = check("cuGraphNodeSetParams", params);
    return rc == CUDA_SUCCESS ? real.cuGraphNodeSetParams(node, params) : rc;
}

CUresult cuGraphExecNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                  CUgraphNodeParams *params)
{
    HOOK_ENTER(cuGraphExecNodeSetParams, (executable, node, params));
    CUresult rc = check("cuGraphExecNodeSetParams", params);
    return rc == CUDA_SUCCESS ? real.cuGraphExecNodeSetParams(executable, node, params) : rc;
}
