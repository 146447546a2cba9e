/* copy_cases_test.c -- cross_device_copy = deny: what an end is. Under devices = 3,1; the doors
 * themselves are tried by copies_test.c.
 *
 * argv[1]: cases, or faults (SIMCUDA_FAIL makes the driver's answers about addresses fail).
 */
#include "copy_ends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REFUSED = CUDA_ERROR_NOT_PERMITTED };

static CUresult copy(CUdeviceptr to, CUdeviceptr from)
{
    return driver.cuMemcpyAsync(to, from, BYTES, NULL);
}

/* However it was allocated: linear memory, a pool's, and what a second context of the GPU holds. */
static void test_allocations(void **state)
{
    CUdeviceptr linear[2], pooled[2], of_second;
    CUcontext second;
    (void)state;
    for (int i = 1; i >= 0; i--) {
        ok(cuda.cuCtxSetCurrent(gpus[i].context));
        ok(cuda.cuMemAlloc_v2(&linear[i], 1 << 20));
        ok(cuda.cuMemAllocAsync(&pooled[i], 1 << 20, NULL));
    }
    ok(cuda.cuCtxCreate_v2(&second, 0, 0));
    ok(cuda.cuMemAlloc_v2(&of_second, 1 << 20));
    ok(cuda.cuCtxSetCurrent(gpus[0].context));
    fails(REFUSED, copy(linear[1], linear[0]));
    fails(REFUSED, copy(pooled[1], linear[0] + 4711));
    fails(REFUSED, copy(gpus[1].memory, pooled[0]));
    fails(REFUSED, copy(linear[1], of_second));
    ok(copy(pooled[0], linear[0] + 4711));
    ok(copy(linear[0], of_second));
    ok(driver.cuMemcpyPeer(linear[0], gpus[0].context, of_second, second, BYTES));
    for (int i = 0; i < 2; i++) {
        ok(cuda.cuMemFree_v2(linear[i]));
        ok(cuda.cuMemFreeAsync(pooled[i], NULL));
    }
    ok(cuda.cuCtxDestroy_v2(second));
}

/* The contexts that a peer copy names count as the addresses do. */
static void test_named_contexts(void **state)
{
    CUcontext before, after;
    CUDA_MEMCPY3D_PEER rows = *rows_3d_peer(&gpus[0], &gpus[0]);
    (void)state;
    ok(cuda.cuCtxGetCurrent(&before));
    fails(REFUSED, driver.cuMemcpyPeer(gpus[0].memory, gpus[1].context, gpus[0].memory,
                                       gpus[0].context, BYTES));
    fails(REFUSED, driver.cuMemcpyPeer(gpus[1].memory, gpus[0].context, gpus[0].memory,
                                       gpus[0].context, BYTES));
    rows.dstContext = gpus[1].context;
    fails(REFUSED, driver.cuMemcpy3DPeer(&rows));
    rows.dstMemoryType = CU_MEMORYTYPE_UNIFIED; /* the address alone says where it is */
    ok(driver.cuMemcpy3DPeer(&rows));
    ok(cuda.cuCtxGetCurrent(&after));
    assert_ptr_equal(before, after);
}

