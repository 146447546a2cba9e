/* trouble_test.c -- what once broke, or hung: each case as the program that would meet it. Runs
 * with and without the shim, and must come to the same end; argv[1] is the plugin.
 */
#include "cmocka_all.h"
#include "cuda_abi.h"
#include "simcuda.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

CUresult cuInit(unsigned int flags); /* at link time */

#define DRIVER(name, ...) ((CUresult(*)(__VA_ARGS__))(uintptr_t)dlsym(driver, #name))
enum { ROUNDS = 300, MIB = 1 << 20, TIME_LIMIT = 30 };

static void *driver;
static const char *plugin;

static void *open_plugin(void *result)
{
    *(void **)result = dlopen(plugin, RTLD_NOW);
    return NULL;
}

/* The first call of the process while another thread is in dlopen, whose constructor asks for a
 * driver's function: neither may wait for the other. Runs first. */
static void test_first_call_beside_dlopen(void **state)
{
    (void)state;
    pthread_t thread;
    void *opened = NULL;
    alarm(TIME_LIMIT);
    assert_int_equal(pthread_create(&thread, NULL, open_plugin, &opened), 0);
    usleep(100000);
    assert_int_equal(cuInit(0), CUDA_SUCCESS);
    pthread_join(thread, NULL);
    assert_non_null(opened);
    alarm(0);
}

static atomic_bool stop;

static void *open_and_close(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        void *library = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL);
        if (library)
            dlclose(library);
    }
    return NULL;
}

