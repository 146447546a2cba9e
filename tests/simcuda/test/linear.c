/* linear.c -- linear memory: rounding, capacity, what an address is, copies. */
#include "client.h"

#include <string.h>

static void test_rounding(void **state)
{
    static const struct {
        size_t asked, taken;
    } cases[] = {
        {1, 512},
        {512, 512},
        {513, 1024},
        {MIB - 512, MIB - 512},
        {MIB - 1, MIB},
        {MIB, 2 * MIB},
        {2 * MIB, 2 * MIB},
        {2 * MIB + 1, 4 * MIB},
        {10 * GIB + 1, 10 * GIB + 2 * MIB},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CUdeviceptr address;
        ok(cuda.cuMemAlloc_v2(&address, cases[i].asked));
        assert_int_equal(client_live(), cases[i].taken);
        assert_int_equal(address % 512, 0);
        ok(cuda.cuMemFree_v2(address));
        assert_int_equal(client_live(), 0);
    }
}

static void test_arguments(void **state)
{
    CUdeviceptr address;
    size_t pitch;

    (void)state;
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemAlloc_v2(NULL, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemAlloc_v2(&address, 0));
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuMemAlloc_v2(&address, SIZE_MAX));
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuMemAllocPitch_v2(&address, &pitch, SIZE_MAX / 2, 4, 4));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemAllocPitch_v2(&address, &pitch, 1, 1, 3));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemAllocManaged(&address, 1, 0));
    ok(cuda.cuMemFree_v2(0));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemFree_v2(4096));
    ok(cuda.cuMemAlloc_v2(&address, 4096));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemFree_v2(address + 512));
    ok(cuda.cuMemFree_v2(address));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemFree_v2(address));
}

/* The entries of CUDA 3.1: the same memory, addressed by 32 bits. */
static void test_32_bits(void **state)
{
    CUdeviceptr_v1 small, pitched;
    unsigned int pitch, available, total;

    (void)state;
    ok(cuda.cuMemAlloc(&small, 1000));
    ok(cuda.cuMemAllocPitch(&pitched, &pitch, 1000, 3, 4));
    assert_int_equal(pitch, 1024);
    assert_int_equal(client_live(), 1024 + 3 * 1024);
    memset((void *)(uintptr_t)small, 1, 1000);
    ok(cuda.cuMemFree_v2(small));
    ok(cuda.cuMemFree(pitched));
    assert_int_equal(client_live(), 0);
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemFree(pitched));
    ok(cuda.cuMemGetInfo(&available, &total)); /* of 80 GiB */
    assert_int_equal(available, UINT32_MAX);
    assert_int_equal(total, UINT32_MAX);
    ok(cuda.cuDeviceTotalMem(&total, 0));
    assert_int_equal(total, UINT32_MAX);
}

static void test_pitch(void **state)
{
    CUdeviceptr address;
    size_t pitch;

    (void)state;
    ok(cuda.cuMemAllocPitch_v2(&address, &pitch, 1000, 3, 4));
    assert_int_equal(pitch, 1024);
    assert_int_equal(client_live(), 3 * 1024);
    ok(cuda.cuMemFree_v2(address));
}

static void test_capacity(void **state)
{
    CUdeviceptr address, more;
    size_t available, total, before;

    (void)state;
    ok(cuda.cuMemGetInfo_v2(&before, &total));
    assert_int_equal(total, 80 * GIB);
    assert_int_equal(before, 80 * GIB - CONTEXT_BYTES);
    ok(cuda.cuMemAlloc_v2(&address, 79 * GIB));
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuMemAlloc_v2(&more, GIB));
    ok(cuda.cuMemGetInfo_v2(&available, &total));
    assert_int_equal(available, before - 79 * GIB);
    ok(cuda.cuMemAlloc_v2(&more, available)); /* to the last byte */
    ok(cuda.cuMemFree_v2(more));
    ok(cuda.cuMemFree_v2(address));
    ok(cuda.cuMemGetInfo_v2(&available, &total));
    assert_int_equal(available, before);
}

static void test_many(void **state)
{
    enum { MANY = 100000 };
    static CUdeviceptr addresses[MANY];

    (void)state;
    for (size_t i = 0; i < MANY; i++)
        ok(cuda.cuMemAlloc_v2(&addresses[i], 1 + i % 3000));
    for (size_t i = 0; i < MANY; i++)
        ok(cuda.cuMemFree_v2(addresses[i]));
    assert_int_equal(client_live(), 0);
}

