/* settings.c -- the variables that change the simulation; CMakeLists.txt sets them for this
 * program. */
#include "client.h"

#include <dlfcn.h>

static void test_missing(void **state)
{
    CUdriverProcAddressQueryResult status;
    void *function;

    (void)state;
    ok(cuda.cuGetProcAddress_v2("cuMemAllocAsync", &function, 13000, 0, &status));
    assert_null(function);
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    ok(cuda.cuGetProcAddress_v2("cuMemFreeAsync", &function, 13000, 0, &status));
    assert_non_null(function);
}

static void test_failures(void **state)
{
    CUdeviceptr address;
    uint64_t before = cuda.calls("cuMemAlloc_v2");

    (void)state;
    ok(cuda.cuMemAlloc_v2(&address, 1));
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuMemAlloc_v2(&address, 1)); /* the second */
    ok(cuda.cuMemAlloc_v2(&address, 1));
    fails(719, cuda.cuMemAlloc_v2(&address, 1)); /* the fourth */
    fails(CUDA_ERROR_UNKNOWN, cuda.cuCtxSynchronize());
    ok(cuda.cuCtxSynchronize());
    assert_int_equal(cuda.calls("cuMemAlloc_v2") - before, 4);
    assert_int_equal(cuda.calls("cuNothing"), 0);
}

static void test_machine(void **state)
{
    size_t bytes;
    int count;

    (void)state;
    ok(cuda.cuDeviceGetCount(&count));
    assert_int_equal(count, 2);
    ok(cuda.cuDeviceTotalMem_v2(&bytes, 0)); /* the faster one */
    assert_int_equal(bytes, 512 * MIB);
    ok(cuda.cuDeviceTotalMem_v2(&bytes, 1));
    assert_int_equal(bytes, 1536 * MIB);
}

static void test_overheads(void **state)
{
    CUmodule module;
    CUdeviceptr address;
    size_t bytes;

    (void)state;
    assert_int_equal(cuda.context_bytes(1, 0), 10 * MIB);
    ok(cuda.cuModuleLoadData(&module, "image"));
    assert_int_equal(cuda.context_bytes(1, 0), 17 * MIB);
    ok(cuda.cuModuleGetGlobal_v2(&address, &bytes, module, "variable"));
    assert_int_equal(cuda.context_bytes(1, 0), 17 * MIB + 64 * KIB);
    ok(cuda.cuModuleUnload(module));
    assert_int_equal(cuda.context_bytes(1, 0), 10 * MIB);
}

/* A driver of the future gives a function that no symbol table shows. */
static void test_future(void **state)
{
    void *now, *then;
    int version;

    (void)state;
    ok(cuda.cuDriverGetVersion(&version));
    assert_int_equal(version, 14000);
    ok(cuda.cuGetProcAddress_v2("cuMemAlloc", &now, 13000, 0, NULL));
    ok(cuda.cuGetProcAddress_v2("cuMemAlloc", &then, 14000, 0, NULL));
    assert_non_null(then);
    assert_ptr_not_equal(now, then);
    assert_null(dlsym(cuda.library, "cuMemAlloc_v3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_machine), cmocka_unit_test(test_overheads),
        cmocka_unit_test(test_future),
    };

    return cmocka_run_group_tests(tests, client_start, NULL);
}
