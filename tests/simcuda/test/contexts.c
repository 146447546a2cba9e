/* contexts.c -- what may be called when: before cuInit, without a context, after a context's end,
 * in a forked child. */
#include "client.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int load(void **state)
{
    (void)state;
    client_load();
    return 0;
}

static void test_before_init(void **state)
{
    int number;
    const char *text;
    CUdevice device;

    (void)state;
    ok(cuda.cuDriverGetVersion(&number));
    assert_int_equal(number, 13000);
    ok(cuda.cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
    assert_string_equal(text, "CUDA_ERROR_OUT_OF_MEMORY");
    ok(cuda.cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    assert_string_equal(text, "out of memory");
    fails(CUDA_ERROR_NOT_INITIALIZED, cuda.cuDeviceGetCount(&number));
    fails(CUDA_ERROR_NOT_INITIALIZED, cuda.cuDeviceGet(&device, 0));
    fails(CUDA_ERROR_NOT_INITIALIZED, cuda.cuCoredumpGetAttribute());
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuInit(1));
}

/* A failed cuInit runs whole again, environment included. */
static void test_init_again(void **state)
{
    int count;
    char id[16];

    (void)state;
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    fails(CUDA_ERROR_NO_DEVICE, cuda.cuInit(0));
    fails(CUDA_ERROR_NOT_INITIALIZED, cuda.cuDeviceGetCount(&count));
    unsetenv("CUDA_VISIBLE_DEVICES");
    ok(cuda.cuInit(0));
    setenv("CUDA_VISIBLE_DEVICES", "0", 1); /* too late */
    ok(cuda.cuInit(0));
    ok(cuda.cuDeviceGetCount(&count));
    assert_int_equal(count, 4);
    ok(cuda.cuDeviceGetPCIBusId(id, sizeof id, 0));
    assert_string_equal(id, "0000:06:00.0"); /* the faster kind comes first */
    fails(CUDA_ERROR_INVALID_DEVICE, cuda.cuDeviceGet(&count, 4));
    assert_int_equal(cuda.calls("cuInit"), 4);
}

static void test_without_context(void **state)
{
    CUcontext context = (CUcontext)&state;
    CUdeviceptr address;

    (void)state;
    ok(cuda.cuCtxGetCurrent(&context));
    assert_null(context);
    fails(CUDA_ERROR_INVALID_CONTEXT, cuda.cuMemAlloc_v2(&address, 1));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuda.cuCtxPopCurrent_v2(&context));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuda.cuCtxSetCurrent((CUcontext)&state));
}

static void test_stack(void **state)
{
    CUcontext one, two, context;
    CUdevice device;

    (void)state;
    ok(cuda.cuCtxCreate_v2(&one, 0, 0));
    ok(cuda.cuCtxCreate_v2(&two, 0, 2));
    ok(cuda.cuCtxGetDevice(&device));
    assert_int_equal(device, 2);
    ok(cuda.cuCtxPopCurrent_v2(&context));
    assert_ptr_equal(context, two);
    ok(cuda.cuCtxGetDevice(&device));
    assert_int_equal(device, 0);
    assert_int_equal(cuda.context_bytes(CARD_OF_DEVICE_0, SIMCUDA_THIS_PROCESS), CONTEXT_BYTES);
    assert_int_equal(cuda.context_bytes(CARD_OF_DEVICE_2, SIMCUDA_THIS_PROCESS), CONTEXT_BYTES);
    ok(cuda.cuCtxDestroy_v2(two));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuda.cuCtxDestroy_v2(two));
    ok(cuda.cuCtxDestroy_v2(one)); /* and pops it */
    ok(cuda.cuCtxGetCurrent(&context));
    assert_null(context);
    assert_int_equal(cuda.context_bytes(CARD_OF_DEVICE_0, 0), 0);
}

/* Everything of a context ends with it. */
static void test_end_frees(void **state)
{
    CUcontext context;
    CUdeviceptr address;
    CUstream stream;
    CUarray array;
    const struct array_2d description = {100, 100, 0x20, 1};

    (void)state;
    ok(cuda.cuCtxCreate_v2(&context, 0, 0));
    ok(cuda.cuMemAlloc_v2(&address, 10 * MIB));
    ok(cuda.cuMemAllocManaged(&address, 1000, CU_MEM_ATTACH_GLOBAL));
    ok(cuda.cuArrayCreate_v2(&array, &description));
    ok(cuda.cuStreamCreate(&stream, 0));
    ok(cuda.cuMemAllocAsync(&address, 1000, stream));
    assert_int_equal(client_live(), 10 * MIB + 1024 + 100 * 512 + 32 * MIB);
    ok(cuda.cuCtxDestroy_v2(context));
    assert_int_equal(client_live(), 0);
}