/* Look-ups that search, while objects come and go. */
static void test_look_up_beside_dlclose(void **state)
{
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, open_and_close, NULL), 0);
    for (int i = 0; i < 20000; i++) {
        assert_non_null(dlsym(RTLD_NEXT, "cuInit"));
        assert_non_null(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

/* Without a context the driver refuses and never looks at the pointer; nor may anyone else. */
static void test_wild_out_parameter(void **state)
{
    (void)state;
    CUdeviceptr *wild = (CUdeviceptr *)(uintptr_t)8;
    assert_int_equal(DRIVER(cuMemAlloc_v2, CUdeviceptr *, size_t)(wild, 64),
                     CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(DRIVER(cuMemAllocManaged, CUdeviceptr *, size_t, unsigned int)(wild, 64, 1),
                     CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(DRIVER(cuCtxCreate_v2, void *, unsigned int, CUdevice)(wild, 0, 99),
                     CUDA_ERROR_INVALID_DEVICE);
}

static uint64_t alive(void)
{
    uint64_t (*live)(int, int) =
        (uint64_t(*)(int, int))(uintptr_t)dlsym(driver, "simcuda_live_bytes");
    uint64_t bytes = 0;
    for (int gpu = 0; gpu < 4; gpu++)
        bytes += live(gpu, SIMCUDA_THIS_PROCESS);
    return bytes;
}

static size_t free_memory(void)
{
    size_t free_bytes = 0, total;
    assert_int_equal(DRIVER(cuMemGetInfo_v2, size_t *, size_t *)(&free_bytes, &total),
                     CUDA_SUCCESS);
    return free_bytes;
}

static CUcontext retain(void)
{
    CUcontext context = NULL;
    if (DRIVER(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)(&context, 0) != CUDA_SUCCESS)
        abort();
    DRIVER(cuCtxSetCurrent, CUcontext)(context);
    return context;
}

/* A reset takes stream-ordered memory with it; its address comes again, for memory of another kind.
 */
static void test_reset_with_stream_ordered_memory(void **state)
{
    (void)state;
    CUdeviceptr first, second;
    retain();
    const size_t before = free_memory();
    for (int i = 0; i < 20; i++) {
        assert_int_equal(
            DRIVER(cuMemAllocAsync, CUdeviceptr *, size_t, CUstream)(&first, 2 * MIB, NULL),
            CUDA_SUCCESS);
        assert_int_equal(DRIVER(cuDevicePrimaryCtxReset_v2, CUdevice)(0), CUDA_SUCCESS);
        retain();
        assert_int_equal(DRIVER(cuMemAlloc_v2, CUdeviceptr *, size_t)(&second, 2 * MIB),
                         CUDA_SUCCESS);
        assert_int_equal(DRIVER(cuMemFree_v2, CUdeviceptr)(second), CUDA_SUCCESS);
        assert_int_equal(free_memory(), before);
    }
    assert_int_equal(alive(), 0);
    assert_int_equal(DRIVER(cuDevicePrimaryCtxRelease_v2, CUdevice)(0), CUDA_SUCCESS);
}

static void *come_and_go(void *unused)
{
    CUdeviceptr pointer;
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        retain();
        DRIVER(cuMemAlloc_v2, CUdeviceptr *, size_t)(&pointer, MIB);
        DRIVER(cuDevicePrimaryCtxRelease_v2, CUdevice)
        (0); /* with the memory in it, if it is the last */
    }
    return NULL;
}

/* Threads retain, allocate and release one primary context side by side: in the end nothing is
 * held. */
static void test_primary_context_of_many(void **state)
{
    (void)state;
    pthread_t threads[3];
    retain();
    const size_t before = free_memory();
    DRIVER(cuDevicePrimaryCtxRelease_v2, CUdevice)(0);
    alarm(TIME_LIMIT);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    alarm(0);
    retain();
    assert_int_equal(free_memory(), before);
    assert_int_equal(alive(), 0);
    DRIVER(cuDevicePrimaryCtxRelease_v2, CUdevice)(0);
}

enum { TRIES = 5000 };

static void *destroy_the_default_pool(void *unused)
{
    CUmemoryPool pool;
    (void)unused;
    DRIVER(cuDeviceGetDefaultMemPool, CUmemoryPool *, CUdevice)(&pool, 0);
    while (!atomic_load(&stop))
        DRIVER(cuMemPoolDestroy, CUmemoryPool)(pool);
    return NULL;
}

static void *destroy_the_primary_context(void *unused)
{
    CUcontext context = retain();
    (void)unused;
    while (!atomic_load(&stop))
        DRIVER(cuCtxDestroy_v2, CUcontext)(context);
    DRIVER(cuDevicePrimaryCtxRelease_v2, CUdevice)(0);
    return NULL;
}

/* One thread tries to end what the driver does not let it end; another allocates there meanwhile.
 */
static void use_beside(void *(*other)(void *))
{
    pthread_t thread;
    CUdeviceptr linear, pooled;
    CUmemoryPool pool;
    CUarray array;
    const CUDA_ARRAY_DESCRIPTOR shape = {512, 512, CU_AD_FORMAT_FLOAT, 1};
    retain();
    DRIVER(cuDeviceGetDefaultMemPool, CUmemoryPool *, CUdevice)(&pool, 0);
    const size_t before = free_memory();
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, other, NULL), 0);
    for (int i = 0; i < TRIES; i++) {
        assert_int_equal(DRIVER(cuMemAlloc_v2, CUdeviceptr *, size_t)(&linear, 2 * MIB), 0);
        assert_int_equal(DRIVER(cuMemAllocAsync, CUdeviceptr *, size_t, CUstream)(&pooled, 1, NULL),
                         0);
        assert_int_equal(
            DRIVER(cuArrayCreate_v2, CUarray *, const CUDA_ARRAY_DESCRIPTOR *)(&array, &shape), 0);
        assert_int_equal(DRIVER(cuArrayDestroy, CUarray)(array), 0);
        assert_int_equal(DRIVER(cuMemFree_v2, CUdeviceptr)(linear), 0);
        assert_int_equal(DRIVER(cuMemFreeAsync, CUdeviceptr, CUstream)(pooled, NULL), 0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(DRIVER(cuMemAllocAsync, CUdeviceptr *, size_t, CUstream)(&pooled, 1, NULL), 0);
    assert_int_equal(before - free_memory(), alive());
    assert_int_equal(DRIVER(cuMemFreeAsync, CUdeviceptr, CUstream)(pooled, NULL), 0);
    assert_int_equal(DRIVER(cuMemPoolTrimTo, CUmemoryPool, size_t)(pool, 0), 0);
    assert_int_equal(free_memory(), before);
    DRIVER(cuDevicePrimaryCtxRelease_v2, CUdevice)(0);
}

static void test_ends_that_fail(void **state)
{
    (void)state;
    alarm(2 * TIME_LIMIT);
    use_beside(destroy_the_default_pool);
    use_beside(destroy_the_primary_context);
    alarm(0);
}

/* Standard error is a pipe that is full and that nobody reads: a refusal is answered all the same.
 */
static void test_full_standard_error(void **state)
{
    (void)state;
    static char filling[1 << 16];
    CUdevice device;
    int ends[2], saved = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], filling, sizeof filling) > 0)
        continue;
    fcntl(ends[1], F_SETFL, 0);
    dup2(ends[1], STDERR_FILENO);
    alarm(TIME_LIMIT);
    CUresult rc = DRIVER(cuDeviceGet, CUdevice *, int)(&device, 77);
    alarm(0);
    dup2(saved, STDERR_FILENO);
    assert_int_equal(rc, CUDA_ERROR_INVALID_DEVICE);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_call_beside_dlopen),
        cmocka_unit_test(test_look_up_beside_dlclose),
        cmocka_unit_test(test_wild_out_parameter),
        cmocka_unit_test(test_reset_with_stream_ordered_memory),
        cmocka_unit_test(test_primary_context_of_many),
        cmocka_unit_test(test_ends_that_fail),
        cmocka_unit_test(test_full_standard_error),
    };
    plugin = argc > 1 ? argv[1] : "";
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    return driver ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