/* No call tells where managed memory is. */
static void test_managed(void **state)
{
    (void)state;
    ok(copy(gpus[1].memory, gpus[0].managed));
    ok(copy(gpus[0].managed, gpus[1].memory));
    ok(copy(gpus[1].managed, gpus[0].managed));
    ok(driver.cuMemAdvise(gpus[0].managed, BYTES, CU_MEM_ADVISE_SET_READ_MOSTLY, 1));
    ok(driver.cuMemAdvise(gpus[0].managed, BYTES, (CUmem_advise)4, 1)); /* takes back */
    fails(REFUSED, driver.cuMemAdvise(gpus[0].managed, BYTES, CU_MEM_ADVISE_SET_ACCESSED_BY, 1));
    fails(CUDA_ERROR_INVALID_DEVICE, driver.cuMemPrefetchAsync(gpus[0].managed, BYTES, 99, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, driver.cuMemPrefetchAsync(4096, BYTES, 1, NULL));
}

/* Each is looked at under the location that holds for it. */
static void test_batch_of_prefetches(void **state)
{
    CUdeviceptr managed[] = {gpus[0].managed, gpus[1].managed, gpus[1].managed};
    size_t bytes[] = {BYTES, BYTES, BYTES}, from[] = {0, 1};
    CUmemLocation places[] = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
    (void)state;
    ok(driver.cuMemPrefetchBatchAsync(managed, bytes, 3, places, from, 2, 0, NULL));
    managed[2] = gpus[0].managed;
    fails(REFUSED, driver.cuMemPrefetchBatchAsync(managed, bytes, 3, places, from, 2, 0, NULL));
    fails(CUDA_ERROR_INVALID_VALUE,
          driver.cuMemPrefetchBatchAsync(managed, bytes, 3, NULL, from, 2, 0, NULL));
}

/* One range of addresses over two GPUs. */
static void test_striped_memory(void **state)
{
    static unsigned char bytes[ENDS_GRANULE];
    CUdeviceptr range, seam;
    (void)state;
    ok(cuda.cuMemAddressReserve(&range, 3 * (size_t)ENDS_GRANULE, 0, 0, 0));
    ends_map(range, ENDS_GRANULE, 0);
    ends_map(range + ENDS_GRANULE, ENDS_GRANULE, 1);
    ends_map(range + 2 * (CUdeviceptr)ENDS_GRANULE, ENDS_GRANULE, 0);
    seam = range + ENDS_GRANULE - BYTES / 2;
    fails(REFUSED, copy(gpus[0].memory, seam));
    fails(REFUSED, copy(seam, gpus[0].memory));
    fails(REFUSED, copy(gpus[1].memory, seam));
    ok(copy(gpus[0].memory, seam - BYTES / 2)); /* up to the seam */
    ok(copy(gpus[1].memory, seam + BYTES / 2)); /* from the seam on */
    ok(copy(host.memory, seam));
    ok(copy(seam, host.memory));
    /* Both ends on GPU 0 that begin and end there, with GPU 1 between. */
    ok(driver.cuMemcpyHtoD_v2(range + ENDS_GRANULE / 2, bytes, sizeof bytes));
    fails(REFUSED,
          driver.cuMemcpyDtoD_v2(range, range + 2 * (CUdeviceptr)ENDS_GRANULE - BYTES, 2 * BYTES));
    ok(driver.cuMemcpyDtoD_v2(range, range + 2 * (CUdeviceptr)ENDS_GRANULE, 2 * BYTES));
    /* Rows, of which the second lies on the other GPU. */
    CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = range,
                          .srcPitch = ENDS_GRANULE,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = gpus[0].memory,
                          .dstPitch = BYTES,
                          .WidthInBytes = BYTES,
                          .Height = 2};
    fails(REFUSED, driver.cuMemcpy2D_v2(&rows));
    rows.Height = 1;
    ok(driver.cuMemcpy2D_v2(&rows));
    rows.srcY = 1;
    fails(REFUSED, driver.cuMemcpy2D_v2(&rows));
    rows.srcY = 2;
    ok(driver.cuMemcpy2D_v2(&rows));
}

/* The type that a struct gives an end changes nothing. */
static void test_declared_types(void **state)
{
    static const CUmemorytype types[] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE,
                                         CU_MEMORYTYPE_UNIFIED};
    (void)state;
    for (int i = 0; i < 9; i++) {
        CUDA_MEMCPY3D rows = *rows_3d(&gpus[1], &gpus[0]);
        rows.dstMemoryType = types[i / 3];
        rows.srcMemoryType = types[i % 3];
        fails(REFUSED, driver.cuMemcpy3D_v2(&rows));
        rows = *rows_3d(&neighbour, &gpus[1]);
        rows.dstMemoryType = types[i / 3];
        rows.srcMemoryType = types[i % 3];
        ok(driver.cuMemcpy3D_v2(&rows));
    }
}

