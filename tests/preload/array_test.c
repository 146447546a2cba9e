/* array_test.c -- CUDA arrays under a cap of 64 MiB: what every kind takes, the edge, and all that
 * gives it back. The referee is the simulated driver's live bytes; what the shim says is held is
 * total - free.
 *
 *   array_test bare      without the shim: what the driver itself answers to odd arguments
 *   array_test told      the driver tells what arrays need: the books agree to the byte
 *   array_test computed  it does not: never less is held than lives
 *   array_test faults    the driver's calls fail one at a time
 */
#include "cmocka_all.h"
#include "cuda_abi.h"
#include "simcuda.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define CAP (64 * MIB)
#define FAULT ((CUresult)999)
#define UNTOUCHED ((void *)0x5a5a)

enum { SMALL = 512, LARGE = 2 << 20, FILLERS_MAX = 16, FAULT_CALLS = 24, TRIES_MAX = 9 };
enum { LAYERED = CUDA_ARRAY3D_LAYERED, CUBEMAP = CUDA_ARRAY3D_CUBEMAP };

static void *driver;
static bool bare, computed;
static CUcontext context;

#define DRIVER(name, ...) ((CUresult(*)(__VA_ARGS__))(uintptr_t)dlsym(driver, #name))
#define ok(call) assert_int_equal(call, CUDA_SUCCESS)

static uint64_t live(void)
{
    uint64_t (*referee)(int, int) =
        (uint64_t(*)(int, int))(uintptr_t)dlsym(driver, "simcuda_live_bytes");
    return referee(bare ? 1 : 3, SIMCUDA_THIS_PROCESS);
}

static CUresult get_info(size_t *free_bytes, size_t *total)
{
    return DRIVER(cuMemGetInfo_v2, size_t *, size_t *)(free_bytes, total);
}

static uint64_t held(void)
{
    size_t free_bytes = 0, total = 0;
    int tries = 0;
    while ((get_info(&free_bytes, &total) != CUDA_SUCCESS || total != CAP) && ++tries < TRIES_MAX)
        continue; /* a fault may strike here, too */
    assert_int_equal(total, CAP);
    return total - free_bytes;
}

static CUresult make_array(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    return DRIVER(cuArray3DCreate_v2, CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *)(array, shape);
}

static CUresult make_flat(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *shape)
{
    return DRIVER(cuArrayCreate_v2, CUarray *, const CUDA_ARRAY_DESCRIPTOR *)(array, shape);
}

static CUresult make_mipmap(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape,
                            unsigned int levels)
{
    return DRIVER(cuMipmappedArrayCreate, CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *,
                  unsigned int)(array, shape, levels);
}

static CUresult end_array(CUarray array) { return DRIVER(cuArrayDestroy, CUarray)(array); }

static CUresult end_mipmap(CUmipmappedArray array)
{
    return DRIVER(cuMipmappedArrayDestroy, CUmipmappedArray)(array);
}

/* One of either: levels 0 is an array. */
static CUresult make(void **made, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels)
{
    CUmipmappedArray mipmap = *made;
    CUarray array = *made;
    CUresult rc = levels ? make_mipmap(&mipmap, shape, levels) : make_array(&array, shape);
    *made = levels ? (void *)mipmap : (void *)array;
    return rc;
}

static CUresult end(void *made, unsigned int levels)
{
    return levels ? end_mipmap(made) : end_array(made);
}

static int start(void **state)
{
    (void)state;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    return driver ? 0 : -1;
}

static void fresh_context(void)
{
    ok(DRIVER(cuCtxCreate_v2, CUcontext *, unsigned int, CUdevice)(&context, 0, 0));
}

/* Linear memory of exactly so many bytes. */
struct filler {
    CUdeviceptr memory[FILLERS_MAX];
    int count;
};

