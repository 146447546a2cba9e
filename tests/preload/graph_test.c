/* graph_test.c -- memory that graphs allocate, under a cap of 128 MiB on each device; the referee
 * is the simulated driver.
 *
 *   graph_test bare     what is the driver's own answer; without the shim
 *   graph_test shim     the same, and the cap
 */
#include "graph_client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Made by whichever way, a graph is launched if it fits to the chunk, and not before. */
static void is_held_exactly_at_the_cap(void **state)
{
    (void)state;
    for (enum way way = 0; way < WAYS; way++) {
        CUdeviceptr address;
        CUgraphExec exec = executable(graph_of(way, 3 * CHUNK_MIB * MIB, &address), 0);
        assert_int_equal(live(), 0);
        CUdeviceptr chunk = linear(CHUNK_MIB * MIB), granule = linear(1);
        fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuGraphLaunch(exec, stream));
        fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuGraphUpload(exec, stream));
        assert_int_equal(live(), CHUNK_MIB * MIB + 512);
        assert_int_equal(held(), live());
        ok(cuda.cuMemFree_v2(granule));
        ok(cuda.cuGraphLaunch(exec, stream));
        assert_int_equal(live(), CAP);
        assert_int_equal(held(), CAP);
        fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuMemAlloc_v2(&granule, 1));
        fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphLaunch(exec, stream)); /* not freed yet */
        ok(way % 2 ? cuda.cuMemFree_v2(address) : cuda.cuMemFreeAsync(address, stream));
        assert_int_equal(held(), CAP); /* idle, and still the card's loss */
        for (int i = 0; i < 3; i++) {  /* what is mapped is mapped: at the cap, too */
            ok(cuda.cuGraphLaunch(exec, stream));
            ok(cuda.cuMemFreeAsync(address, stream));
        }
        granule = linear(1); /* idle graph memory gives way */
        assert_int_equal(live(), CHUNK_MIB * MIB + 512);
        ok(cuda.cuMemFree_v2(granule));
        ok(cuda.cuMemFree_v2(chunk));
        destroy(exec);
        nothing_is_left();
    }
}

/* What counts is what is alive at the same time, not the sum of what is allocated. */
static void counts_what_is_alive_together(void **state)
{
    (void)state;
    CUgraphExec exec = executable(graph_that_frees(stream, 20, 40 * MIB, 0), 0);
    CUdeviceptr rest = linear(64 * MIB);
    ok(cuda.cuGraphLaunch(exec, stream));
    assert_int_equal(live(), CAP);
    destroy(exec);
    exec = executable(graph_that_frees(stream, 2, 40 * MIB, 1), 0);
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuGraphLaunch(exec, stream)); /* 96 MiB */
    ok(cuda.cuMemFree_v2(rest));
    ok(cuda.cuGraphLaunch(exec, stream));
    destroy(exec);
    exec = executable(graph_that_frees(stream, 64, 1000, 1), 0); /* small ones share pages */
    ok(cuda.cuGraphLaunch(exec, stream));
    destroy(exec);
    nothing_is_left();
}

/* Graphs on one stream run one after the other and share what is mapped: no trim is needed. */
static void lets_graphs_of_a_stream_share(void **state)
{
    (void)state;
    CUgraphExec one = executable(graph_that_frees(stream, 1, 96 * MIB, 0), 0);
    CUgraphExec other = executable(graph_that_frees(stream, 1, 70 * MIB, 0), 0);
    const uint64_t trims = cuda.calls("cuDeviceGraphMemTrim");
    CUdeviceptr rest = linear(CHUNK_MIB * MIB);
    for (int i = 0; i < 10; i++) {
        ok(cuda.cuGraphLaunch(one, stream));
        ok(cuda.cuGraphLaunch(other, stream));
    }
    assert_int_equal(live(), CAP);
    assert_int_equal(cuda.calls("cuDeviceGraphMemTrim"), trims);
    ok(cuda.cuGraphLaunch(one,
                          second_stream)); /* may need memory of its own: idle one goes first */
    assert_int_equal(live(), CAP);
    ok(cuda.cuMemFree_v2(rest));
    destroy(one);
    destroy(other);
    nothing_is_left();
}

