/* capture.c -- captures, what spoils them, and memory that graphs allocate. */
#include "client.h"

#include <string.h>

static CUstream stream;

static int start(void **state)
{
    client_start(state);
    return (int)cuda.cuStreamCreate(&stream, 0);
}

static void begin(CUstreamCaptureMode mode) { ok(cuda.cuStreamBeginCapture_v2(stream, mode)); }

static void test_spoilt(void **state)
{
    CUdeviceptr address;
    CUgraph graph;
    CUstreamCaptureStatus status;

    (void)state;
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    fails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuda.cuMemAlloc_v2(&address, 1));
    ok(cuda.cuStreamIsCapturing(stream, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    fails(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuda.cuStreamEndCapture(stream, &graph));
    assert_null(graph);
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    fails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuda.cuStreamSynchronize(stream));
    fails(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuda.cuStreamEndCapture(stream, &graph));
    ok(cuda.cuMemAlloc_v2(&address, 1));
    ok(cuda.cuMemFree_v2(address));
}

static void test_relaxed(void **state)
{
    CUdeviceptr address;
    CUgraph graph;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    (void)state;
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    ok(cuda.cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    ok(cuda.cuMemAlloc_v2(&address, 1));
    ok(cuda.cuMemFree_v2(address));
    ok(cuda.cuThreadExchangeStreamCaptureMode(&mode));
    ok(cuda.cuStreamEndCapture(stream, &graph));
    ok(cuda.cuGraphDestroy(graph));
}

/* Work is done at the launch, and on a stream that joined by an event, too. */
static void test_replay(void **state)
{
    CUdeviceptr address;
    CUgraph graph;
    CUgraphExec executable;
    CUstream other;
    CUevent event;
    size_t count = 0;
    unsigned char bytes[2];

    (void)state;
    ok(cuda.cuStreamCreate(&other, 0));
    ok(cuda.cuEventCreate(&event, 0));
    ok(cuda.cuMemAlloc_v2(&address, 2));
    ok(cuda.cuMemsetD8_v2(address, 0, 2));
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    ok(cuda.cuMemsetD8Async(address, 5, 1, stream));
    ok(cuda.cuEventRecord(event, stream));
    ok(cuda.cuStreamWaitEvent(other, event, 0));
    ok(cuda.cuMemsetD8Async(address + 1, 6, 1, other));
    ok(cuda.cuEventRecord(event, other));
    ok(cuda.cuStreamWaitEvent(stream, event, 0));
    ok(cuda.cuStreamEndCapture(stream, &graph));
    ok(cuda.cuMemcpyDtoH_v2(bytes, address, 2));
    assert_int_equal(bytes[0] + bytes[1], 0);
    ok(cuda.cuGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 2);
    ok(cuda.cuGraphInstantiateWithFlags(&executable, graph, 0));
    ok(cuda.cuGraphDestroy(graph));
    ok(cuda.cuGraphLaunch(executable, stream));
    ok(cuda.cuMemcpyDtoH_v2(bytes, address, 2));
    assert_int_equal(bytes[0], 5);
    assert_int_equal(bytes[1], 6);
    ok(cuda.cuGraphExecDestroy(executable));
    ok(cuda.cuMemFree_v2(address));
    ok(cuda.cuEventDestroy_v2(event));
    ok(cuda.cuStreamDestroy_v2(other));
}

static struct copy_3d copy_of(CUdeviceptr to, CUdeviceptr from)
{
    return (struct copy_3d){.dst_type = MEMORY_TYPE_DEVICE,
                            .dst_device = to,
                            .src_type = MEMORY_TYPE_DEVICE,
                            .src_device = from,
                            .width_bytes = 1,
                            .height = 1,
                            .depth = 1};
}

/* The byte that a launch leaves at `to`. */
static int after_launch(CUgraphExec executable, CUdeviceptr to)
{
    unsigned char byte = 0;

    ok(cuda.cuMemsetD8_v2(to, 0, 1));
    ok(cuda.cuGraphLaunch(executable, stream));
    ok(cuda.cuMemcpyDtoH_v2(&byte, to, 1));
    return byte;
}

/* A change to the graph holds from the next instantiation on, one to an executable graph at once.
 */
static void test_changed_copies(void **state)
{
    CUdeviceptr address;
    CUgraph graph;
    CUgraphNode node, other;
    CUgraphExec executable;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};

    (void)state;
    ok(cuda.cuMemAlloc_v2(&address, 4));
    for (unsigned int i = 0; i < 3; i++)
        ok(cuda.cuMemsetD8_v2(address + 1 + i, (unsigned char)(11 + i), 1));
    struct copy_3d first = copy_of(address, address + 1), second = copy_of(address, address + 2),
                   third = copy_of(address, address + 3), told;
    ok(cuda.cuGraphCreate(&graph, 0));
    ok(cuda.cuGraphAddMemcpyNode(&node, graph, NULL, 0, &first, NULL));
    ok(cuda.cuGraphInstantiateWithFlags(&executable, graph, 0));
    ok(cuda.cuGraphMemcpyNodeSetParams(node, &second));
    ok(cuda.cuGraphMemcpyNodeGetParams(node, &told));
    assert_memory_equal(&told, &second, sizeof told);
    assert_int_equal(after_launch(executable, address), 11);
    ok(cuda.cuGraphExecMemcpyNodeSetParams(executable, node, &third, NULL));
    assert_int_equal(after_launch(executable, address), 13);
    memcpy(&params.memcpy.copyParams, &second, sizeof second);
    ok(cuda.cuGraphExecNodeSetParams(executable, node, &params));
    assert_int_equal(after_launch(executable, address), 12);
    ok(cuda.cuGraphNodeSetParams(node, &params));
    ok(cuda.cuGraphAddNode(&other, graph, &node, 1, &params));
    fails(CUDA_ERROR_INVALID_VALUE,
          cuda.cuGraphExecMemcpyNodeSetParams(executable, other, &third, NULL));
    ok(cuda.cuGraphExecDestroy(executable));
    ok(cuda.cuGraphDestroy(graph));
    ok(cuda.cuMemFree_v2(address));
}

