/* virtual.c -- virtual memory management: what keeps physical memory alive, and who may touch it.
 */
#include "client.h"

#include <string.h>
#include <unistd.h>

static const CUmemAllocationProp on_device_0 = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                .requestedHandleTypes =
                                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc by_device_0 = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                            CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static void test_sizes(void **state)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = on_device_0;
    size_t granularity;

    (void)state;
    ok(cuda.cuMemGetAllocationGranularity(&granularity, &prop, 0));
    assert_int_equal(granularity, 2 * MIB);
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemCreate(&handle, MIB, &prop, 0));
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuMemCreate(&handle, 90 * GIB, &prop, 0));
    prop.location.id = 7;
    fails(CUDA_ERROR_INVALID_DEVICE, cuda.cuMemCreate(&handle, 2 * MIB, &prop, 0));
    prop.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST, 0};
    ok(cuda.cuMemCreate(&handle, 2 * MIB, &prop, 0)); /* takes nothing of a card */
    assert_int_equal(client_live(), 0);
    ok(cuda.cuMemRelease(handle));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemRelease(handle));
}

/* References and mappings each keep it; the last one to go frees it. */
static void test_lifetime(void **state)
{
    CUmemGenericAllocationHandle handle, again;
    CUdeviceptr address;

    (void)state;
    ok(cuda.cuMemAddressReserve(&address, 8 * MIB, 0, 0, 0));
    ok(cuda.cuMemCreate(&handle, 4 * MIB, &on_device_0, 0));
    assert_int_equal(client_live(), 4 * MIB);
    ok(cuda.cuMemMap(address, 4 * MIB, 0, handle, 0));
    ok(cuda.cuMemMap(address + 4 * MIB, 4 * MIB, 0, handle, 0)); /* twice */
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemMap(address, 4 * MIB, 0, handle, 0));
    ok(cuda.cuMemRelease(handle));
    assert_int_equal(client_live(), 4 * MIB);
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemRelease(handle));
    ok(cuda.cuMemUnmap(address, 4 * MIB));
    assert_int_equal(client_live(), 4 * MIB);
    ok(cuda.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(address + 4 * MIB)));
    assert_int_equal(again, handle);
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemAddressFree(address, 8 * MIB)); /* still mapped */
    ok(cuda.cuMemUnmap(address + 4 * MIB, 4 * MIB));
    assert_int_equal(client_live(), 4 * MIB);
    ok(cuda.cuMemRelease(again));
    assert_int_equal(client_live(), 0);
    ok(cuda.cuMemAddressFree(address, 8 * MIB));
}

/* An import is a handle of its own on the same memory, which is counted once. */
static void test_import(void **state)
{
    CUmemGenericAllocationHandle handle, imported;
    int fd;

    (void)state;
    ok(cuda.cuMemCreate(&handle, 2 * MIB, &on_device_0, 0));
    ok(cuda.cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ok(cuda.cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    assert_int_not_equal(imported, handle);
    assert_int_equal(client_live(), 2 * MIB);
    ok(cuda.cuMemRelease(handle));
    assert_int_equal(client_live(), 2 * MIB);
    ok(cuda.cuMemRelease(imported));
    assert_int_equal(client_live(), 0);
}

static void test_access(void **state)
{
    CUmemAccessDesc access[2] = {by_device_0, by_device_0};
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = on_device_0;
    CUdeviceptr address;
    unsigned long long flags;
    char byte;

    (void)state;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    ok(cuda.cuMemAddressReserve(&address, 4 * MIB, 0, 0, 0));
    for (size_t at = 0; at < 4 * MIB; at += 2 * MIB) {
        ok(cuda.cuMemCreate(&handle, 2 * MIB, &prop, 0));
        ok(cuda.cuMemMap(address + at, 2 * MIB, 0, handle, 0));
        ok(cuda.cuMemRelease(handle));
    }
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemsetD8_v2(address, 3, 1)); /* no access yet */
    access[1].location.id = 2;
    fails(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cuda.cuMemSetAccess(address, 4 * MIB, access, 2));
    ok(cuda.cuMemGetAccess(&flags, &by_device_0.location, address));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE); /* nothing was done by halves */
    access[1].location.id = 1;
    ok(cuda.cuMemSetAccess(address, 4 * MIB, access, 2));
    ok(cuda.cuMemGetAccess(&flags, &access[1].location, address + 2 * MIB));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    ok(cuda.cuMemsetD8_v2(address, 3, 4 * MIB)); /* over both */
    ok(cuda.cuMemcpyDtoH_v2(&byte, address + 4 * MIB - 1, 1));
    assert_int_equal(byte, 3);
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemUnmap(address, 3 * MIB));
    ok(cuda.cuMemUnmap(address, 4 * MIB));
    ok(cuda.cuMemAddressFree(address, 4 * MIB));
    assert_int_equal(client_live(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_lifetime),
        cmocka_unit_test(test_import),
        cmocka_unit_test(test_access),
    };

    return cmocka_run_group_tests(tests, client_start, NULL);
}
