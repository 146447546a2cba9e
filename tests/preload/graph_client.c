/* graph_client.c -- see graph_client.h. */
#include "graph_client.h"

CUstream stream, second_stream;

int start(void **state)
{
    client_start(state);
    ok(cuda.cuStreamCreate(&stream, 0));
    ok(cuda.cuStreamCreate(&second_stream, 0));
    return 0;
}

uint64_t live(void) { return cuda.live_bytes(GPU_OF_DEVICE_0, SIMCUDA_THIS_PROCESS); }

uint64_t held(void)
{
    size_t free_bytes = 0, total = 0;
    ok(cuda.cuMemGetInfo_v2(&free_bytes, &total));
    return total - free_bytes;
}

CUDA_MEM_ALLOC_NODE_PARAMS allocation(int device, size_t bytes)
{
    return (CUDA_MEM_ALLOC_NODE_PARAMS){
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}},
        .bytesize = bytes};
}

static CUgraph captured(enum way way, size_t bytes, CUdeviceptr *address)
{
    CUmemoryPool pool;
    CUgraph graph;
    ok(cuda.cuDeviceGetDefaultMemPool(&pool, 0));
    ok(cuda.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    if (way == CAPTURE_ASYNC)
        ok(cuda.cuMemAllocAsync(address, bytes, stream));
    else
        ok(cuda.cuMemAllocFromPoolAsync(address, bytes, pool, stream));
    ok(cuda.cuStreamEndCapture(stream, &graph));
    return graph;
}

CUgraph graph_of(enum way way, size_t bytes, CUdeviceptr *address)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                                .alloc = allocation(0, bytes)};
    CUgraphNode node;
    CUgraph graph;
    if (way >= CAPTURE_ASYNC)
        return captured(way, bytes, address);
    ok(cuda.cuGraphCreate(&graph, 0));
    if (way == ADD_ALLOC_NODE)
        ok(cuda.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params.alloc));
    else if (way == ADD_NODE)
        ok(cuda.cuGraphAddNode(&node, graph, NULL, 0, &params));
    else
        ok(cuda.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params));
    *address = params.alloc.dptr;
    return graph;
}

CUgraph graph_that_frees(CUstream on, int pieces, size_t bytes, int together)
{
    CUdeviceptr addresses[64];
    CUgraph graph;
    ok(cuda.cuStreamBeginCapture_v2(on, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (int i = 0; i < pieces; i++) {
        ok(cuda.cuMemAllocAsync(&addresses[i], bytes, on));
        if (!together)
            ok(cuda.cuMemFreeAsync(addresses[i], on));
    }
    for (int i = 0; together && i < pieces; i++)
        ok(cuda.cuMemFreeAsync(addresses[i], on));
    ok(cuda.cuStreamEndCapture(on, &graph));
    return graph;
}

CUgraphExec executable(CUgraph graph, unsigned long long flags)
{
    CUgraphExec made;
    ok(cuda.cuGraphInstantiateWithFlags(&made, graph, flags));
    ok(cuda.cuGraphDestroy(graph));
    return made;
}

void destroy(CUgraphExec exec) { ok(cuda.cuGraphExecDestroy(exec)); }

CUdeviceptr linear(size_t bytes)
{
    CUdeviceptr address = 0;
    ok(cuda.cuMemAlloc_v2(&address, bytes));
    return address;
}

void nothing_is_left(void)
{
    ok(cuda.cuDeviceGraphMemTrim(0));
    assert_int_equal(live(), 0);
    assert_int_equal(held(), 0);
}