/* A captured allocation takes the card's memory at the launch; what is reserved goes back by trim.
 */
static void test_graph_memory(void **state)
{
    CUdeviceptr address;
    CUgraph graph;
    CUgraphExec executable;
    cuuint64_t used = 0;

    (void)state;
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    ok(cuda.cuMemAllocAsync(&address, 50 * MIB, stream));
    ok(cuda.cuMemsetD8Async(address, 1, 1, stream));
    ok(cuda.cuStreamEndCapture(stream, &graph));
    assert_int_equal(client_live(), 0);
    ok(cuda.cuGraphInstantiateWithFlags(&executable, graph, 0));
    ok(cuda.cuGraphDestroy(graph));
    assert_int_equal(client_live(), 0);
    ok(cuda.cuGraphLaunch(executable, stream));
    assert_int_equal(client_live(), 64 * MIB);
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphLaunch(executable, stream)); /* not freed yet */
    ok(cuda.cuMemFreeAsync(address, stream));
    ok(cuda.cuGraphLaunch(executable, stream));
    ok(cuda.cuDeviceGetGraphMemAttribute(0, 0, &used));
    assert_int_equal(used, 50 * MIB);
    ok(cuda.cuMemFreeAsync(address, stream));
    ok(cuda.cuStreamSynchronize(stream));
    assert_int_equal(client_live(), 64 * MIB);
    ok(cuda.cuDeviceGraphMemTrim(0));
    assert_int_equal(client_live(), 0);
    ok(cuda.cuGraphExecDestroy(executable));
}

/* A free node before an allocation of the same size lets it have the same address; what is mapped
 * for a graph that has run counts as used until it is trimmed; upload reserves, too. */
