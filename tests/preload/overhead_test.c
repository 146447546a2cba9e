/* overhead_test.c -- what contexts and modules take: counted, kept under the cap, given back. The
 * referee is the simulated driver's figure of context bytes.
 *
 *   overhead_test WAY
 *     measured   NVML lists this process
 *     growth     NVML lists nobody
 *     absent     there is no NVML
 *     fixed      overhead = 200MiB
 *     none       overhead = none
 *     ignored    as measured, with managed = ignore
 *
 * The policy caps both GPUs, 3 and 1 in this order, at 1 GiB; contexts take 300 MiB, modules 100.
 */
#include "cmocka_all.h"

#include "cuda_abi.h"
#include "simcuda.h"

#include <dlfcn.h>
#include <string.h>
#include <time.h>

#define MIB ((size_t)1 << 20)

enum { CAP_MIB = 1024, CONTEXT_MIB = 300, MODULE_MIB = 100, LIMIT_PRINTF_FIFO_SIZE = 1 };

static enum way { MEASURED, GROWTH, ABSENT, FIXED, NONE, IGNORED } way;

#define FUNCTION(name, ...) static CUresult (*name)(__VA_ARGS__)
FUNCTION(cuInit, unsigned int);
FUNCTION(cuCtxCreate_v2, CUcontext *, unsigned int, CUdevice);
FUNCTION(cuCtxDestroy_v2, CUcontext);
FUNCTION(cuCtxGetCurrent, CUcontext *);
FUNCTION(cuCtxSetCurrent, CUcontext);
FUNCTION(cuCtxSetLimit, CUlimit, size_t);
FUNCTION(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice);
FUNCTION(cuDevicePrimaryCtxRelease_v2, CUdevice);
FUNCTION(cuDevicePrimaryCtxReset_v2, CUdevice);
FUNCTION(cuMemAlloc_v2, CUdeviceptr *, size_t);
FUNCTION(cuMemAllocManaged, CUdeviceptr *, size_t, unsigned int);
FUNCTION(cuMemAllocFromPoolAsync, CUdeviceptr *, size_t, CUmemoryPool, CUstream);
FUNCTION(cuMemPoolCreate, CUmemoryPool *, const CUmemPoolProps *);
FUNCTION(cuMemPoolDestroy, CUmemoryPool);
FUNCTION(cuMemFree_v2, CUdeviceptr);
FUNCTION(cuMemGetInfo_v2, size_t *, size_t *);
FUNCTION(cuModuleLoadData, CUmodule *, const void *);
FUNCTION(cuModuleUnload, CUmodule);
FUNCTION(cuModuleGetGlobal_v2, CUdeviceptr *, size_t *, CUmodule, const char *);
FUNCTION(cuLibraryLoadData, CUlibrary *, const void *, CUjit_option *, void **, unsigned int,
         CUlibraryOption *, void **, unsigned int);
FUNCTION(cuLibraryGetModule, CUmodule *, CUlibrary);
FUNCTION(cuLibraryUnload, CUlibrary);
FUNCTION(cuGetExportTable, const void **, const CUuuid *);
static uint64_t (*context_bytes)(int gpu, int pid);

static void find(void *function, const char *name)
{
    static void *driver;
    if (!driver)
        driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = driver ? dlsym(driver, name) : NULL;
    assert_non_null(found);
    memcpy(function, &found, sizeof found);
}

static int start(void **state)
{
    (void)state;
#define FIND(name) find((void *)&name, #name)
    FIND(cuInit), FIND(cuCtxCreate_v2), FIND(cuCtxDestroy_v2), FIND(cuCtxGetCurrent);
    FIND(cuCtxSetCurrent), FIND(cuCtxSetLimit), FIND(cuDevicePrimaryCtxRetain);
    FIND(cuDevicePrimaryCtxRelease_v2), FIND(cuDevicePrimaryCtxReset_v2), FIND(cuMemAlloc_v2);
    FIND(cuMemAllocManaged), FIND(cuMemAllocFromPoolAsync), FIND(cuMemPoolCreate),
        FIND(cuMemPoolDestroy), FIND(cuMemFree_v2), FIND(cuMemGetInfo_v2), FIND(cuModuleLoadData),
        FIND(cuModuleUnload);
    FIND(cuModuleGetGlobal_v2), FIND(cuLibraryLoadData), FIND(cuLibraryGetModule);
    FIND(cuLibraryUnload), FIND(cuGetExportTable);
    find((void *)&context_bytes, "simcuda_context_bytes");
    return cuInit(0) != CUDA_SUCCESS;
}

