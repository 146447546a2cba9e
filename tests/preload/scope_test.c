/* scope_test.c -- names keep their meaning: what a program or a plugin would find without the shim
 * for names that are not the driver's, or that are its own, it finds with it. Linked to the driver,
 * so that link-time references are met too. argv[1]: bare, inert or hooked.
 */
#include "cmocka_all.h"
#include "cuda_abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CUresult cuInit(unsigned int flags);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
CUresult cuMemGetInfo_v2(size_t *free, size_t *total);
/* As a program with a trampoline of its own has it (exported by -rdynamic). */
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *prop, unsigned long long flags);

static bool hooked, bare;
static void *plugin;

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    (void)handle, (void)bytes, (void)prop, (void)flags;
    return (CUresult)4712;
}

static const char *home_of(const void *address)
{
    Dl_info info;
    if (!address || !dladdr(address, &info))
        return "nothing";
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

static const char *driver_or_shim(void) { return hooked ? "libgpushim.so" : "libcuda.so.1"; }

static void test_own_definitions(void **state)
{
    (void)state;
    assert_ptr_equal(dlsym(RTLD_DEFAULT, "cuMemCreate"), (void *)(uintptr_t)cuMemCreate);
    assert_ptr_equal(dlsym(dlopen(NULL, RTLD_NOW), "cuMemCreate"), (void *)(uintptr_t)cuMemCreate);
    void *in_plugin = dlsym(plugin, "cuMemAlloc_v2");
    assert_int_equal(((int (*)(void))(uintptr_t)in_plugin)(), 4711);
    /* past the program's own: the driver's, or the hook for it */
    assert_string_equal(home_of(dlsym(RTLD_NEXT, "cuMemCreate")), driver_or_shim());
}

static void test_global_driver(void **state)
{
    (void)state;
    static const char *const names[] = {"cuMemAlloc_v2", "cuMemFree_v2", "cuInit",
                                        "cuGetProcAddress_v2"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_string_equal(home_of(dlsym(RTLD_DEFAULT, names[i])), driver_or_shim());
        assert_string_equal(home_of(dlsym(RTLD_NEXT, names[i])), driver_or_shim());
    }
}

static void test_from_a_plugin(void **state)
{
    (void)state;
    void *(*next)(const char *) = (void *(*)(const char *))(uintptr_t)dlsym(plugin, "plugin_next");
    void *(*by_default)(const char *) =
        (void *(*)(const char *))(uintptr_t)dlsym(plugin, "plugin_default");
    assert_ptr_equal(by_default("strlen"), dlsym(RTLD_DEFAULT, "strlen"));
    assert_ptr_equal(by_default("only_here"), dlsym(plugin, "only_here")); /* its local scope */
    assert_null(dlsym(RTLD_DEFAULT, "only_here"));
    assert_null(next("only_here"));
    assert_string_equal(home_of(by_default("cuInit")), driver_or_shim());
}

static void test_dlerror(void **state)
{
    (void)state;
    dlerror();
    assert_non_null(dlsym(RTLD_DEFAULT, "cuInit"));
    assert_null(dlerror()); /* a success leaves no error behind */
    assert_null(dlsym(plugin, "cuMemAlloc"));
    assert_non_null(strstr(dlerror(), "cuMemAlloc"));
}

static void *first_call(void *result)
{
    *(CUresult *)result = cuInit(0);
    return NULL;
}

enum { THREADS = 16 };

/* Many threads with small stacks make the first call at once; all see the same view. */
static void test_first_calls_at_once(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    CUresult results[THREADS];
    pthread_attr_t small;
    int count = 0;
    CUuuid uuid;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], &small, first_call, &results[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(results[i], CUDA_SUCCESS);
    assert_int_equal(cuDeviceGetCount(&count), CUDA_SUCCESS);
    assert_int_equal(count, hooked ? 2 : 4);
    assert_int_equal(cuDeviceGetUuid_v2(&uuid, 0), CUDA_SUCCESS);
    assert_int_equal((unsigned char)uuid.bytes[0],
                     hooked ? 3 : 1); /* the simulated UUID begins with the index */
    assert_null(getenv("CUDA_VISIBLE_DEVICES"));
}

static void test_link_time_calls(void **state)
{
    (void)state;
    CUcontext context;
    CUdevice device;
    size_t free_bytes, total;
    assert_int_equal(cuDeviceGet(&device, 0), CUDA_SUCCESS);
    assert_int_equal(cuCtxCreate_v2(&context, 0, device), CUDA_SUCCESS);
    assert_int_equal(cuMemGetInfo_v2(&free_bytes, &total), CUDA_SUCCESS);
    assert_true(hooked ? total == (size_t)1 << 30 : total == (size_t)80 << 30);
}

int main(int argc, char **argv)
{
    hooked = argc > 1 && strcmp(argv[1], "hooked") == 0;
    bare = argc > 1 && strcmp(argv[1], "bare") == 0;
    plugin = argc > 2 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!plugin) {
        fprintf(stderr, "usage: scope_test bare|inert|hooked PLUGIN\n");
        return 2;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_definitions),     cmocka_unit_test(test_global_driver),
        cmocka_unit_test(test_from_a_plugin),       cmocka_unit_test(test_dlerror),
        cmocka_unit_test(test_first_calls_at_once), cmocka_unit_test(test_link_time_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