static void test_reuse_and_upload(void **state)
{
    struct instantiate_params params = {.flags = 2 /* upload */, .upload_stream = stream};
    CUdeviceptr first, second, third;
    CUgraph graph;
    CUgraphExec executable, another;
    cuuint64_t used = 0;

    (void)state;
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemFreeAsync(1 << 20, stream)); /* no graph's memory */
    ok(cuda.cuMemAllocAsync(&first, 20 * MIB, stream));
    ok(cuda.cuMemFreeAsync(first, stream));
    ok(cuda.cuMemAllocAsync(&second, 20 * MIB, stream));
    ok(cuda.cuMemAllocAsync(&third, 20 * MIB, stream));
    ok(cuda.cuMemFreeAsync(second, stream));
    ok(cuda.cuMemFreeAsync(third, stream));
    ok(cuda.cuStreamEndCapture(stream, &graph));
    assert_int_equal(first, second);
    assert_int_not_equal(second, third);
    ok(cuda.cuGraphInstantiateWithParams(&executable, graph, &params));
    assert_int_equal(client_live(), 64 * MIB);
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphInstantiateWithFlags(&another, graph, 0));
    fails(CUDA_ERROR_NOT_SUPPORTED, cuda.cuGraphClone(&graph, graph));
    ok(cuda.cuGraphLaunch(executable, stream));
    ok(cuda.cuGraphLaunch(executable, stream));
    assert_int_equal(client_live(), 64 * MIB);
    ok(cuda.cuDeviceGetGraphMemAttribute(0, 0, &used));
    assert_int_equal(used, 40 * MIB);
    ok(cuda.cuDeviceGraphMemTrim(0));
    ok(cuda.cuDeviceGetGraphMemAttribute(0, 0, &used));
    assert_int_equal(used, 0);
    assert_int_equal(client_live(), 0);
    ok(cuda.cuGraphUpload(executable, stream));
    assert_int_equal(client_live(), 64 * MIB);
    ok(cuda.cuGraphExecDestroy(executable));
    ok(cuda.cuDeviceGraphMemTrim(0));
    ok(cuda.cuGraphDestroy(graph));
}

/* A graph with memory nodes is moved into another, and launched with it. */
static void test_child(void **state)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUDA_MEM_ALLOC_NODE_PARAMS alloc = {.poolProps = props, .bytesize = 50 * MIB};
    CUgraphNodeParams moved = {.type = (CUgraphNodeType)4};
    CUgraph graph, child, found;
    CUgraphNode node;
    CUgraphExec executable;

    (void)state;
    ok(cuda.cuGraphCreate(&graph, 0));
    ok(cuda.cuGraphCreate(&child, 0));
    ok(cuda.cuGraphAddMemAllocNode(&node, child, NULL, 0, &alloc));
    fails(CUDA_ERROR_NOT_SUPPORTED, cuda.cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    moved.reserved1[0] = (long long)(intptr_t)child;
    moved.reserved1[1] = 1;
    ok(cuda.cuGraphAddNode(&node, graph, NULL, 0, &moved));
    ok(cuda.cuGraphChildGraphNodeGetGraph(node, &found));
    assert_ptr_equal(found, child);
    ok(cuda.cuGraphInstantiateWithFlags(&executable, graph, 0));
    ok(cuda.cuGraphLaunch(executable, stream));
    assert_int_equal(client_live(), 64 * MIB);
    ok(cuda.cuGraphExecDestroy(executable));
    ok(cuda.cuGraphDestroy(graph));
    ok(cuda.cuDeviceGraphMemTrim(0)); /* nothing goes: the memory is alive without its graph */
    assert_int_equal(client_live(), 64 * MIB);
    ok(cuda.cuMemFree_v2(alloc.dptr));
    ok(cuda.cuDeviceGraphMemTrim(0));
    assert_int_equal(client_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spoilt),       cmocka_unit_test(test_relaxed),
        cmocka_unit_test(test_replay),       cmocka_unit_test(test_changed_copies),
        cmocka_unit_test(test_graph_memory), cmocka_unit_test(test_reuse_and_upload),
        cmocka_unit_test(test_child),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
