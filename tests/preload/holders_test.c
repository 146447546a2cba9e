/* holders_test.c -- what memory ends with: green contexts, attached contexts, managed and current
 * pools. What is alive by the referee is what is held.
 *
 *   holders_test plain | shim | one | deny | ignore | many | faults
 *
 * one: devices_per_process = 1. deny, ignore: managed = ... many: nothing but a great many pools.
 */
#include "holding.h"

static CUgreenCtx green_context(CUcontext *context)
{
    struct dev_resource whole, part;
    CUdevResourceDesc desc;
    CUgreenCtx green;
    unsigned int count = 1;
    ok(cuda.cuDeviceGetDevResource(0, &whole, 1));
    ok(cuda.cuDevSmResourceSplitByCount(&part, &count, &whole, NULL, 0, 8));
    ok(cuda.cuDevResourceGenerateDesc(&desc, &part, 1));
    must(cuda.cuGreenCtxCreate(&green, desc, 0, 1));
    must(cuda.cuCtxFromGreenCtx(context, green));
    return green;
}

/* What is allocated in a green context is its device's primary context's, and ends with that. */
static void test_green(void **state)
{
    CUcontext before, context, popped;
    CUdeviceptr kept, freed, async;
    CUstream stream;
    (void)state;
    ok(cuda.cuCtxPopCurrent_v2(&before));
    must(cuda.cuDevicePrimaryCtxRelease_v2(0));
    CUgreenCtx first = green_context(&context), second = green_context(&popped);
    ok(cuda.cuCtxPushCurrent_v2(context));
    must(cuda.cuMemAlloc_v2(&kept, 4 * PART));
    must(cuda.cuMemAlloc_v2(&freed, 8 * PART));
    check(12 * PART, 0);
    must(cuda.cuMemFree_v2(freed));
    ok(cuda.cuGreenCtxStreamCreate(&stream, first, 1, 0));
    must(cuda.cuMemAllocAsync(&async, PART, stream));
    check(4 * PART + 32 * MIB, 0);
    must(cuda.cuMemFreeAsync(async, stream));
    ok(cuda.cuCtxPopCurrent_v2(&popped));
    must(cuda.cuGreenCtxDestroy(first));
    assert_int_equal(live(), 4 * PART + 32 * MIB); /* the other keeps the primary context */
    must(cuda.cuGreenCtxDestroy(second));
    assert_int_equal(live(), 0);
    must(cuda.cuDevicePrimaryCtxRetain(&context, 0));
    assert_ptr_equal(context, before);
    ok(cuda.cuCtxPushCurrent_v2(context));
    check(0, 0);
}

/* The reset of a device, and of one that a green context is on. */
static void test_green_and_reset(void **state)
{
    CUcontext context;
    CUdeviceptr address;
    (void)state;
    CUgreenCtx green = green_context(&context);
    ok(cuda.cuCtxPushCurrent_v2(context));
    must(cuda.cuMemAlloc_v2(&address, 4 * PART));
    check(4 * PART, 0);
    must(cuda.cuDevicePrimaryCtxReset_v2(0));
    assert_int_equal(live(), 0);
    ok(cuda.cuCtxPopCurrent_v2(&context));
    must(cuda.cuGreenCtxDestroy(green));
    must(cuda.cuDevicePrimaryCtxRetain(&context, 0));
    check(0, 0);
}

static void test_detach(void **state)
{
    CUcontext context, same;
    CUdeviceptr address;
    (void)state;
    for (int attached = 0; attached < 3; attached++) {
        must(cuda.cuCtxCreate_v2(&context, 0, 0));
        must(cuda.cuMemAlloc_v2(&address, 4 * PART));
        for (int i = 0; i < attached; i++) {
            must(cuda.cuCtxAttach(&same, 0));
            assert_ptr_equal(same, context);
        }
        for (int i = 0; i < attached; i++) {
            must(cuda.cuCtxDetach(context));
            check(4 * PART, 0);
        }
        must(cuda.cuCtxDetach(context));
        check(0, 0);
    }
    must(cuda.cuCtxCreate_v2(&context, 0, 0)); /* a destruction drops all references */
    must(cuda.cuCtxAttach(&same, 0));
    must(cuda.cuMemAlloc_v2(&address, 4 * PART));
    must(cuda.cuCtxDestroy_v2(context));
    check(0, 0);
}

/* The first to hold the primary context is a green one. */
static void test_green_first(void **state)
{
    CUcontext context;
    CUdeviceptr address;
    (void)state;
    client_load();
    ok(cuda.cuInit(0));
    CUgreenCtx green = green_context(&context);
    ok(cuda.cuCtxPushCurrent_v2(context));
    must(cuda.cuMemAlloc_v2(&address, 4 * PART));
    check(4 * PART, 0);
    must(cuda.cuMemFree_v2(address));
    check(0, 0);
    must(cuda.cuGreenCtxDestroy(green));
}

