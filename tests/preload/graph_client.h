/* graph_client.h -- what the tests of graph memory share: graphs that allocate, and what the
 * referee says of device 0 (GPU 3), under a cap of CAP on each device.
 */
#ifndef GPUSHIM_TESTS_PRELOAD_GRAPH_CLIENT_H
#define GPUSHIM_TESTS_PRELOAD_GRAPH_CLIENT_H

#include "client.h"

#define CAP (128 * MIB)

enum { GPU_OF_DEVICE_0 = 3, GPU_OF_DEVICE_1 = 1, CHUNK_MIB = 32 };
enum { NODE_IS_GRAPH = 4, CHILD_IS_MOVED = 1, FLAG_AUTO_FREE = 1, FLAG_UPLOAD = 2 };

extern CUstream stream, second_stream;

/* For cmocka's group setup. */
int start(void **state);

uint64_t live(void);
/* What the program is told that it holds. */
uint64_t held(void);

CUDA_MEM_ALLOC_NODE_PARAMS allocation(int device, size_t bytes);
/* The ways in which a graph comes to allocate. */
enum way { ADD_ALLOC_NODE, ADD_NODE, ADD_NODE_V2, CAPTURE_ASYNC, CAPTURE_FROM_POOL, WAYS };
/* A graph that allocates so much and leaves it to be freed. */
CUgraph graph_of(enum way way, size_t bytes, CUdeviceptr *address);
/* One that frees what it allocates, by capture: pieces one after the other, or side by side. */
CUgraph graph_that_frees(CUstream on, int pieces, size_t bytes, int together);
/* Instantiates the graph and destroys it. */
CUgraphExec executable(CUgraph graph, unsigned long long flags);
void destroy(CUgraphExec exec);
CUdeviceptr linear(size_t bytes);
void nothing_is_left(void);

#endif