static void test_primary(void **state)
{
    CUcontext context, again;
    CUdeviceptr address;
    unsigned int flags;
    int active;

    (void)state;
    ok(cuda.cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_false(active);
    fails(CUDA_ERROR_INVALID_CONTEXT, cuda.cuDevicePrimaryCtxRelease_v2(0));
    ok(cuda.cuDevicePrimaryCtxRetain(&context, 0));
    ok(cuda.cuDevicePrimaryCtxRetain(&again, 0));
    assert_ptr_equal(context, again);
    ok(cuda.cuCtxSetCurrent(context));
    ok(cuda.cuMemAlloc_v2(&address, MIB));
    ok(cuda.cuDevicePrimaryCtxRelease_v2(0));
    assert_int_equal(client_live(), 2 * MIB);
    ok(cuda.cuDevicePrimaryCtxRelease(0)); /* the last one */
    assert_int_equal(client_live(), 0);
    assert_int_equal(cuda.context_bytes(CARD_OF_DEVICE_0, 0), 0);
    fails(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuda.cuMemAlloc_v2(&address, MIB));
    ok(cuda.cuDevicePrimaryCtxRetain(&again, 0));
    assert_ptr_equal(context, again);
    ok(cuda.cuMemAlloc_v2(&address, MIB));
    ok(cuda.cuDevicePrimaryCtxReset_v2(0));
    assert_int_equal(client_live(), 0);
    ok(cuda.cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_false(active);
    ok(cuda.cuCtxSetCurrent(NULL));
}

static void test_overhead(void **state)
{
    CUcontext context;

    (void)state;
    ok(cuda.cuCtxCreate_v2(&context, 0, 0));
    ok(cuda.cuCtxSetLimit(2, 64 * MIB)); /* the heap of 8 MiB grows */
    assert_int_equal(cuda.context_bytes(CARD_OF_DEVICE_0, 0), CONTEXT_BYTES + 56 * MIB);
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuCtxSetLimit(2, 100 * GIB));
    ok(cuda.cuCtxDestroy_v2(context));
    assert_int_equal(cuda.context_bytes(CARD_OF_DEVICE_0, 0), 0);
}

static void test_peers(void **state)
{
    int can;
    CUcontext one, two, three;

    (void)state;
    ok(cuda.cuDeviceCanAccessPeer(&can, 0, 1));
    assert_true(can);
    ok(cuda.cuDeviceCanAccessPeer(&can, 0, 2));
    assert_false(can);
    ok(cuda.cuDeviceGetP2PAttribute(&can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 2, 3));
    assert_true(can);
    ok(cuda.cuCtxCreate_v2(&three, 0, 2));
    ok(cuda.cuCtxCreate_v2(&two, 0, 1));
    ok(cuda.cuCtxCreate_v2(&one, 0, 0));
    ok(cuda.cuCtxEnablePeerAccess(two, 0));
    fails(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuda.cuCtxEnablePeerAccess(two, 0));
    fails(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cuda.cuCtxEnablePeerAccess(three, 0));
    fails(CUDA_ERROR_INVALID_DEVICE, cuda.cuCtxEnablePeerAccess(one, 0));
    ok(cuda.cuCtxDisablePeerAccess(two));
    fails(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuda.cuCtxDisablePeerAccess(two));
    ok(cuda.cuCtxDestroy_v2(one));
    ok(cuda.cuCtxDestroy_v2(two));
    ok(cuda.cuCtxDestroy_v2(three));
}

static void test_fork(void **state)
{
    int status, number;

    (void)state;
    pid_t child = fork();
    if (child == 0)
        _exit(cuda.cuInit(0) != CUDA_ERROR_NOT_INITIALIZED ||
              cuda.cuDeviceGetCount(&number) != CUDA_ERROR_NOT_INITIALIZED ||
              cuda.cuDriverGetVersion(&number) != CUDA_ERROR_NOT_INITIALIZED ||
              cuda.live_bytes(CARD_OF_DEVICE_0, SIMCUDA_THIS_PROCESS) != 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    ok(cuda.cuDeviceGetCount(&number));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_init),
        cmocka_unit_test(test_init_again),
        cmocka_unit_test(test_without_context),
        cmocka_unit_test(test_stack),
        cmocka_unit_test(test_end_frees),
        cmocka_unit_test(test_primary),
        cmocka_unit_test(test_overhead),
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_fork),
    };

    return cmocka_run_group_tests(tests, load, NULL);
}
