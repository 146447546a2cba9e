/* nvml_test.c -- NVML under a policy: which devices can be had, by which name and number, with
 * which figures. Modes: bare, and with `devices = 3,1; memory = 1GiB; memory.1 = 25%`, hooked (nvml
 * = follow, the default) or physical.
 */
#include "cmocka_all.h"
#include "cuda_abi.h"
#include "nvml_abi.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#define GIB ((unsigned long long)1 << 30)
#define CONTEXT ((uint64_t)300 << 20) /* SIMCUDA_CONTEXT by default */
#define NVML(name, ...) ((nvmlReturn_t(*)(__VA_ARGS__))(uintptr_t)dlsym(nvml, #name))
#define DRIVER(name, ...) ((CUresult(*)(__VA_ARGS__))(uintptr_t)dlsym(driver, #name))

static bool hooked;
static void *nvml, *driver;
static const char uuid_of_gpu_0[] = "GPU-0051c0da-51c0-4da0-8000-000000000000";
static const char uuid_of_gpu_1[] = "GPU-0151c0da-51c0-4da0-8000-000000000001";

static void test_before_init(void **state)
{
    (void)state;
    unsigned int count;
    nvmlDevice_t device;
    assert_int_equal(NVML(nvmlDeviceGetCount_v2, unsigned int *)(&count), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(NVML(nvmlDeviceGetHandleByIndex_v2, unsigned int, nvmlDevice_t *)(0, &device),
                     NVML_ERROR_UNINITIALIZED);
    assert_int_equal(
        NVML(nvmlDeviceGetHandleByUUID, const char *, nvmlDevice_t *)(uuid_of_gpu_1, &device),
        NVML_ERROR_UNINITIALIZED);
}

/* The shim's own questions leave the program's count of inits as it is. */
static void test_init_and_shutdown(void **state)
{
    (void)state;
    unsigned int count;
    assert_int_equal(NVML(nvmlInit_v2, void)(), NVML_SUCCESS);
    assert_int_equal(NVML(nvmlDeviceGetCount_v2, unsigned int *)(&count), NVML_SUCCESS);
    assert_int_equal(NVML(nvmlShutdown, void)(), NVML_SUCCESS);
    assert_int_equal(NVML(nvmlDeviceGetCount_v2, unsigned int *)(&count), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(NVML(nvmlShutdown, void)(), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(NVML(nvmlInit_v2, void)(), NVML_SUCCESS);
}

static nvmlDevice_t at(unsigned int index)
{
    nvmlDevice_t device = NULL;
    assert_int_equal(
        NVML(nvmlDeviceGetHandleByIndex_v2, unsigned int, nvmlDevice_t *)(index, &device),
        NVML_SUCCESS);
    return device;
}

static void test_indices(void **state)
{
    (void)state;
    static const unsigned int physical[] = {0, 1, 2, 3}, granted[] = {3, 1};
    const unsigned int *right = hooked ? granted : physical;
    const unsigned int right_count = hooked ? 2 : 4;
    unsigned int count = 0, index, minor;
    nvmlDevice_t device;
    assert_int_equal(NVML(nvmlDeviceGetCount_v2, unsigned int *)(&count), NVML_SUCCESS);
    assert_int_equal(count, right_count);
    assert_int_equal(NVML(nvmlDeviceGetCount, unsigned int *)(&count), NVML_SUCCESS);
    assert_int_equal(count, right_count);
    for (unsigned int i = 0; i < count; i++) {
        assert_int_equal(NVML(nvmlDeviceGetIndex, nvmlDevice_t, unsigned int *)(at(i), &index),
                         NVML_SUCCESS);
        assert_int_equal(index, i);
        assert_int_equal(
            NVML(nvmlDeviceGetMinorNumber, nvmlDevice_t, unsigned int *)(at(i), &minor),
            NVML_SUCCESS);
        assert_int_equal(minor, right[i]); /* what it is underneath stays true */
        assert_int_equal(NVML(nvmlDeviceGetHandleByIndex, unsigned int, nvmlDevice_t *)(i, &device),
                         NVML_SUCCESS);
        assert_ptr_equal(device, at(i));
    }
    assert_int_equal(
        NVML(nvmlDeviceGetHandleByIndex_v2, unsigned int, nvmlDevice_t *)(count, &device),
        NVML_ERROR_INVALID_ARGUMENT);
}

static void test_names(void **state)
{
    (void)state;
    const nvmlReturn_t outside = hooked ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
    nvmlDevice_t device;
    assert_int_equal(
        NVML(nvmlDeviceGetHandleByUUID, const char *, nvmlDevice_t *)(uuid_of_gpu_1, &device),
        NVML_SUCCESS);
    assert_ptr_equal(device, at(1));
    assert_int_equal(
        NVML(nvmlDeviceGetHandleByUUID, const char *, nvmlDevice_t *)(uuid_of_gpu_0, &device),
        outside);
    assert_int_equal(NVML(nvmlDeviceGetHandleByPciBusId_v2, const char *,
                          nvmlDevice_t *)("00000000:06:00.0", &device),
                     NVML_SUCCESS);
    assert_int_equal(NVML(nvmlDeviceGetHandleByPciBusId_v2, const char *,
                          nvmlDevice_t *)("00000000:04:00.0", &device),
                     outside);
    assert_int_equal(NVML(nvmlDeviceGetHandleByPciBusId, const char *,
                          nvmlDevice_t *)("00000000:08:00.0", &device),
                     outside);
    assert_int_equal(
        NVML(nvmlDeviceGetHandleBySerial, const char *, nvmlDevice_t *)("51c0da0000001", &device),
        NVML_SUCCESS);
    assert_int_equal(
        NVML(nvmlDeviceGetHandleBySerial, const char *, nvmlDevice_t *)("51c0da0000002", &device),
        outside);
    assert_int_not_equal(
        NVML(nvmlDeviceGetHandleByUUID, const char *, nvmlDevice_t *)("GPU-nonsense", &device),
        NVML_SUCCESS);
}

/* GPU 3 has 80 GiB, capped at 1 GiB; GPU 1 has 80 GiB too, of which 25% are 20 GiB. */
static void test_memory(void **state)
{
    (void)state;
    nvmlMemory_t memory;
    nvmlMemory_v2_t memory_2 = {.version = (unsigned int)(sizeof memory_2 | 2 << 24)};
    assert_int_equal(NVML(nvmlDeviceGetMemoryInfo, nvmlDevice_t, nvmlMemory_t *)(at(1), &memory),
                     NVML_SUCCESS);
    assert_int_equal(memory.total, hooked ? 20 * GIB : 80 * GIB);
    assert_int_equal(memory.used, memory.total - memory.free);
    assert_int_equal(
        NVML(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t, nvmlMemory_v2_t *)(at(1), &memory_2),
        NVML_SUCCESS);
    assert_int_equal(memory_2.total, memory.total);
    assert_int_equal(memory_2.used + memory_2.free + memory_2.reserved, memory_2.total);
    memory_2.version = 7; /* NVML's own word about a version that it does not know */
    assert_int_not_equal(
        NVML(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t, nvmlMemory_v2_t *)(at(1), &memory_2),
        NVML_SUCCESS);
}

/* What CUDA allocates, and its context, shows in NVML's figures, on the same GPU. */
static void test_memory_in_use(void **state)
{
    (void)state;
    nvmlMemory_t memory;
    CUcontext context;
    CUdeviceptr pointer;
    char id[32];
    if (!hooked)
        skip();
    assert_int_equal(DRIVER(cuInit, unsigned int)(0), CUDA_SUCCESS);
    assert_int_equal(DRIVER(cuDeviceGetPCIBusId, char *, int, CUdevice)(id, (int)sizeof id, 0),
                     CUDA_SUCCESS);
    assert_int_equal(DRIVER(cuCtxCreate_v2, CUcontext *, unsigned int, CUdevice)(&context, 0, 0),
                     CUDA_SUCCESS);
    assert_int_equal(DRIVER(cuMemAlloc_v2, CUdeviceptr *, size_t)(&pointer, GIB / 4), CUDA_SUCCESS);
    assert_int_equal(NVML(nvmlDeviceGetMemoryInfo, nvmlDevice_t, nvmlMemory_t *)(at(0), &memory),
                     NVML_SUCCESS);
    assert_int_equal(memory.total, GIB);
    assert_int_equal(memory.used, GIB / 4 + CONTEXT);
    assert_int_equal(NVML(nvmlDeviceGetMemoryInfo, nvmlDevice_t, nvmlMemory_t *)(at(1), &memory),
                     NVML_SUCCESS);
    assert_int_equal(memory.used, 0);
}

static void test_lists_keep_their_contract(void **state)
{
    (void)state;
    enum { ANY_LEVEL = 50 }; /* NVML_TOPOLOGY_SYSTEM: every other GPU of the machine */
    nvmlDevice_t devices[8];
    unsigned int count = 0;
    nvmlReturn_t (*nearest)(nvmlDevice_t, nvmlGpuTopologyLevel_t, unsigned int *, nvmlDevice_t *) =
        NVML(nvmlDeviceGetTopologyNearestGpus, nvmlDevice_t, nvmlGpuTopologyLevel_t, unsigned int *,
             nvmlDevice_t *);
    nvmlReturn_t rc = nearest(at(0), ANY_LEVEL, &count, NULL);
    assert_int_equal(rc, NVML_SUCCESS);
    assert_true(count <= (hooked ? 1 : 3));
    unsigned int again = count;
    if (count) {
        assert_int_equal(nearest(at(0), ANY_LEVEL, &again, devices), NVML_SUCCESS);
        assert_int_equal(again, count);
    }
}

int main(int argc, char **argv)
{
    hooked = argc > 1 && strcmp(argv[1], "hooked") == 0;
    nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!nvml || !driver)
        return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_init),
        cmocka_unit_test(test_init_and_shutdown),
        cmocka_unit_test(test_indices),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_in_use),
        cmocka_unit_test(test_lists_keep_their_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
