/* graph.c -- see graph.h; the calls that make, ask and take apart graphs. graph_nodes.c adds nodes.
 */
#include "graph.h"

#include "api.h"
#include "graph_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CUgraph graph_new(void) { return handle_new(HANDLE_GRAPH, sizeof(struct CUgraph_st), NULL); }

static void delete_node(CUgraphNode node)
{
    if (node->work.type == NODE_CHILD)
        graph_delete(node->work.child);
    if (node->work.type == NODE_MEM_ALLOC)
        graph_memory_drop(node->work.alloc.memory);
    free(node->needs);
    handle_delete(node);
}

void graph_delete(CUgraph graph)
{
    for (size_t i = 0; i < graph->count; i++)
        delete_node(graph->nodes[i]);
    free(graph->nodes);
    handle_delete(graph);
}

CUgraphNode graph_add(CUgraph graph, const CUgraphNode *needs, size_t count,
                      const struct work *work)
{
    CUgraphNode node = handle_new(HANDLE_NODE, sizeof *node, NULL);

    node->graph = graph;
    node->work = *work;
    node->needs = calloc(count + 1, sizeof *node->needs);
    if (graph->count == graph->room) {
        graph->room = graph->room ? 2 * graph->room : 16;
        graph->nodes = realloc(graph->nodes, graph->room * sizeof(CUgraphNode));
    }
    if (!node->needs || !graph->nodes)
        abort();
    if (count)
        memcpy(node->needs, needs, count * sizeof(CUgraphNode));
    node->need_count = count;
    graph->nodes[graph->count++] = node;
    return node;
}

int graph_has_memory(CUgraph graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        const struct work *work = &graph->nodes[i]->work;
        if (work->type == NODE_MEM_ALLOC || work->type == NODE_MEM_FREE ||
            (work->type == NODE_CHILD && graph_has_memory(work->child)))
            return 1;
    }
    return 0;
}

CUgraph graph_copy(CUgraph graph)
{
    CUgraph copy = graph_new();

    for (size_t i = 0; i < graph->count; i++) {
        struct work work = graph->nodes[i]->work;
        if (work.type == NODE_CHILD)
            work.child = graph_copy(work.child);
        if (work.type == NODE_MEM_ALLOC)
            graph_memory_hold(work.alloc.memory);
        graph->nodes[i]->copy =
            graph_add(copy, graph->nodes[i]->needs, graph->nodes[i]->need_count, &work);
    }
    for (size_t i = 0; i < copy->count; i++)
        for (size_t k = 0; k < copy->nodes[i]->need_count; k++)
            copy->nodes[i]->needs[k] = copy->nodes[i]->needs[k]->copy;
    return copy;
}

/* A memory of this graph that a node among these, or before them, has freed; and that no node since
 * has taken again, which a captured chain shows by itself: the newest node of an address counts. */
static struct graph_memory *freed_before(CUgraph graph, const CUgraphNode *needs, size_t count,
                                         const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    for (size_t i = 0; i < graph->count; i++)
        graph->nodes[i]->done = 0;
    for (size_t i = 0; i < count; i++)
        needs[i]->done = 1;
    for (size_t i = graph->count; i-- > 0;)
        for (size_t k = 0; graph->nodes[i]->done && k < graph->nodes[i]->need_count; k++)
            graph->nodes[i]->needs[k]->done = 1;
    for (size_t i = 0; i < graph->count; i++) {
        const struct work *alloc = &graph->nodes[i]->work;
        int freed = 0;
        if (alloc->type != NODE_MEM_ALLOC || !graph_memory_serves(alloc->alloc.memory, params))
            continue;
        for (size_t k = 0; k < graph->count; k++) {
            const struct work *other = &graph->nodes[k]->work;
            if (other->type == NODE_MEM_ALLOC && other->alloc.memory == alloc->alloc.memory)
                freed = 0;
            if (other->type == NODE_MEM_FREE && graph->nodes[k]->done &&
                other->freed == graph_memory_address(alloc->alloc.memory))
                freed = 1;
        }
        if (freed)
            return alloc->alloc.memory;
    }
    return NULL;
}

CUresult graph_alloc(CUgraph graph, const CUgraphNode *needs, size_t count,
                     CUDA_MEM_ALLOC_NODE_PARAMS *params, struct work *work)
{
    struct graph_memory *again = freed_before(graph, needs, count, params);
    CUresult result = CUDA_SUCCESS;

    *work = (struct work){.type = NODE_MEM_ALLOC};
    work->alloc.memory = again;
    if (again) {
        graph_memory_hold(again);
        params->dptr = graph_memory_address(again);
    } else {
        result = graph_memory_reserve(params, &work->alloc.memory);
    }
    work->alloc.params = *params;
    return result;
}