/* In MiB; the figures of these tests are whole ones. */
static uint64_t referee(void)
{
    /* Of device 0. Where GPUs cannot be named, that is the first in CUDA's own order. */
    return context_bytes(way == ABSENT ? 1 : 3, SIMCUDA_THIS_PROCESS) / MIB;
}

static uint64_t held(void)
{
    size_t free_bytes, total;
    assert_int_equal(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
    assert_int_equal(total, CAP_MIB * MIB);
    return (total - free_bytes) / MIB;
}

static CUresult take(CUdeviceptr *memory, uint64_t mib) { return cuMemAlloc_v2(memory, mib * MIB); }

/* What is said to be free can be had, and not one granule more. */
static void assert_room_is_exact(void)
{
    const uint64_t room = CAP_MIB - held();
    CUdeviceptr memory;
    assert_int_equal(take(&memory, room + 2), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(take(&memory, room), CUDA_SUCCESS);
    assert_int_equal(cuMemFree_v2(memory), CUDA_SUCCESS);
}

static uint64_t expected_of_contexts(unsigned int contexts)
{
    switch (way) {
    case MEASURED:
    case GROWTH:
        return (uint64_t)contexts * CONTEXT_MIB;
    case FIXED:
        return contexts ? 200 : 0;
    default:
        return 0;
    }
}

static void counts_contexts(void **state)
{
    (void)state;
    CUcontext first, second;
    CUdeviceptr memory;
    assert_int_equal(cuCtxCreate_v2(&first, 0, 0), CUDA_SUCCESS);
    assert_int_equal(held(), expected_of_contexts(1));
    assert_room_is_exact();
    assert_int_equal(take(&memory, 100), CUDA_SUCCESS);
    assert_int_equal(cuCtxCreate_v2(&second, 0, 0), CUDA_SUCCESS);
    assert_int_equal(held(), expected_of_contexts(2) + 100);
    assert_room_is_exact();
    assert_int_equal(cuCtxDestroy_v2(second), CUDA_SUCCESS);
    cuCtxSetCurrent(first);
    if (way != GROWTH) /* which only knows when the last one goes */
        assert_int_equal(held(), expected_of_contexts(1) + 100);
    assert_int_equal(cuMemFree_v2(memory), CUDA_SUCCESS);
    assert_int_equal(cuCtxDestroy_v2(first), CUDA_SUCCESS);
    assert_int_equal(cuCtxCreate_v2(&first, 0, 0), CUDA_SUCCESS);
    assert_int_equal(held(), expected_of_contexts(1));
    assert_int_equal(cuCtxDestroy_v2(first), CUDA_SUCCESS);
    assert_int_equal(referee(), 0);
}

static void counts_the_primary_context_once(void **state)
{
    (void)state;
    CUcontext context;
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    cuCtxSetCurrent(context);
    assert_int_equal(held(), expected_of_contexts(1));
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    assert_int_equal(held(), expected_of_contexts(1));
    assert_int_equal(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    cuCtxSetCurrent(context);
    assert_int_equal(held(), expected_of_contexts(1));
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    assert_int_equal(referee(), 0);
}

/* A context that does not fit is refused, and is not there; what stood before still stands. */
static void refuses_a_context_over_the_cap(void **state)
{
    (void)state;
    CUcontext first, second = NULL, current;
    CUdeviceptr memory;
    assert_int_equal(cuCtxCreate_v2(&first, 0, 0), CUDA_SUCCESS);
    assert_int_equal(take(&memory, CAP_MIB - CONTEXT_MIB - 10), CUDA_SUCCESS);
    CUresult rc = cuCtxCreate_v2(&second, 0, 0);
    if (way == MEASURED || way == GROWTH) {
        assert_int_equal(rc, CUDA_ERROR_OUT_OF_MEMORY);
        assert_null(second);
        assert_int_equal(referee(), CONTEXT_MIB);
        assert_int_equal(cuCtxGetCurrent(&current), CUDA_SUCCESS);
        assert_ptr_equal(current, first);
        assert_int_equal(cuMemFree_v2(memory), CUDA_SUCCESS);
        rc = cuCtxCreate_v2(&second, 0, 0);
        memory = 0;
    }
    assert_int_equal(rc, CUDA_SUCCESS);
    assert_int_equal(cuCtxDestroy_v2(second), CUDA_SUCCESS);
    cuCtxSetCurrent(first);
    assert_int_equal(cuMemFree_v2(memory), CUDA_SUCCESS);
    assert_int_equal(cuCtxDestroy_v2(first), CUDA_SUCCESS);
}

static void refuses_the_primary_context_over_the_cap(void **state)
{
    (void)state;
    CUcontext first, primary = NULL;
    CUdeviceptr memory;
    assert_int_equal(cuCtxCreate_v2(&first, 0, 0), CUDA_SUCCESS);
    assert_int_equal(take(&memory, CAP_MIB - CONTEXT_MIB - 10), CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxRetain(&primary, 0), CUDA_ERROR_OUT_OF_MEMORY);
    assert_null(primary);
    assert_int_equal(referee(), CONTEXT_MIB);
    assert_int_equal(cuMemFree_v2(memory), CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
    assert_int_equal(held(), 2 * CONTEXT_MIB);
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    assert_int_equal(held(), CONTEXT_MIB);
    assert_int_equal(cuCtxDestroy_v2(first), CUDA_SUCCESS);
}

static const char image[] = "an image";

static void counts_modules(void **state)
{
    (void)state;
    CUcontext context;
    CUmodule module, other = NULL;
    CUdeviceptr memory, variable;
    assert_int_equal(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    assert_int_equal(cuModuleLoadData(&module, image), CUDA_SUCCESS);
    assert_int_equal(held(), CONTEXT_MIB + MODULE_MIB);
    assert_room_is_exact();
    assert_int_equal(cuModuleUnload(module), CUDA_SUCCESS);
    assert_int_equal(held(), CONTEXT_MIB);

    assert_int_equal(take(&memory, CAP_MIB - CONTEXT_MIB - MODULE_MIB + 2), CUDA_SUCCESS);
    assert_int_equal(cuModuleLoadData(&other, image), CUDA_ERROR_OUT_OF_MEMORY);
    assert_null(other);
    assert_int_equal(referee(), CONTEXT_MIB);
    assert_int_equal(cuMemFree_v2(memory), CUDA_SUCCESS);
    assert_int_equal(take(&memory, CAP_MIB - CONTEXT_MIB - MODULE_MIB), CUDA_SUCCESS);
    assert_int_equal(cuModuleLoadData(&other, image), CUDA_SUCCESS);
    /* A variable of 64 KiB more: it is there, and counts. */
    assert_int_equal(cuModuleGetGlobal_v2(&variable, NULL, other, "x"), CUDA_SUCCESS);
    assert_int_equal(held(), CAP_MIB);
    assert_int_equal(cuMemFree_v2(memory), CUDA_SUCCESS);
    assert_int_equal(take(&memory, CAP_MIB - CONTEXT_MIB - MODULE_MIB), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuModuleUnload(other), CUDA_SUCCESS);
    assert_int_equal(held(), CONTEXT_MIB);
    assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
    assert_int_equal(referee(), 0);
}

static void counts_libraries(void **state)
{
    (void)state;
    CUcontext context;
    CUlibrary library;
    CUmodule module;
    assert_int_equal(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    assert_int_equal(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0),
                     CUDA_SUCCESS);
    assert_int_equal(cuLibraryGetModule(&module, library), CUDA_SUCCESS);
    assert_int_equal(held(), referee());
    assert_int_equal(referee(), CONTEXT_MIB + MODULE_MIB);
    assert_int_equal(cuLibraryUnload(library), CUDA_SUCCESS);
    assert_int_equal(held(), CONTEXT_MIB);
    assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
}

static void counts_heaps(void **state)
{
    (void)state;
    CUcontext context;
    CUdeviceptr memory;
    assert_int_equal(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    assert_int_equal(cuCtxSetLimit(LIMIT_PRINTF_FIFO_SIZE, 101 * MIB), CUDA_SUCCESS);
    assert_int_equal(held(), referee());
    assert_int_equal(referee(), CONTEXT_MIB + 100);
    assert_int_equal(take(&memory, 600), CUDA_SUCCESS);
    assert_int_equal(cuCtxSetLimit(LIMIT_PRINTF_FIFO_SIZE, 201 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(referee(), CONTEXT_MIB + 100);
    assert_int_equal(cuCtxSetLimit(LIMIT_PRINTF_FIFO_SIZE, 1 * MIB), CUDA_SUCCESS);
    assert_int_equal(held(), CONTEXT_MIB + 600);
    assert_int_equal(cuMemFree_v2(memory), CUDA_SUCCESS);
    assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
}

/* Modules that come in by a way of their own, as the runtime of CUDA 11 loads them, or by a first
 * launch: found before a grant that would pass 7/8 of the cap. */
static void finds_what_it_did_not_see(void **state)
{
    (void)state;
    static const CUuuid runtime_interface = {{0x6b, (char)0xd5, (char)0xfb, 0x6c, 0x5b, (char)0xf4,
                                              (char)0xe7, 0x4a, (char)0x89, (char)0x87, (char)0xd9,
                                              0x39, 0x12, (char)0xfd, (char)0x9d, (char)0xf9}};
    static const struct {
        unsigned int magic, version;
        const void *data;
        void *more;
    } wrapper = {0x466243b1, 1, image, NULL};
    CUresult (*load)(CUmodule *, const void *, void *, void *, unsigned int);
    const void *table;
    CUcontext context;
    CUmodule module;
    CUdeviceptr memory;
    assert_int_equal(cuGetExportTable(&table, &runtime_interface), CUDA_SUCCESS);
    memcpy(&load, (const char *)table + 6 * sizeof(void *), sizeof load);
    assert_int_equal(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    assert_int_equal(load(&module, &wrapper, NULL, NULL, 0), CUDA_SUCCESS);
    assert_int_equal(referee(), CONTEXT_MIB + MODULE_MIB);
    nanosleep(&(struct timespec){0, 150000000}, NULL); /* it looks at most every 100 ms */
    assert_int_equal(take(&memory, CAP_MIB - CONTEXT_MIB - MODULE_MIB + 2),
                     CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(take(&memory, CAP_MIB - CONTEXT_MIB - MODULE_MIB), CUDA_SUCCESS);
    assert_int_equal(cuMemFree_v2(memory), CUDA_SUCCESS);
    assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
}

/* Managed memory that is let pass is not overhead either, whenever that is measured. */
static void does_not_count_what_is_ignored(void **state)
{
    (void)state;
    CUcontext first, second;
    CUdeviceptr managed, more, pooled;
    CUmodule module;
    CUmemoryPool pool;
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    assert_int_equal(cuCtxCreate_v2(&first, 0, 0), CUDA_SUCCESS);
    assert_int_equal(cuMemAllocManaged(&managed, CAP_MIB * MIB, 1), CUDA_SUCCESS);
    assert_int_equal(cuCtxCreate_v2(&second, 0, 0), CUDA_SUCCESS);
    assert_int_equal(cuMemAllocManaged(&more, CAP_MIB * MIB, 1), CUDA_SUCCESS);
    assert_int_equal(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
    assert_int_equal(cuMemAllocFromPoolAsync(&pooled, CAP_MIB * MIB, pool, NULL), CUDA_SUCCESS);
    assert_int_equal(cuModuleLoadData(&module, image), CUDA_SUCCESS);
    assert_int_equal(held(), referee());
    assert_int_equal(cuMemFree_v2(pooled), CUDA_SUCCESS);
    assert_int_equal(cuMemPoolDestroy(pool), CUDA_SUCCESS);
    assert_room_is_exact();
    assert_int_equal(cuCtxDestroy_v2(second), CUDA_SUCCESS); /* and what is in it */
    cuCtxSetCurrent(first);
    assert_int_equal(held(), CONTEXT_MIB);
    assert_int_equal(cuMemFree_v2(managed), CUDA_SUCCESS);
    assert_int_equal(cuModuleLoadData(&module, image), CUDA_SUCCESS);
    assert_int_equal(held(), CONTEXT_MIB + MODULE_MIB);
    assert_int_equal(cuCtxDestroy_v2(first), CUDA_SUCCESS);
    assert_int_equal(referee(), 0);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"measured", "growth", "absent", "fixed", "none", "ignored"};
    const struct CMUnitTest contexts[] = {
        cmocka_unit_test(counts_contexts),
        cmocka_unit_test(counts_the_primary_context_once),
        cmocka_unit_test(refuses_a_context_over_the_cap),
    };
    const struct CMUnitTest measured[] = {
        cmocka_unit_test(refuses_the_primary_context_over_the_cap),
        cmocka_unit_test(counts_modules),
        cmocka_unit_test(counts_libraries),
        cmocka_unit_test(counts_heaps),
        cmocka_unit_test(finds_what_it_did_not_see),
    };
    const struct CMUnitTest ignored[] = {cmocka_unit_test(does_not_count_what_is_ignored)};
    if (argc < 2)
        return 2;
    while (way < IGNORED && strcmp(argv[1], names[way]) != 0)
        way++;
    if (way == IGNORED)
        return cmocka_run_group_tests(ignored, start, NULL);
    int failed = cmocka_run_group_tests(contexts, start, NULL);
    return way == MEASURED ? failed + cmocka_run_group_tests(measured, NULL, NULL) : failed;
}