static CUmemPoolProps managed_props(CUmemLocationType type)
{
    return (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED, .location = {type, 0}};
}

static void test_managed_pools(void **state)
{
    CUmemPoolProps props = managed_props(CU_MEM_LOCATION_TYPE_DEVICE);
    CUmemoryPool pool, current;
    CUdeviceptr address, more;
    (void)state;
    for (int i = 0; i < 4; i++) {
        if (i == 0) { /* the driver's own */
            must(cuda.cuMemGetDefaultMemPool(&pool, &props.location, props.allocType));
        } else if (i == 1) {
            must(cuda.cuMemGetMemPool(&pool, &props.location, props.allocType));
        } else {
            props =
                managed_props(i == 2 ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_INVALID);
            props.maxSize = 64 * MIB;
            must(cuda.cuMemPoolCreate(&pool, &props));
            must(cuda.cuMemSetMemPool(&props.location, props.allocType, pool));
            must(cuda.cuMemGetMemPool(&current, &props.location, props.allocType));
            assert_ptr_equal(current, pool);
        }
        must(cuda.cuMemAllocFromPoolAsync(&address, 33 * MIB, pool, NULL));
        check(64 * MIB, 0);
        if (i >= 2)
            refuses(CUDA_ERROR_OUT_OF_MEMORY, /* maxSize */
                    cuda.cuMemAllocFromPoolAsync(&more, 33 * MIB, pool, NULL));
        else if (shim)
            refuses(CUDA_ERROR_OUT_OF_MEMORY, /* the cap */
                    cuda.cuMemAllocFromPoolAsync(&more, CAP, pool, NULL));
        check(64 * MIB, 0);
        must(cuda.cuMemFreeAsync(address, NULL));
        must(cuda.cuMemPoolTrimTo(pool, 0));
        if (i >= 2)
            must(cuda.cuMemPoolDestroy(pool));
        check(0, 0);
    }
    props = (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                             .location = {CU_MEM_LOCATION_TYPE_HOST, 0}};
    must(cuda.cuMemPoolCreate(&pool, &props));
    must(cuda.cuMemAllocFromPoolAsync(&address, CAP + PART, pool, NULL));
    check(0, 0);
    must(cuda.cuMemFreeAsync(address, NULL));
    must(cuda.cuMemPoolDestroy(pool));
}

/* cuDeviceSetMemPool and its newer form: allocations follow the current pool. */
static void test_current_pool(void **state)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemoryPool pool;
    CUdeviceptr address;
    (void)state;
    for (int newer = 0; newer < 2; newer++) {
        must(cuda.cuMemPoolCreate(&pool, &props));
        if (newer)
            must(cuda.cuMemSetMemPool(&props.location, props.allocType, pool));
        else
            must(cuda.cuDeviceSetMemPool(0, pool));
        must(cuda.cuMemAllocAsync(&address, 4 * PART, NULL));
        check(32 * MIB, 0);
        must(cuda.cuMemPoolDestroy(pool)); /* the allocation lives on */
        check(32 * MIB, 0);
        must(cuda.cuMemFreeAsync(address, NULL));
        check(0, 0);
    }
}

enum { POOLED = 33 << 20, RESERVED = 64 << 20 };

/* A pool with one allocation of POOLED bytes, which takes RESERVED. */
static CUmemoryPool filled_pool(CUdeviceptr *address)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemoryPool pool;
    must(cuda.cuMemPoolCreate(&pool, &props));
    must(cuda.cuMemAllocFromPoolAsync(address, POOLED, pool, NULL));
    check(RESERVED, 0);
    return pool;
}

/* The primary context goes while another of its device stays: so does the memory of pools. */
static void test_pools_outlive_the_primary_context(void **state)
{
    CUcontext primary, other;
    CUdeviceptr address;
    (void)state;
    for (int resets = 0; resets < 2; resets++) {
        must(cuda.cuCtxCreate_v2(&other, 0, 0));
        CUmemoryPool pool = filled_pool(&address);
        if (resets)
            must(cuda.cuDevicePrimaryCtxReset_v2(0));
        else
            must(cuda.cuDevicePrimaryCtxRelease_v2(0));
        check(RESERVED, 0);
        must(cuda.cuMemPoolDestroy(pool));
        check(RESERVED, 0);
        must(cuda.cuMemFree_v2(address));
        check(0, 0);
        must(cuda.cuDevicePrimaryCtxRetain(&primary, 0));
        must(cuda.cuCtxDestroy_v2(other));
        ok(cuda.cuCtxSetCurrent(primary));
    }
}

/* The last context of a device takes with it what is alive in pools, destroyed ones too. The
 * addresses come again, for memory of another kind. */
