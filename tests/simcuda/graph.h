/* graph.h -- graphs: nodes of work with what they depend on.
 *
 * Knows: structure. Must not know: streams (capture.h builds graphs), what copying means (copy.h).
 * Under the driver's lock. Numbers: CUgraphNodeType of CUDA 13.0.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_GRAPH_H
#define GPUSHIM_TESTS_SIMCUDA_GRAPH_H

#include "abi_more.h"
#include "handles.h"

struct device;

enum node_type {
    NODE_KERNEL = 0,
    NODE_MEMCPY = 1,
    NODE_MEMSET = 2,
    NODE_HOST = 3,
    NODE_CHILD = 4,
    NODE_EMPTY = 5,
    NODE_EVENT_WAIT = 6,
    NODE_EVENT_RECORD = 7,
    NODE_MEM_ALLOC = 10,
    NODE_MEM_FREE = 11
};

struct work {
    enum node_type type;
    union {
        struct copy_3d copy;
        struct memset_node set;
        struct host_node host;
        CUgraph child; /* owned by the node */
        CUevent event;
        struct {
            struct graph_memory *memory; /* counted reference of the node; graph_memory.h */
            CUDA_MEM_ALLOC_NODE_PARAMS params;
        } alloc;
        CUdeviceptr freed;
    };
};

struct CUgraphNode_st {
    struct handle handle;
    CUgraph graph;
    struct work work;
    CUgraphNode *needs;
    size_t need_count;
    CUgraphNode copy; /* during cloning: its counterpart */
    int done;         /* during a launch */
};

struct CUgraph_st {
    struct handle handle;
    CUgraphNode *nodes; /* in order of creation */
    size_t count, room;
    int inner; /* a node's or an executable's own: not the program's to destroy */
};

CUgraph graph_new(void);
void graph_delete(CUgraph graph);
CUgraph graph_copy(CUgraph graph);
/* A new node that takes over what the work owns. */
CUgraphNode graph_add(CUgraph graph, const CUgraphNode *needs, size_t count,
                      const struct work *work);
/* The work of a node that allocates: an address of its own, or that of a memory that the nodes
 * before it have freed. Fills params->dptr. */
CUresult graph_alloc(CUgraph graph, const CUgraphNode *needs, size_t count,
                     CUDA_MEM_ALLOC_NODE_PARAMS *params, struct work *work);
/* 1 or 400 unless the graph and all of the nodes are the program's to name. */
CUresult graph_check(CUgraph graph, const CUgraphNode *needs, size_t count);

/* Does the work now (graph_run.c). */
CUresult work_run(const struct work *work);
/* Does a graph's work, each node after those that it needs. */
CUresult graph_run(CUgraph graph);
/* An executable graph's own copy; NULL if it is none. */
CUgraph graph_of_executable(CUgraphExec executable);

/* Has the graph, or a child of it, nodes that allocate or free? */
int graph_has_memory(CUgraph graph);
/* Bytes of a device that executable graphs have mapped beyond what is alive: all of them use the
 * same memory, since nothing runs at the same time. And the end of these mappings. */
size_t graph_mapped(const struct device *device);
void graph_unmap(void);

#endif