CUresult graph_check(CUgraph graph, const CUgraphNode *needs, size_t count)
{
    if (!handle_is(graph, HANDLE_GRAPH) || (count && !needs))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!handle_is(needs[i], HANDLE_NODE) || needs[i]->graph != graph)
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    if (!graph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = graph_new();
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphDestroy(CUgraph graph)
{
    if (!handle_is(graph, HANDLE_GRAPH) || graph->inner)
        return CUDA_ERROR_INVALID_VALUE;
    graph_delete(graph);
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphClone(CUgraph *clone, CUgraph graph)
{
    if (!clone || !handle_is(graph, HANDLE_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    if (graph_has_memory(graph))
        return CUDA_ERROR_NOT_SUPPORTED;
    *clone = graph_copy(graph);
    return CUDA_SUCCESS;
}

static void forget_need(CUgraphNode node, CUgraphNode need)
{
    size_t kept = 0;

    for (size_t i = 0; i < node->need_count; i++)
        if (node->needs[i] != need)
            node->needs[kept++] = node->needs[i];
    node->need_count = kept;
}

CUresult sim_cuGraphDestroyNode(CUgraphNode node)
{
    if (!handle_is(node, HANDLE_NODE))
        return CUDA_ERROR_INVALID_VALUE;
    CUgraph graph = node->graph;
    size_t kept = 0;
    if (graph_has_memory(graph))
        return CUDA_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < graph->count; i++) {
        forget_need(graph->nodes[i], node);
        if (graph->nodes[i] != node)
            graph->nodes[kept++] = graph->nodes[i];
    }
    graph->count = kept;
    delete_node(node);
    return CUDA_SUCCESS;
}

/* The driver's way of answering with an array: *count is its room, then the number. out NULL: count
 * only. */
struct answer {
    CUgraphNode *out;
    size_t room, count;
};

static void say(struct answer *answer, CUgraphNode node)
{
    if (answer->out && answer->count < answer->room)
        answer->out[answer->count] = node;
    answer->count++;
}

static void finish(struct answer *answer, size_t *count)
{
    for (size_t i = answer->count; answer->out && i < answer->room; i++)
        answer->out[i] = NULL;
    *count = answer->count;
}

CUresult sim_cuGraphGetNodes(CUgraph graph, CUgraphNode *out, size_t *count)
{
    if (!count || graph_check(graph, NULL, 0) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    struct answer answer = {out, *count, 0};
    for (size_t i = 0; i < graph->count; i++)
        say(&answer, graph->nodes[i]);
    finish(&answer, count);
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphGetRootNodes(CUgraph graph, CUgraphNode *out, size_t *count)
{
    if (!count || graph_check(graph, NULL, 0) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    struct answer answer = {out, *count, 0};
    for (size_t i = 0; i < graph->count; i++)
        if (graph->nodes[i]->need_count == 0)
            say(&answer, graph->nodes[i]);
    finish(&answer, count);
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    if (!count || graph_check(graph, NULL, 0) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    struct answer starts = {from, *count, 0}, ends = {to, *count, 0};
    for (size_t i = 0; i < graph->count; i++)
        for (size_t k = 0; k < graph->nodes[i]->need_count; k++) {
            say(&starts, graph->nodes[i]->needs[k]);
            say(&ends, graph->nodes[i]);
        }
    finish(&starts, count);
    finish(&ends, count);
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeGetType(CUgraphNode node, int *type)
{
    if (!type || !handle_is(node, HANDLE_NODE))
        return CUDA_ERROR_INVALID_VALUE;
    *type = (int)node->work.type;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *out, size_t *count)
{
    if (!count || !handle_is(node, HANDLE_NODE))
        return CUDA_ERROR_INVALID_VALUE;
    struct answer answer = {out, *count, 0};
    for (size_t i = 0; i < node->need_count; i++)
        say(&answer, node->needs[i]);
    finish(&answer, count);
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *out, size_t *count)
{
    if (!count || !handle_is(node, HANDLE_NODE))
        return CUDA_ERROR_INVALID_VALUE;
    struct answer answer = {out, *count, 0};
    for (size_t i = 0; i < node->graph->count; i++)
        for (size_t k = 0; k < node->graph->nodes[i]->need_count; k++)
            if (node->graph->nodes[i]->needs[k] == node)
                say(&answer, node->graph->nodes[i]);
    finish(&answer, count);
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                    size_t count)
{
    if (graph_check(graph, from, count) != CUDA_SUCCESS ||
        graph_check(graph, to, count) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        to[i]->needs = realloc(to[i]->needs, (to[i]->need_count + 1) * sizeof(CUgraphNode));
        if (!to[i]->needs)
            abort();
        to[i]->needs[to[i]->need_count++] = from[i];
    }
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from,
                                       const CUgraphNode *to, const CUgraphEdgeData *edges,
                                       size_t count)
{
    (void)edges;
    return sim_cuGraphAddDependencies(graph, from, to, count);
}

CUresult sim_cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags)
{
    (void)flags;
    if (!path || graph_check(graph, NULL, 0) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    FILE *file = fopen(path, "we");
    if (!file)
        return CUDA_ERROR_UNKNOWN;
    fputs("digraph dot {\n}\n", file);
    fclose(file);
    return CUDA_SUCCESS;
}