/* The simulated driver takes arrays of every context, whichever is current. */
static void test_arrays(void **state)
{
    const struct array_3d shape = {.width = 64, .height = 64, .format = 1, .channels = 1};
    CUmipmappedArray mipmap;
    CUarray level, again;
    (void)state;
    for (int current = 0; current < 2; current++) {
        ok(cuda.cuCtxSetCurrent(gpus[current].context));
        fails(REFUSED, driver.cuMemcpyAtoD_v2(gpus[1].memory, gpus[0].array, 0, BYTES));
        ok(driver.cuMemcpyAtoD_v2(gpus[1].memory, gpus[1].array, 0, BYTES));
        ok(driver.cuMemcpyAtoD_v2(gpus[0].memory, gpus[0].array, 0, BYTES));
    }
    ok(cuda.cuMipmappedArrayCreate(&mipmap, &shape, 2)); /* in device 1's context */
    ok(cuda.cuCtxSetCurrent(gpus[0].context));
    ok(cuda.cuMipmappedArrayGetLevel(&level, mipmap, 1));
    ok(cuda.cuMipmappedArrayGetLevel(&again, mipmap, 1));
    assert_ptr_equal(level, again);
    fails(REFUSED, driver.cuMemcpyDtoA_v2(level, 0, gpus[0].memory, BYTES));
    ok(driver.cuMemcpyDtoA_v2(level, 0, gpus[1].memory, BYTES));
    CUDA_MEMCPY3D rows = *rows_3d(&gpus[0], &gpus[0]);
    rows.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    rows.dstArray = level;
    fails(REFUSED, driver.cuMemcpy3D_v2(&rows));
    CUDA_MEMCPY3D_BATCH_OP op = *batch_3d(&gpus[0], &gpus[0]);
    op.dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
    op.dst.op.array.array = level;
    memset(&op.dst.op.array.offset, 0, sizeof op.dst.op.array.offset);
    fails(REFUSED, driver.cuMemcpy3DBatchAsync_v2(1, &op, 0, NULL));
    op.src.op.ptr.ptr = gpus[1].memory;
    ok(driver.cuMemcpy3DBatchAsync_v2(1, &op, 0, NULL));
    ok(cuda.cuMipmappedArrayDestroy(mipmap));
}

/* A handle that is given out again is where it was made last, by whatever way the first one went.
 */
static void test_arrays_come_and_go(void **state)
{
    enum { TRIES = 64 };
    const struct array_2d shape = {.width = BYTES, .height = 1, .format = 1, .channels = 1};
    CUarray arrays[TRIES];
    CUcontext contexts[2];
    (void)state;
    for (int round = 0; round < 4; round++) {
        const int device = round & 1;
        ok(cuda.cuCtxCreate_v2(&contexts[device], 0, device));
        for (int i = 0; i < TRIES; i++)
            ok(cuda.cuArrayCreate_v2(&arrays[i], &shape));
        for (int i = 0; i < TRIES; i++) {
            fails(REFUSED, driver.cuMemcpyAtoD_v2(gpus[!device].memory, arrays[i], 0, BYTES));
            ok(driver.cuMemcpyAtoD_v2(gpus[device].memory, arrays[i], 0, BYTES));
        }
        for (int i = 0; round < 2 && i < TRIES; i++)
            ok(cuda.cuArrayDestroy(arrays[i]));
        ok(cuda.cuCtxDestroy_v2(contexts[device]));
    }
    assert_int_not_equal(cuda.cuArrayDestroy(arrays[0]), CUDA_SUCCESS);
    ok(cuda.cuCtxSetCurrent(gpus[0].context));
}