static void test_host_memory(void **state)
{
    static char mine[4096];
    void *pointer;
    CUdeviceptr address;

    (void)state;
    ok(cuda.cuMemHostAlloc(&pointer, MIB, 0));
    memset(pointer, 1, MIB);
    ok(cuda.cuMemHostGetDevicePointer_v2(&address, pointer, 0));
    ok(cuda.cuMemFreeHost(pointer));
    ok(cuda.cuMemHostRegister_v2(mine, sizeof mine, 0));
    fails(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
          cuda.cuMemHostRegister_v2(mine, sizeof mine, 0));
    ok(cuda.cuMemHostUnregister(mine));
    fails(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuda.cuMemHostUnregister(mine));
    assert_int_equal(client_live(), 0);
}

static void test_pointer_attributes(void **state)
{
    enum { CONTEXT = 1, TYPE = 2, MANAGED = 8, ORDINAL = 9, START = 11, SIZE = 12 };
    int attributes[] = {TYPE, ORDINAL, MANAGED}, type, ordinal, managed;
    void *out[] = {&type, &ordinal, &managed};
    CUdeviceptr address, start;
    size_t size;
    CUcontext context, current;

    (void)state;
    ok(cuda.cuMemAlloc_v2(&address, 5000));
    ok(cuda.cuPointerGetAttribute(&type, TYPE, address + 10));
    assert_int_equal(type, MEMORY_TYPE_DEVICE);
    ok(cuda.cuPointerGetAttribute(&start, START, address + 10));
    assert_int_equal(start, address);
    ok(cuda.cuPointerGetAttribute(&size, SIZE, address + 10));
    assert_int_equal(size, 5000);
    ok(cuda.cuPointerGetAttribute(&context, CONTEXT, address));
    ok(cuda.cuCtxGetCurrent(&current));
    assert_ptr_equal(context, current);
    ok(cuda.cuMemGetAddressRange_v2(&start, &size, address + 4999));
    assert_int_equal(start, address);
    ok(cuda.cuMemFree_v2(address));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuPointerGetAttribute(&type, TYPE, address));
    ok(cuda.cuPointerGetAttributes(3, attributes, out, address)); /* zeros for what is unknown */
    assert_int_equal(type, 0);
    assert_int_equal(ordinal, -2);
}

static void test_copies(void **state)
{
    char in[4096], out[4096];
    CUdeviceptr one, two;

    (void)state;
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (char)i;
    ok(cuda.cuMemAlloc_v2(&one, sizeof in));
    ok(cuda.cuMemAlloc_v2(&two, 8 * MIB));
    ok(cuda.cuMemcpyHtoD_v2(one, in, sizeof in));
    ok(cuda.cuMemcpyDtoD_v2(two, one, sizeof in));
    ok(cuda.cuMemcpyDtoH_v2(out, two, sizeof out));
    assert_memory_equal(in, out, sizeof in);
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemcpyHtoD_v2(one, in, sizeof in + 1));
    ok(cuda.cuMemsetD8_v2(two, 7, 8 * MIB));
    ok(cuda.cuMemsetD8_v2(two + 1, 0, 8 * MIB - 2));
    ok(cuda.cuMemcpyDtoH_v2(out, two, 2));
    assert_int_equal(out[0], 7);
    assert_int_equal(out[1], 0);
    ok(cuda.cuMemcpyDtoH_v2(out, two + 8 * MIB - 2, 2));
    assert_int_equal(out[0], 0);
    assert_int_equal(out[1], 7);
    ok(cuda.cuMemsetD2D32_v2(one, 64, 0x01020304, 2, 3));
    ok(cuda.cuMemcpyDtoH_v2(out, one + 2 * 64 + 4, 4));
    assert_memory_equal(out, "\4\3\2\1", 4);
    ok(cuda.cuMemFree_v2(one));
    ok(cuda.cuMemFree_v2(two));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounding),    cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_32_bits),     cmocka_unit_test(test_pitch),
        cmocka_unit_test(test_capacity),    cmocka_unit_test(test_many),
        cmocka_unit_test(test_host_memory), cmocka_unit_test(test_pointer_attributes),
        cmocka_unit_test(test_copies),
    };

    return cmocka_run_group_tests(tests, client_start, NULL);
}