/* What a graph leaves unfreed outlives it, and another graph, too, may free it. */
static void counts_what_outlives_its_graph(void **state)
{
    (void)state;
    CUdeviceptr address, linear_address;
    CUgraphNode node;
    CUgraph freeing;
    CUgraphExec exec = executable(graph_of(ADD_ALLOC_NODE, 64 * MIB, &address), 0);
    ok(cuda.cuGraphLaunch(exec, stream));
    ok(cuda.cuGraphCreate(&freeing, 0));
    ok(cuda.cuGraphAddMemFreeNode(&node, freeing, NULL, 0, address));
    destroy(exec);
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuMemAlloc_v2(&linear_address, 96 * MIB));
    assert_int_equal(held(), 64 * MIB);
    exec = executable(freeing, 0);
    ok(cuda.cuGraphLaunch(exec, stream));
    linear_address = linear(96 * MIB);
    assert_int_equal(live(), 96 * MIB);
    ok(cuda.cuMemFree_v2(linear_address));
    destroy(exec);
    nothing_is_left();
}

static void frees_by_itself_where_asked_to(void **state)
{
    (void)state;
    CUdeviceptr address;
    CUgraphExec exec = executable(graph_of(CAPTURE_ASYNC, CAP, &address), FLAG_AUTO_FREE);
    for (int i = 0; i < 3; i++)
        ok(cuda.cuGraphLaunch(exec, stream));
    assert_int_equal(live(), CAP);
    ok(cuda.cuMemFree_v2(address));
    destroy(exec);
    nothing_is_left();
}

static void is_charged_by_upload(void **state)
{
    (void)state;
    struct instantiate_params params = {.flags = FLAG_UPLOAD, .upload_stream = stream};
    CUdeviceptr rest = linear(96 * MIB), address;
    CUgraph graph = graph_of(CAPTURE_ASYNC, 40 * MIB, &address);
    CUgraphExec exec = NULL;
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuGraphInstantiateWithParams(&exec, graph, &params));
    assert_int_equal(params.result, 1);
    assert_int_equal(live(), 96 * MIB);
    ok(cuda.cuMemFree_v2(rest));
    ok(cuda.cuGraphInstantiateWithParams(&exec, graph, &params));
    assert_int_equal(params.result, 0);
    assert_int_equal(live(), 64 * MIB);
    assert_int_equal(held(), 64 * MIB);
    destroy(exec);
    ok(cuda.cuDeviceGraphMemTrim(0));
    ok(cuda.cuGraphInstantiate_v2(&exec, graph, NULL, NULL, 0));
    destroy(exec);
    ok(cuda.cuGraphInstantiate(&exec, graph, NULL, NULL, 0));
    ok(cuda.cuGraphUpload(exec, stream));
    assert_int_equal(live(), 64 * MIB);
    ok(cuda.cuGraphLaunch(exec, stream));
    assert_int_equal(live(), 64 * MIB);
    ok(cuda.cuMemFree_v2(address));
    ok(cuda.cuGraphDestroy(graph));
    destroy(exec);
    nothing_is_left();
}

static void looks_into_children(void **state)
{
    (void)state;
    CUgraphNodeParams moved = {.type = (CUgraphNodeType)NODE_IS_GRAPH};
    CUdeviceptr address;
    CUgraphNode node;
    CUgraph graph;
    moved.reserved1[0] = (long long)(intptr_t)graph_of(ADD_NODE, CAP + 1, &address);
    moved.reserved1[1] = CHILD_IS_MOVED;
    ok(cuda.cuGraphCreate(&graph, 0));
    ok(cuda.cuGraphAddNode(&node, graph, NULL, 0, &moved));
    CUgraphExec exec = executable(graph, 0);
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuGraphLaunch(exec, stream));
    destroy(exec);
    nothing_is_left();
}

static void follows_updates(void **state)
{
    (void)state;
    struct update_info info;
    CUdeviceptr small_address, large_address;
    CUgraph large = graph_of(ADD_NODE, CAP + 1, &large_address);
    CUgraphExec exec = executable(graph_of(ADD_NODE, MIB, &small_address), 0);
    ok(cuda.cuGraphExecUpdate_v2(exec, large, &info));
    ok(cuda.cuGraphDestroy(large));
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuGraphLaunch(exec, stream));
    CUgraph small = graph_of(ADD_NODE, MIB, &small_address);
    ok(cuda.cuGraphExecUpdate(exec, small, NULL, NULL));
    ok(cuda.cuGraphLaunch(exec, stream));
    ok(cuda.cuMemFree_v2(small_address));
    ok(cuda.cuGraphDestroy(small));
    destroy(exec);
    nothing_is_left();
}