static void test_pools_end_with_the_last_context(void **state)
{
    enum { PIECES = 8 };
    CUcontext primary, created;
    CUdeviceptr pooled, addresses[PIECES];
    (void)state;
    for (int round = 0; round < 4; round++) {
        if (round % 2 == 0) {
            must(cuda.cuDevicePrimaryCtxRelease_v2(0));
            must(cuda.cuCtxCreate_v2(&created, 0, 0));
        }
        if (round < 2)
            must(cuda.cuMemPoolDestroy(filled_pool(&pooled)));
        for (int i = 0; i < PIECES; i++)
            must(cuda.cuMemAllocAsync(&addresses[i], PART, NULL));
        if (round % 2 == 0)
            must(cuda.cuCtxDestroy_v2(created));
        else
            must(cuda.cuDevicePrimaryCtxReset_v2(0));
        must(cuda.cuDevicePrimaryCtxRetain(&primary, 0));
        ok(cuda.cuCtxSetCurrent(primary));
        check(0, 0);
        for (int i = 0; i < PIECES; i++)
            must(cuda.cuMemAlloc_v2(&addresses[i], PART));
        check((size_t)PIECES * PART, 0);
        for (int i = 0; i < PIECES; i++)
            must(cuda.cuMemFree_v2(addresses[i]));
        check(0, 0);
    }
}

/* More pools than can be counted are refused, and the driver's own pool counts beside them. */
static void test_very_many_pools(void **state)
{
    enum { MANY = 1100 };
    static CUmemoryPool pools[MANY];
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemoryPool own;
    CUdeviceptr address;
    CUresult rc = CUDA_SUCCESS;
    int count = 0;
    (void)state;
    while (count < MANY && (rc = cuda.cuMemPoolCreate(&pools[count], &props)) == CUDA_SUCCESS)
        count++;
    assert_int_equal(rc, CUDA_ERROR_OUT_OF_MEMORY);
    for (int named = 0; named < 2; named++) {
        ok(cuda.cuDeviceGetDefaultMemPool(&own, 0));
        rc = named ? cuda.cuMemAllocFromPoolAsync(&address, CAP + PART, own, NULL)
                   : cuda.cuMemAllocAsync(&address, CAP + PART, NULL);
        assert_int_equal(rc, CUDA_ERROR_OUT_OF_MEMORY);
        ok(cuda.cuMemAllocAsync(&address, PART, NULL));
        assert_int_equal(held(), live());
        ok(cuda.cuMemFree_v2(address));
    }
    while (count-- > 0)
        ok(cuda.cuMemPoolDestroy(pools[count]));
    ok(cuda.cuMemPoolTrimTo(own, 0));
    check(0, 0);
}

/* Null and wrong arguments: the same answers with and without the shim. */
static void test_wrong_arguments(void **state)
{
    CUmemoryPool pool;
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUgreenCtx green;
    CUcontext context;
    (void)state;
    refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuGreenCtxCreate(NULL, NULL, 0, 1));
    refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuGreenCtxCreate(&green, NULL, 99, 1));
    refuses(CUDA_ERROR_INVALID_CONTEXT, cuda.cuGreenCtxDestroy(NULL));
    refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuCtxFromGreenCtx(NULL, NULL));
    refuses(CUDA_ERROR_INVALID_CONTEXT, cuda.cuCtxFromGreenCtx(&context, NULL));
    refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuCtxAttach(NULL, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuCtxAttach(&context, 1));
    refuses(CUDA_ERROR_INVALID_CONTEXT, cuda.cuCtxDetach(NULL));
    refuses(CUDA_ERROR_INVALID_VALUE,
            cuda.cuMemGetMemPool(NULL, &location, CU_MEM_ALLOCATION_TYPE_MANAGED));
    refuses(CUDA_ERROR_INVALID_VALUE,
            cuda.cuMemGetDefaultMemPool(&pool, NULL, CU_MEM_ALLOCATION_TYPE_MANAGED));
    refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuMemPoolCreate(&pool, NULL));
    refuses(CUDA_ERROR_INVALID_VALUE,
            cuda.cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_INVALID, NULL));
    check(0, 0);
}

/* A place of devices_per_process: a detached and a green context give theirs back. */
static void test_places(void **state)
{
    CUcontext context, same, other;
    CUgreenCtx green;
    (void)state;
    ok(cuda.cuCtxPopCurrent_v2(&context));
    ok(cuda.cuDevicePrimaryCtxRelease_v2(0));
    ok(cuda.cuCtxCreate_v2(&context, 0, 0));
    ok(cuda.cuCtxAttach(&same, 0));
    ok(cuda.cuCtxDetach(context));
    refuses(CUDA_ERROR_NOT_PERMITTED, cuda.cuCtxCreate_v2(&other, 0, 1));
    ok(cuda.cuCtxDetach(context));
    ok(cuda.cuCtxCreate_v2(&other, 0, 1));
    ok(cuda.cuCtxDetach(other));
    green = green_context(&context);
    refuses(CUDA_ERROR_NOT_PERMITTED, cuda.cuDevicePrimaryCtxRetain(&other, 1));
    ok(cuda.cuGreenCtxDestroy(green));
    ok(cuda.cuDevicePrimaryCtxRetain(&other, 1));
    ok(cuda.cuDevicePrimaryCtxRelease_v2(1));
}