static void fill(struct filler *filler, size_t bytes)
{
    filler->count = 0;
    while (bytes) {
        size_t chunk = bytes >= LARGE ? bytes / LARGE * LARGE : bytes;
        if (chunk < LARGE && chunk >= MIB)
            chunk = MIB - SMALL;
        assert_true(filler->count < FILLERS_MAX);
        CUresult rc = FAULT;
        while (rc == FAULT) /* a call that fails once is made again */
            rc =
                DRIVER(cuMemAlloc_v2, CUdeviceptr *, size_t)(&filler->memory[filler->count], chunk);
        ok(rc);
        filler->count++;
        bytes -= chunk;
    }
}

static void empty(struct filler *filler)
{
    while (filler->count)
        ok(DRIVER(cuMemFree_v2, CUdeviceptr)(filler->memory[--filler->count]));
}

/* Room for it and no more; then a granule less. */
static void check_edge(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels, size_t bytes)
{
    struct filler filler;
    void *made = UNTOUCHED;
    fill(&filler, CAP - bytes);
    ok(make(&made, shape, levels));
    assert_int_equal(held(), CAP);
    assert_true(live() <= CAP);
    ok(end(made, levels));
    empty(&filler);
    fill(&filler, CAP - bytes + SMALL);
    made = UNTOUCHED;
    assert_int_equal(make(&made, shape, levels), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ptr_equal(made, UNTOUCHED);
    assert_int_equal(live(), CAP - bytes + SMALL);
    assert_int_equal(held(), live());
    empty(&filler);
    ok(make(&made, shape, levels));
    ok(end(made, levels));
    assert_int_equal(held(), 0);
}

static void check_kind(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels)
{
    void *made = UNTOUCHED;
    ok(make(&made, shape, levels));
    const uint64_t bytes = held();
    if (bytes < live() || (!computed && bytes != live()) || bytes == 0)
        fail_msg("format %#x, %zu x %zu x %zu, flags %#x, %u levels: %llu held, %llu live",
                 (unsigned int)shape->Format, shape->Width, shape->Height, shape->Depth,
                 shape->Flags, levels, (unsigned long long)bytes, (unsigned long long)live());
    ok(end(made, levels));
    assert_int_equal(live(), 0);
    assert_int_equal(held(), 0);
}

static const CUDA_ARRAY3D_DESCRIPTOR kinds[] = {
    {1000, 0, 0, CU_AD_FORMAT_FLOAT, 2, 0},
    {1, 1, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0},
    {513, 129, 0, CU_AD_FORMAT_FLOAT, 4, 0},
    {100, 17, 33, CU_AD_FORMAT_HALF, 4, 0},
    {1000, 0, 7, CU_AD_FORMAT_FLOAT, 1, LAYERED},
    {130, 70, 5, CU_AD_FORMAT_FLOAT, 1, LAYERED},
    {100, 100, 6, CU_AD_FORMAT_SIGNED_INT16, 2, CUBEMAP},
    {100, 100, 12, CU_AD_FORMAT_UNSIGNED_INT8, 4, CUBEMAP | LAYERED},
    {700, 600, 0, CU_AD_FORMAT_FLOAT, 4, 0}, /* more than 1 MiB */
};

static void test_every_kind(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (unsigned int levels = 0; levels <= 9; levels += 3)
            check_kind(&kinds[i], levels);
    }
}

static void test_the_edge(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (unsigned int levels = 0; levels <= 4; levels += 4) {
            void *made = NULL;
            ok(make(&made, &kinds[i], levels));
            const size_t bytes = held();
            ok(end(made, levels));
            check_edge(&kinds[i], levels, bytes);
        }
    }
}

/* Each with the number of channels that it has. */
static void check_format(CUarray_format format)
{
    bool is_known = false;
    for (unsigned int channels = 1; channels <= 4; channels++) {
        CUDA_ARRAY3D_DESCRIPTOR shape = {301, 77, 0, format, channels, 0};
        CUarray array;
        if (make_array(&array, &shape) != CUDA_SUCCESS)
            continue;
        is_known = true;
        ok(end_array(array));
        check_kind(&shape, 0);
        check_kind(&shape, 5);
        shape = (CUDA_ARRAY3D_DESCRIPTOR){301, 77, 4, format, channels, LAYERED};
        check_kind(&shape, 0);
        check_kind(&shape, 3);
        shape.Flags = 0;
        check_kind(&shape, 2);
    }
    assert_true(is_known);
}