/* A graph that allocates on two devices takes nothing on either where one is full. */
static void takes_all_or_nothing(void **state)
{
    (void)state;
    CUDA_MEM_ALLOC_NODE_PARAMS here = allocation(0, 20 * MIB), there = allocation(1, 100 * MIB);
    CUcontext context, other;
    CUdeviceptr rest;
    CUgraphNode node;
    CUgraph graph;
    ok(cuda.cuCtxGetCurrent(&context));
    ok(cuda.cuCtxCreate_v2(&other, 0, 1));
    rest = linear(4 * MIB);
    ok(cuda.cuCtxSetCurrent(context));
    ok(cuda.cuGraphCreate(&graph, 0));
    ok(cuda.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &here));
    ok(cuda.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &there));
    CUgraphExec exec = executable(graph, 0);
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuGraphLaunch(exec, stream));
    assert_int_equal(live(), 0);
    assert_int_equal(held(), 0);
    ok(cuda.cuMemFree_v2(rest));
    ok(cuda.cuGraphLaunch(exec, stream));
    assert_int_equal(live(), 32 * MIB);
    assert_int_equal(cuda.live_bytes(GPU_OF_DEVICE_1, SIMCUDA_THIS_PROCESS), CAP);
    ok(cuda.cuMemFree_v2(here.dptr));
    ok(cuda.cuMemFree_v2(there.dptr));
    destroy(exec);
    ok(cuda.cuDeviceGraphMemTrim(1));
    ok(cuda.cuCtxDestroy_v2(other));
    nothing_is_left();
}

/* The launch of a graph that allocates nothing asks the driver for nothing else. */
static void costs_others_nothing(void **state)
{
    (void)state;
    static const char *const asked[] = {"cuStreamIsCapturing", "cuDeviceGetGraphMemAttribute",
                                        "cuCtxGetDevice", "cuCtxGetCurrent",
                                        "cuThreadExchangeStreamCaptureMode"};
    uint64_t before[sizeof asked / sizeof asked[0]];
    CUgraphNode node;
    CUgraph graph;
    ok(cuda.cuGraphCreate(&graph, 0));
    ok(cuda.cuGraphAddEmptyNode(&node, graph, NULL, 0));
    CUgraphExec exec = executable(graph, 0);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        before[i] = cuda.calls(asked[i]);
    ok(cuda.cuGraphLaunch(exec, stream));
    ok(cuda.cuGraphLaunch_ptsz(exec, stream));
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        assert_int_equal(cuda.calls(asked[i]), before[i]);
    destroy(exec);
}

/* The end of the device's contexts is the end of its graph memory. */
static void goes_with_a_reset(void **state)
{
    (void)state;
    CUcontext context;
    CUdeviceptr address;
    for (int round = 0; round < 3; round++) {
        CUgraphExec exec = executable(graph_of(CAPTURE_ASYNC, CAP, &address), 0);
        ok(cuda.cuGraphLaunch(exec, stream));
        destroy(exec);
        ok(cuda.cuDevicePrimaryCtxReset_v2(0));
        assert_int_equal(live(), 0);
        ok(cuda.cuDevicePrimaryCtxRetain(&context, 0));
        ok(cuda.cuCtxSetCurrent(context));
        assert_int_equal(held(), 0);
        ok(cuda.cuStreamCreate(&stream, 0));
        ok(cuda.cuStreamCreate(&second_stream, 0));
        ok(cuda.cuMemFree_v2(linear(CAP)));
    }
}

/* More launches than there is room for, of 30 to 150 MiB, at once and with trims in between: never
 * over the cap. */
enum { THREADS = 4, ROUNDS = 200 };
static atomic_int over, granted, refused, failed;
static CUcontext shared_context;

static void tally(CUresult rc)
{
    if (rc == CUDA_SUCCESS)
        granted++;
    else if (rc == CUDA_ERROR_OUT_OF_MEMORY)
        refused++;
    else
        failed++;
    if (live() > CAP)
        over++;
}