/* A batch is made whole or not at all, and says which copy it is. */
static void test_batches(void **state)
{
    CUdeviceptr to[] = {neighbour.memory, gpus[1].memory},
                from[] = {gpus[1].memory, gpus[0].memory};
    size_t bytes[] = {BYTES, BYTES}, failed = 4711;
    CUDA_MEMCPY3D_BATCH_OP list[2];
    (void)state;
    end_fill(&gpus[1], 0, 1);
    end_fill(&neighbour, 0, 2);
    fails(REFUSED, driver.cuMemcpyBatchAsync(to, from, bytes, 2, NULL, NULL, 0, &failed, NULL));
    assert_int_equal(failed, 1);
    assert_int_equal(end_holds(&neighbour, 0), 2);
    list[0] = *batch_3d(&neighbour, &gpus[1]);
    list[1] = *batch_3d(&gpus[1], &gpus[0]);
    failed = 4711;
    fails(REFUSED, driver.cuMemcpy3DBatchAsync(2, list, &failed, 0, NULL));
    assert_int_equal(failed, 1);
    assert_int_equal(end_holds(&neighbour, 0), 2);
    bytes[1] = 0;
    ok(driver.cuMemcpyBatchAsync_v2(to, from, bytes, 2, NULL, NULL, 0, NULL));
    assert_int_equal(end_holds(&neighbour, 0), 1);
    fails(CUDA_ERROR_INVALID_VALUE,
          driver.cuMemcpyBatchAsync_v2(NULL, from, bytes, 2, NULL, NULL, 0, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, driver.cuMemcpy3DBatchAsync_v2(2, NULL, 0, NULL));
}

/* What copies nothing crosses nothing, and nonsense is the driver's to answer. */
static void test_odd_calls(void **state)
{
    CUDA_MEMCPY3D rows = *rows_3d(&gpus[1], &gpus[0]);
    (void)state;
    ok(driver.cuMemcpy(gpus[1].memory, gpus[0].memory, 0));
    ok(driver.cuMemcpyPeer(gpus[1].memory, gpus[1].context, gpus[0].memory, gpus[0].context, 0));
    ok(driver.cuMemcpyAtoA_v2(gpus[1].array, 0, gpus[0].array, 0, 0));
    rows.Depth = 0;
    ok(driver.cuMemcpy3D_v2(&rows));
    fails(CUDA_ERROR_INVALID_VALUE, driver.cuMemcpy3D_v2(NULL));
    fails(CUDA_ERROR_INVALID_VALUE, driver.cuMemcpy2DAsync_v2(NULL, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, driver.cuMemcpyDtoD_v2(gpus[0].memory, 4096, BYTES));
    fails(CUDA_ERROR_INVALID_CONTEXT,
          driver.cuMemcpyPeer(gpus[0].memory, NULL, gpus[0].memory, NULL, BYTES));
    fails(CUDA_ERROR_INVALID_VALUE, driver.cuGraphNodeSetParams(NULL, NULL));
    ok(driver.cuMemcpy(gpus[0].memory, gpus[0].memory, BYTES)); /* and nothing is broken */
}

/* A refused copy leaves a capture whole, and one that is let go on is recorded. */
static void test_capture(void **state)
{
    CUstream stream;
    CUgraph graph;
    CUstreamCaptureStatus status;
    size_t nodes = 99;
    (void)state;
    ok(cuda.cuStreamCreate(&stream, 0));
    ok(cuda.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    fails(REFUSED, driver.cuMemcpyAsync(gpus[1].memory, gpus[0].memory, BYTES, stream));
    fails(REFUSED, driver.cuMemcpyPeerAsync(gpus[1].memory, gpus[1].context, gpus[0].memory,
                                            gpus[0].context, BYTES, stream));
    ok(driver.cuMemcpyAsync(neighbour.memory, gpus[1].memory, BYTES, stream));
    ok(driver.cuMemcpy2DAsync_v2(&(CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                                  .srcArray = gpus[0].array,
                                                  .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                                  .dstDevice = gpus[0].memory,
                                                  .WidthInBytes = BYTES,
                                                  .Height = 1},
                                 stream));
    ok(cuda.cuStreamIsCapturing(stream, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    ok(cuda.cuStreamEndCapture(stream, &graph));
    ok(cuda.cuGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 2);
    ok(cuda.cuGraphDestroy(graph));
    ok(cuda.cuStreamDestroy_v2(stream));
}

/* A graph's node is judged in the context that it names, current or not. */
static void test_nodes_without_a_context(void **state)
{
    CUgraph graph;
    CUgraphNode node;
    CUcontext current;
    CUDA_MEMCPY3D rows = *rows_3d(&gpus[0], &gpus[0]);
    (void)state;
    rows.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    rows.srcArray = gpus[1].array;
    do { /* the tests before have left more than one on the stack */
        ok(cuda.cuCtxSetCurrent(NULL));
        ok(cuda.cuCtxGetCurrent(&current));
    } while (current);
    ok(cuda.cuGraphCreate(&graph, 0));
    fails(REFUSED, driver.cuGraphAddMemcpyNode(&node, graph, NULL, 0, &rows, gpus[0].context));
    const uint64_t pushed = cuda.calls("cuCtxPushCurrent_v2");
    rows.srcArray = gpus[0].array;
    ok(driver.cuGraphAddMemcpyNode(&node, graph, NULL, 0, &rows, gpus[0].context));
    assert_int_equal(cuda.calls("cuCtxPushCurrent_v2"), pushed + 1);
    ok(cuda.cuCtxGetCurrent(&current));
    assert_null(current);
    ok(cuda.cuGraphDestroy(graph));
    ok(cuda.cuCtxSetCurrent(gpus[0].context));
}

/* Other rules' doors, and peers, are as they were. */
static void test_peers_are_untouched(void **state)
{
    int can = 0;
    (void)state;
    ok(driver.cuDeviceCanAccessPeer(&can, 0, 1));
    assert_int_equal(can, 1);
    ok(driver.cuCtxEnablePeerAccess(gpus[1].context, 0));
    fails(REFUSED, copy(gpus[1].memory, gpus[0].memory)); /* all the same */
    ok(cuda.cuCtxDisablePeerAccess(gpus[1].context));
}

/* SIMCUDA_FAIL: an address that cannot be asked about is not let through. Of cuPointerGetAttributes
 * the 1st call fails as an older driver's does, which does not know all that it is asked; the 4th,
 * which is about a source, and the 6th, about a destination, fail in earnest. */
static void test_faults(void **state)
{
    (void)state;
    const uint64_t made = cuda.calls("cuMemcpyAsync");
    fails(REFUSED, copy(gpus[1].memory, gpus[0].memory));
    fails(719, copy(gpus[1].memory, gpus[0].memory));
    fails(999, copy(gpus[1].memory, gpus[0].memory));
    assert_int_equal(cuda.calls("cuMemcpyAsync"), made); /* none of them */
    fails(REFUSED, copy(gpus[1].memory, gpus[0].memory));
    ok(copy(neighbour.memory, gpus[1].memory));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_named_contexts),
        cmocka_unit_test(test_managed),
        cmocka_unit_test(test_batch_of_prefetches),
        cmocka_unit_test(test_striped_memory),
        cmocka_unit_test(test_declared_types),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_arrays_come_and_go),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_odd_calls),
        cmocka_unit_test(test_capture),
        cmocka_unit_test(test_nodes_without_a_context),
        cmocka_unit_test(test_peers_are_untouched),
    };
    const struct CMUnitTest faults[] = {cmocka_unit_test(test_faults)};
    if (argc > 1 && strcmp(argv[1], "faults") == 0)
        return cmocka_run_group_tests(faults, ends_start, NULL);
    return cmocka_run_group_tests(cases, ends_start, NULL);
}