static void test_every_format(void **state)
{
    (void)state;
#define FORMAT(since, name, value, planes) check_format(name);
#include "array_formats.def"
#undef FORMAT
}

static void test_the_flat_call(void **state)
{
    (void)state;
    const CUDA_ARRAY_DESCRIPTOR shape = {1000, 100, CU_AD_FORMAT_FLOAT, 1};
    const CUDA_ARRAY_DESCRIPTOR huge = {65536, 32768, CU_AD_FORMAT_FLOAT, 4}; /* 32 GiB */
    CUarray array = UNTOUCHED;
    assert_int_equal(make_flat(&array, &huge), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ptr_equal(array, UNTOUCHED);
    ok(make_flat(&array, &shape));
    assert_int_equal(live(), 4096 * 100);
    assert_true(computed ? held() >= live() : held() == live());
    ok(end_array(array));
    assert_int_equal(held(), 0);
}

/* Whatever is alive in a context goes with it. */
static void test_the_end_of_a_context(void **state)
{
    (void)state;
    const CUDA_ARRAY3D_DESCRIPTOR shape = {1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, 0}; /* 16 MiB */
    CUmipmappedArray mipmap;
    CUarray array;
    CUcontext primary;
    ok(make_array(&array, &shape));
    ok(make_mipmap(&mipmap, &shape, 3));
    assert_true(live() >= 37 * MIB);
    ok(DRIVER(cuCtxDestroy_v2, CUcontext)(context));
    assert_int_equal(live(), 0);
    fresh_context();
    assert_int_equal(held(), 0);
    ok(DRIVER(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)(&primary, 0));
    ok(DRIVER(cuCtxSetCurrent, CUcontext)(primary));
    ok(make_array(&array, &shape));
    ok(DRIVER(cuDevicePrimaryCtxReset_v2, CUdevice)(0));
    ok(DRIVER(cuCtxSetCurrent, CUcontext)(context));
    assert_int_equal(live(), 0);
    assert_int_equal(held(), 0);
}

static void test_levels_are_not_ours(void **state)
{
    (void)state;
    const CUDA_ARRAY3D_DESCRIPTOR shape = {256, 256, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    CUmipmappedArray mipmap;
    CUarray level;
    ok(make_mipmap(&mipmap, &shape, 4));
    const uint64_t bytes = held();
    ok(DRIVER(cuMipmappedArrayGetLevel, CUarray *, CUmipmappedArray, unsigned int)(&level, mipmap,
                                                                                   2));
    assert_int_equal(held(), bytes);
    assert_int_equal(end_array(level), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(held(), bytes);
    ok(end_mipmap(mipmap));
    assert_int_equal(held(), 0);
}

/* A capture of the caller's is not broken by what the shim asks, only by the call itself. */
static void test_beside_a_capture(void **state)
{
    (void)state;
    const CUDA_ARRAY3D_DESCRIPTOR shape = {256, 256, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUstream stream;
    CUarray array;
    CUgraph graph;
    ok(DRIVER(cuStreamCreate, CUstream *, unsigned int)(&stream, 0));
    ok(DRIVER(cuStreamBeginCapture_v2, CUstream,
              CUstreamCaptureMode)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ok(DRIVER(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode *)(&mode));
    ok(make_array(&array, &shape));
    ok(end_array(array));
    ok(DRIVER(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode *)(&mode));
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_RELAXED); /* as it was left */
    ok(DRIVER(cuStreamEndCapture, CUstream, CUgraph *)(stream, &graph));
    ok(DRIVER(cuGraphDestroy, CUgraph)(graph));
    ok(DRIVER(cuStreamDestroy_v2, CUstream)(stream));
}

/* The driver's own answers: the same without the shim and with it. */
static void test_odd_arguments(void **state)
{
    (void)state;
    CUDA_ARRAY3D_DESCRIPTOR shape = {64, 64, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    const CUDA_ARRAY_DESCRIPTOR flat = {64, 64, CU_AD_FORMAT_FLOAT, 1};
    void *made = UNTOUCHED;
    CUarray array = UNTOUCHED;
    for (unsigned int levels = 0; levels <= 2; levels += 2) {
        assert_int_equal(make(&made, NULL, levels), CUDA_ERROR_INVALID_VALUE);
        assert_int_equal(end(NULL, levels), CUDA_ERROR_INVALID_HANDLE);
        assert_int_equal(end(UNTOUCHED, levels), CUDA_ERROR_INVALID_HANDLE);
        shape.NumChannels = 3;
        assert_int_equal(make(&made, &shape, levels), CUDA_ERROR_INVALID_VALUE);
        shape.NumChannels = 1, shape.Width = 0;
        assert_int_equal(make(&made, &shape, levels), CUDA_ERROR_INVALID_VALUE);
        shape.Width = 64, shape.Format = 0;
        assert_int_equal(make(&made, &shape, levels), CUDA_ERROR_INVALID_VALUE);
        shape.Format = CU_AD_FORMAT_FLOAT;
        assert_ptr_equal(made, UNTOUCHED);
        ok(make(&made, &shape, levels));
        ok(end(made, levels));
        assert_int_equal(end(made, levels), CUDA_ERROR_INVALID_HANDLE);
        made = UNTOUCHED;
    }
    assert_int_equal(make_array(NULL, &shape), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(make_mipmap(NULL, &shape, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(make_flat(NULL, &flat), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(make_flat(&array, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(DRIVER(cuArrayCreate, CUarray *, const CUDA_ARRAY_DESCRIPTOR_v1 *)(NULL, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(DRIVER(cuArray3DCreate, CUarray *, const CUDA_ARRAY3D_DESCRIPTOR_v1 *)(
                         &array, &(CUDA_ARRAY3D_DESCRIPTOR_v1){8, 8, 8, 0, 1, 0}),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(
        DRIVER(cuMemMapArrayAsync, CUarrayMapInfo *, unsigned int, CUstream)(NULL, 1, NULL),
        CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(
        DRIVER(cuMemMapArrayAsync_ptsz, CUarrayMapInfo *, unsigned int, CUstream)(NULL, 0, NULL),
        CUDA_ERROR_INVALID_VALUE);
    assert_ptr_equal(array, UNTOUCHED);
    assert_int_equal(live(), 0);
}

/* Runs first. */
static void test_before_anything(void **state)
{
    (void)state;
    const CUDA_ARRAY3D_DESCRIPTOR shape = {64, 64, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    CUDA_ARRAY3D_DESCRIPTOR sparse = shape;
    CUmipmappedArray mipmap = UNTOUCHED;
    CUarray array = UNTOUCHED;
    sparse.Flags = CUDA_ARRAY3D_SPARSE;
    for (int initialised = 0; initialised < 2; initialised++) {
        const CUresult right =
            initialised ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_NOT_INITIALIZED;
        assert_int_equal(make_array(&array, &shape), right);
        assert_int_equal(make_array(&array, &sparse), right);
        assert_int_equal(make_mipmap(&mipmap, &shape, 2), right);
        assert_int_equal(end_array(array), right);
        assert_int_equal(end_mipmap(mipmap), right);
        ok(DRIVER(cuInit, unsigned int)(0));
    }
    assert_ptr_equal(array, UNTOUCHED);
    assert_ptr_equal(mipmap, UNTOUCHED);
    fresh_context();
}

/* Every step that fails must fail by the fault alone, and works when it is made again. */
static bool faulty(CUresult rc)
{
    assert_true(rc == CUDA_SUCCESS || rc == FAULT);
    if (rc == FAULT)
        assert_true(live() <= held());
    return rc == FAULT;
}

static void one_of_each(const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    const CUDA_ARRAY_DESCRIPTOR flat = {shape->Width, shape->Height, shape->Format, 4};
    void *made = NULL;
    for (unsigned int levels = 0; levels <= 2; levels += 2) {
        while (faulty(make(&made, shape, levels)))
            assert_int_equal(live(), 0);
        assert_true(held() >= live());
        while (faulty(end(made, levels)))
            assert_true(shape->Flags || live() > 0);
        assert_int_equal(live(), 0);
        assert_int_equal(held(), 0);
    }
    CUarray array = NULL;
    while (faulty(make_flat(&array, &flat)))
        assert_int_equal(live(), 0);
    while (faulty(end_array(array)))
        assert_true(live() > 0);
    assert_int_equal(held(), 0);
}

static void with_a_fault(void)
{
    CUDA_ARRAY3D_DESCRIPTOR shape = {256, 256, 0, CU_AD_FORMAT_FLOAT, 4, 0};
    void *made = NULL;
    struct filler filler;
    ok(DRIVER(cuInit, unsigned int)(0));
    fresh_context();
    one_of_each(&shape);
    shape.Flags = CUDA_ARRAY3D_SPARSE;
    one_of_each(&shape);
    shape.Flags = CUDA_ARRAY3D_DEFERRED_MAPPING;
    one_of_each(&shape);
    shape.Flags = 0;
    while (faulty(make(&made, &shape, 0)))
        continue;
    while (faulty(DRIVER(cuCtxDestroy_v2, CUcontext)(context)))
        assert_true(live() > 0 && held() >= live());
    fresh_context();
    assert_int_equal(held(), 0);
    fill(&filler, CAP);
    assert_int_equal(live(), CAP);
}

static void test_faults(void **state)
{
    (void)state;
    static const char *const calls[] = {"cuCtxGetDevice",
                                        "cuCtxGetCurrent",
                                        "cuThreadExchangeStreamCaptureMode",
                                        "cuArray3DCreate_v2",
                                        "cuArrayCreate_v2",
                                        "cuArrayDestroy",
                                        "cuArrayGetMemoryRequirements",
                                        "cuArrayGetSparseProperties",
                                        "cuMipmappedArrayCreate",
                                        "cuMipmappedArrayDestroy",
                                        "cuMipmappedArrayGetMemoryRequirements",
                                        "cuMipmappedArrayGetSparseProperties",
                                        "cuCtxDestroy_v2"};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        for (int n = 1; n <= FAULT_CALLS; n++) {
            char fault[64];
            int status;
            snprintf(fault, sizeof fault, "%s:%d:%d", calls[i], n, (int)FAULT);
            const pid_t child = fork();
            if (child == 0) {
                setenv("SIMCUDA_FAIL", fault, 1);
                start(NULL);
                with_a_fault();
                _exit(0);
            }
            assert_int_equal(waitpid(child, &status, 0), child);
            if (status != 0)
                fail_msg("with %s: %#x", fault, (unsigned int)status);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(test_before_anything),
        cmocka_unit_test(test_odd_arguments),
        cmocka_unit_test(test_beside_a_capture),
    };
    const struct CMUnitTest counted[] = {
        cmocka_unit_test(test_before_anything),      cmocka_unit_test(test_odd_arguments),
        cmocka_unit_test(test_beside_a_capture),     cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_every_format),         cmocka_unit_test(test_the_edge),
        cmocka_unit_test(test_the_flat_call),        cmocka_unit_test(test_levels_are_not_ours),
        cmocka_unit_test(test_the_end_of_a_context),
    };
    const struct CMUnitTest faults[] = {cmocka_unit_test(test_faults)};
    const char *mode = argc > 1 ? argv[1] : "bare";
    bare = strcmp(mode, "bare") == 0;
    computed = strcmp(mode, "computed") == 0;
    if (strcmp(mode, "faults") == 0)
        return cmocka_run_group_tests(faults, NULL, NULL);
    return bare ? cmocka_run_group_tests(plain, start, NULL)
                : cmocka_run_group_tests(counted, start, NULL);
}