static void *launch_many(void *argument)
{
    const int number = *(const int *)argument;
    CUstream own;
    CUdeviceptr address;
    cuda.cuCtxSetCurrent(shared_context);
    cuda.cuStreamCreate(&own, 0);
    for (int i = 0; i < ROUNDS; i++) {
        CUDA_MEM_ALLOC_NODE_PARAMS params = allocation(0, (size_t)(30 + 40 * number) * MIB);
        CUgraph graph;
        CUgraphNode node, freeing;
        CUgraphExec exec;
        cuda.cuGraphCreate(&graph, 0);
        cuda.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params);
        if (i % 2)
            cuda.cuGraphAddMemFreeNode(&freeing, graph, &node, 1, params.dptr);
        cuda.cuGraphInstantiateWithFlags(&exec, graph, 0);
        cuda.cuGraphDestroy(graph);
        for (int k = 0; k < 3; k++) {
            CUresult rc = cuda.cuGraphLaunch(exec, own);
            tally(rc);
            if (i % 5 == number)
                cuda.cuDeviceGraphMemTrim(0);
            if (cuda.cuMemAlloc_v2(&address, 30 * MIB) == CUDA_SUCCESS) {
                tally(CUDA_SUCCESS);
                cuda.cuMemFree_v2(address);
            }
            if (rc == CUDA_SUCCESS && i % 2 == 0)
                cuda.cuMemFreeAsync(params.dptr, own);
        }
        cuda.cuGraphExecDestroy(exec);
    }
    cuda.cuStreamDestroy_v2(own);
    return NULL;
}

static void holds_against_many_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    int numbers[THREADS];
    ok(cuda.cuCtxGetCurrent(&shared_context));
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, launch_many, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(over, 0);
    assert_int_equal(failed, 0);
    assert_true(granted > 0);
    assert_true(refused > 0);
    assert_int_equal(held(), live());
    nothing_is_left();
}

/* Null and wrong arguments, with a graph at hand that allocates: the driver's own answers. */
static void answers_as_the_driver(void **state)
{
    (void)state;
    struct instantiate_params params = {0};
    struct update_info info;
    CUdeviceptr address;
    CUgraph graph = graph_of(ADD_ALLOC_NODE, MIB, &address);
    CUgraphExec exec = NULL;
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphInstantiate(NULL, graph, NULL, NULL, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphInstantiate(&exec, NULL, NULL, NULL, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphInstantiate_v2(NULL, graph, NULL, NULL, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphInstantiate_v2(&exec, NULL, NULL, NULL, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphInstantiateWithFlags(NULL, graph, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphInstantiateWithFlags(&exec, NULL, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphInstantiateWithParams(NULL, graph, &params));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphInstantiateWithParams(&exec, NULL, &params));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphInstantiateWithParams(&exec, graph, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphInstantiateWithParams_ptsz(&exec, graph, NULL));
    assert_null(exec);
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphLaunch(NULL, stream));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphLaunch_ptsz(NULL, stream));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphUpload(NULL, stream));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphUpload_ptsz(NULL, stream));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphExecDestroy(NULL));
    fails(CUDA_ERROR_INVALID_DEVICE, cuda.cuDeviceGraphMemTrim(-1));
    fails(CUDA_ERROR_INVALID_DEVICE, cuda.cuDeviceGraphMemTrim(1000));
    ok(cuda.cuGraphInstantiateWithFlags(&exec, graph, 0));
    fails(CUDA_ERROR_INVALID_HANDLE, cuda.cuGraphLaunch(exec, (CUstream)(void *)graph));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphExecUpdate_v2(exec, graph, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphExecUpdate_v2(exec, NULL, &info));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphExecUpdate_v2(NULL, graph, &info));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphExecUpdate(NULL, graph, NULL, NULL));
    ok(cuda.cuGraphExecDestroy(exec));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphExecDestroy(exec));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGraphLaunch(exec, stream));
    ok(cuda.cuGraphDestroy(graph));
    ok(cuda.cuDeviceGraphMemTrim(0));
    assert_int_equal(live(), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest bare[] = {
        cmocka_unit_test(answers_as_the_driver),
    };
    const struct CMUnitTest shim[] = {
        cmocka_unit_test(costs_others_nothing),
        cmocka_unit_test(answers_as_the_driver),
        cmocka_unit_test(is_held_exactly_at_the_cap),
        cmocka_unit_test(counts_what_is_alive_together),
        cmocka_unit_test(lets_graphs_of_a_stream_share),
        cmocka_unit_test(counts_what_outlives_its_graph),
        cmocka_unit_test(frees_by_itself_where_asked_to),
        cmocka_unit_test(is_charged_by_upload),
        cmocka_unit_test(looks_into_children),
        cmocka_unit_test(follows_updates),
        cmocka_unit_test(takes_all_or_nothing),
        cmocka_unit_test(costs_others_nothing),
        cmocka_unit_test(holds_against_many_threads),
        cmocka_unit_test(goes_with_a_reset),
    };
    if (argc > 1 && strcmp(argv[1], "bare") == 0)
        return cmocka_run_group_tests(bare, start, NULL);
    return cmocka_run_group_tests(shim, start, NULL);
}