static void test_managed_denied(void **state)
{
    CUmemPoolProps props = managed_props(CU_MEM_LOCATION_TYPE_DEVICE);
    CUmemoryPool pool;
    (void)state;
    refuses(CUDA_ERROR_NOT_PERMITTED, cuda.cuMemPoolCreate(&pool, &props));
    refuses(CUDA_ERROR_NOT_PERMITTED,
            cuda.cuMemGetDefaultMemPool(&pool, &props.location, props.allocType));
    refuses(CUDA_ERROR_NOT_PERMITTED,
            cuda.cuMemGetMemPool(&pool, &props.location, props.allocType));
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    ok(cuda.cuMemGetMemPool(&pool, &props.location, props.allocType));
}

static void test_managed_ignored(void **state)
{
    CUmemPoolProps props = managed_props(CU_MEM_LOCATION_TYPE_DEVICE);
    CUmemoryPool pool;
    CUdeviceptr address;
    (void)state;
    for (int own = 0; own < 2; own++) {
        if (own)
            ok(cuda.cuMemPoolCreate(&pool, &props));
        else
            ok(cuda.cuMemGetDefaultMemPool(&pool, &props.location, props.allocType));
        ok(cuda.cuMemAllocFromPoolAsync(&address, CAP + PART, pool, NULL));
        assert_int_equal(held(), 0);
        assert_true(live() > CAP);
        ok(cuda.cuMemFreeAsync(address, NULL));
        ok(cuda.cuMemPoolTrimTo(pool, 0));
        if (own)
            ok(cuda.cuMemPoolDestroy(pool));
    }
    check(0, 0);
}

#define SHARED_TESTS                                                                               \
    cmocka_unit_test(test_green), cmocka_unit_test(test_detach),                                   \
        cmocka_unit_test(test_managed_pools), cmocka_unit_test(test_current_pool),                 \
        cmocka_unit_test(test_pools_outlive_the_primary_context),                                  \
        cmocka_unit_test(test_pools_end_with_the_last_context)

static int run_shared(void)
{
    const struct CMUnitTest tests[] = {SHARED_TESTS};
    return cmocka_run_group_tests(tests, client_start, NULL);
}

static int run_green_first(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_green_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What the hooks call, by themselves or for the program. */
static const char *const calls[] = {"cuGreenCtxCreate",
                                    "cuGreenCtxDestroy",
                                    "cuCtxFromGreenCtx",
                                    "cuDevicePrimaryCtxRelease_v2",
                                    "cuCtxAttach",
                                    "cuCtxDetach",
                                    "cuCtxDestroy_v2",
                                    "cuMemPoolCreate",
                                    "cuMemPoolDestroy",
                                    "cuMemGetMemPool",
                                    "cuMemGetDefaultMemPool",
                                    "cuMemFreeAsync",
                                    "cuMemFree_v2"};

static const char *const primary_calls[] = {"cuDevicePrimaryCtxRetain",
                                            "cuDevicePrimaryCtxRelease_v2"};

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "plain";
    const struct CMUnitTest all[] = {SHARED_TESTS, cmocka_unit_test(test_wrong_arguments),
                                     cmocka_unit_test(test_green_and_reset)};
    const struct CMUnitTest many[] = {cmocka_unit_test(test_very_many_pools)};
    const struct CMUnitTest places[] = {cmocka_unit_test(test_places)};
    const struct CMUnitTest denied[] = {cmocka_unit_test(test_managed_denied)};
    const struct CMUnitTest ignored[] = {cmocka_unit_test(test_managed_ignored)};
    shim = strcmp(mode, "plain") != 0;
    if (strcmp(mode, "faults") == 0)
        return run_faults(run_shared, calls, sizeof calls / sizeof calls[0]) +
               run_faults(run_green_first, primary_calls, 2);
    if (strcmp(mode, "one") == 0)
        return cmocka_run_group_tests(places, client_start, NULL);
    if (strcmp(mode, "deny") == 0)
        return cmocka_run_group_tests(denied, client_start, NULL);
    if (strcmp(mode, "ignore") == 0)
        return cmocka_run_group_tests(ignored, client_start, NULL);
    if (strcmp(mode, "many") == 0)
        return cmocka_run_group_tests(many, client_start, NULL);
    return cmocka_run_group_tests(all, client_start, NULL);
}
