/* pools.c -- memory pools: what they reserve, and when that goes back. */
#include "client.h"

static cuuint64_t attribute(CUmemoryPool pool, CUmemPool_attribute number)
{
    cuuint64_t value = 0;

    ok(cuda.cuMemPoolGetAttribute(pool, (int)number, &value));
    return value;
}

static CUmemoryPool new_pool(size_t most)
{
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                  .maxSize = most};
    CUmemoryPool pool;

    ok(cuda.cuMemPoolCreate(&pool, &props));
    return pool;
}

static void test_reserve(void **state)
{
    CUmemoryPool pool = new_pool(0);
    CUdeviceptr one, two;

    (void)state;
    ok(cuda.cuMemAllocFromPoolAsync(&one, 1000, pool, NULL));
    assert_int_equal(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1024);
    assert_int_equal(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 32 * MIB);
    assert_int_equal(client_live(), 32 * MIB);
    ok(cuda.cuMemAllocFromPoolAsync(&two, 30 * MIB, pool, NULL)); /* fits what is idle */
    assert_int_equal(client_live(), 32 * MIB);
    ok(cuda.cuMemFreeAsync(two, NULL));
    ok(cuda.cuMemAllocFromPoolAsync(&two, 40 * MIB, pool, NULL)); /* doesn't */
    assert_int_equal(client_live(), 96 * MIB);
    ok(cuda.cuMemFreeAsync(two, NULL));
    assert_int_equal(client_live(), 96 * MIB); /* kept */
    ok(cuda.cuMemPoolTrimTo(pool, 64 * MIB));
    assert_int_equal(client_live(), 64 * MIB);
    ok(cuda.cuMemPoolTrimTo(pool, 0));
    assert_int_equal(client_live(), 32 * MIB); /* in use */
    assert_int_equal(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 96 * MIB);
    ok(cuda.cuMemFree_v2(one));
    ok(cuda.cuMemPoolDestroy(pool));
    assert_int_equal(client_live(), 0);
}

static void test_threshold(void **state)
{
    CUmemoryPool pool;
    CUdeviceptr address;
    cuuint64_t all = UINT64_MAX, none = 0;

    (void)state;
    ok(cuda.cuDeviceGetDefaultMemPool(&pool, 0));
    ok(cuda.cuMemAllocAsync(&address, 100 * MIB, NULL));
    ok(cuda.cuMemFreeAsync(address, NULL));
    assert_int_equal(client_live(), 128 * MIB);
    ok(cuda.cuStreamSynchronize(NULL)); /* nothing is to be kept */
    assert_int_equal(client_live(), 0);
    ok(cuda.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    ok(cuda.cuMemAllocAsync(&address, 100 * MIB, NULL));
    ok(cuda.cuMemFreeAsync(address, NULL));
    ok(cuda.cuCtxSynchronize());
    assert_int_equal(client_live(), 128 * MIB);
    ok(cuda.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &none));
    ok(cuda.cuCtxSynchronize());
    assert_int_equal(client_live(), 0);
}

static void test_pressure(void **state)
{
    CUmemoryPool pool = new_pool(0);
    CUdeviceptr address;

    (void)state;
    ok(cuda.cuMemAllocFromPoolAsync(&address, 70 * GIB, pool, NULL));
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuMemAllocFromPoolAsync(&address, 20 * GIB, pool, NULL));
    ok(cuda.cuMemFreeAsync(address, NULL));
    assert_int_equal(client_live(), 70 * GIB);
    ok(cuda.cuMemAlloc_v2(&address, 70 * GIB)); /* what the pool holds idle gives way */
    assert_int_equal(client_live(), 70 * GIB);
    ok(cuda.cuMemFree_v2(address));
    ok(cuda.cuMemPoolDestroy(pool));
}

static void test_limit(void **state)
{
    CUmemoryPool pool = new_pool(64 * MIB);
    CUdeviceptr address;

    (void)state;
    ok(cuda.cuMemAllocFromPoolAsync(&address, 64 * MIB, pool, NULL));
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuMemAllocFromPoolAsync(&address, 1, pool, NULL));
    ok(cuda.cuMemPoolDestroy(pool)); /* takes effect when nothing of it is alive */
    assert_int_equal(client_live(), 64 * MIB);
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemPoolTrimTo(pool, 0));
    ok(cuda.cuMemFreeAsync(address, NULL));
    assert_int_equal(client_live(), 0);
}

static void test_current(void **state)
{
    CUmemoryPool pool = new_pool(0), current;
    CUdeviceptr address;

    (void)state;
    ok(cuda.cuDeviceSetMemPool(0, pool));
    ok(cuda.cuMemAllocAsync(&address, 1, NULL));
    assert_int_equal(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 512);
    ok(cuda.cuMemFreeAsync(address, NULL));
    ok(cuda.cuMemPoolDestroy(pool));
    ok(cuda.cuDeviceGetMemPool(&current, 0));
    ok(cuda.cuDeviceGetDefaultMemPool(&pool, 0));
    assert_ptr_equal(current, pool);
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemPoolDestroy(pool));
}

static void test_access(void **state)
{
    CUmemoryPool pool = new_pool(0);
    CUmemAccessDesc peer = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAccessDesc stranger = {{CU_MEM_LOCATION_TYPE_DEVICE, 2},
                                CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    int flags;

    (void)state;
    ok(cuda.cuMemPoolSetAccess(pool, &peer, 1));
    ok(cuda.cuMemPoolGetAccess(&flags, pool, &peer.location));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    fails(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cuda.cuMemPoolSetAccess(pool, &stranger, 1));
    ok(cuda.cuMemPoolDestroy(pool));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reserve),  cmocka_unit_test(test_threshold),
        cmocka_unit_test(test_pressure), cmocka_unit_test(test_limit),
        cmocka_unit_test(test_current),  cmocka_unit_test(test_access),
    };

    return cmocka_run_group_tests(tests, client_start, NULL);
}
