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
#include <unistd.h>

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

/* GPU 3 has 80 GiB for CUDA and 81 for NVML, capped at 1 GiB; GPU 1 likewise, capped at 25%. CUDA
 * has not been initialised yet. */
static void test_memory(void **state)
{
    (void)state;
    nvmlMemory_t memory;
    nvmlMemory_v2_t memory_2 = {.version = (unsigned int)(sizeof memory_2 | 2 << 24)};
    assert_int_equal(NVML(nvmlDeviceGetMemoryInfo, nvmlDevice_t, nvmlMemory_t *)(at(1), &memory),
                     NVML_SUCCESS);
    assert_int_equal(memory.total, hooked ? 81 * GIB / 4 : 81 * GIB);
    if (hooked)
        assert_int_equal(memory.free, memory.total);
    assert_int_equal(memory.used, memory.total - memory.free);
    assert_int_equal(
        NVML(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t, nvmlMemory_v2_t *)(at(1), &memory_2),
        NVML_SUCCESS);
    assert_int_equal(memory_2.total, memory.total);
    assert_int_equal(memory_2.used + memory_2.free + memory_2.reserved, memory_2.total);
    assert_int_equal(memory_2.reserved, hooked ? 0 : GIB);
    assert_int_equal(NVML(nvmlDeviceGetMemoryInfo, nvmlDevice_t, nvmlMemory_t *)(at(0), &memory),
                     NVML_SUCCESS);
    assert_int_equal(memory.total, hooked ? GIB : 25 * GIB);
    memory_2.version = 7; /* NVML's own word about a version that it does not know */
    assert_int_not_equal(
        NVML(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t, nvmlMemory_v2_t *)(at(1), &memory_2),
        NVML_SUCCESS);
}

/* The driver keeps 1 GiB of each card, which NVML's total has and CUDA's has not: once CUDA runs,
 * the two agree on what a share of the card is. */
static void test_one_total(void **state)
{
    (void)state;
    nvmlMemory_t memory;
    size_t total, free_bytes;
    CUcontext context;
    if (!hooked)
        skip();
    assert_int_equal(DRIVER(cuDeviceTotalMem_v2, size_t *, CUdevice)(&total, 1), CUDA_SUCCESS);
    assert_int_equal(DRIVER(cuCtxCreate_v2, CUcontext *, unsigned int, CUdevice)(&context, 0, 1),
                     CUDA_SUCCESS);
    assert_int_equal(DRIVER(cuMemGetInfo_v2, size_t *, size_t *)(&free_bytes, &total),
                     CUDA_SUCCESS);
    assert_int_equal(total, 20 * GIB); /* a quarter of 80 GiB */
    assert_int_equal(NVML(nvmlDeviceGetMemoryInfo, nvmlDevice_t, nvmlMemory_t *)(at(1), &memory),
                     NVML_SUCCESS);
    assert_int_equal(memory.total, total);
    assert_int_equal(memory.free, free_bytes);
    assert_int_equal(DRIVER(cuCtxDestroy_v2, CUcontext)(context), CUDA_SUCCESS);
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

/* Lists of devices: without room the number, with too little room what NVML answers then. */
static void test_lists_of_devices(void **state)
{
    (void)state;
    enum { HOSTBRIDGE = 30 }; /* on the simulated machine every other GPU */
    const unsigned int all = hooked ? 2 : 4;
    nvmlDevice_t devices[8] = {NULL};
    nvmlUnit_t unit;
    unsigned int count = 0;
    nvmlReturn_t (*nearest)(nvmlDevice_t, nvmlGpuTopologyLevel_t, unsigned int *, nvmlDevice_t *) =
        NVML(nvmlDeviceGetTopologyNearestGpus, nvmlDevice_t, nvmlGpuTopologyLevel_t, unsigned int *,
             nvmlDevice_t *);
    nvmlReturn_t (*near_cpu)(unsigned int, unsigned int *, nvmlDevice_t *) =
        NVML(nvmlSystemGetTopologyGpuSet, unsigned int, unsigned int *, nvmlDevice_t *);
    nvmlReturn_t (*in_unit)(nvmlUnit_t, unsigned int *, nvmlDevice_t *) =
        NVML(nvmlUnitGetDevices, nvmlUnit_t, unsigned int *, nvmlDevice_t *);

    assert_int_equal(nearest(at(0), HOSTBRIDGE, &count, NULL), NVML_SUCCESS);
    assert_int_equal(count, all - 1);
    assert_int_equal(nearest(at(0), HOSTBRIDGE, &count, devices), NVML_SUCCESS);
    assert_int_equal(count, all - 1);
    assert_ptr_equal(devices[0], at(1));

    count = 0;
    assert_int_equal(near_cpu(0, &count, NULL), NVML_SUCCESS);
    assert_int_equal(count, all);
    assert_int_equal(near_cpu(0, &count, devices), NVML_SUCCESS);
    assert_int_equal(count, all);

    assert_int_equal(NVML(nvmlUnitGetHandleByIndex, unsigned int, nvmlUnit_t *)(0, &unit),
                     NVML_SUCCESS);
    count = 1;
    assert_int_equal(in_unit(unit, &count, devices), NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(count, all);
    assert_int_equal(in_unit(unit, &count, devices), NVML_SUCCESS);
    assert_int_equal(count, all);
    assert_int_equal(in_unit(NULL, &count, devices), NVML_ERROR_INVALID_ARGUMENT);
    for (unsigned int i = 0; i < all; i++) {
        unsigned int index = 99;
        assert_int_equal(NVML(nvmlDeviceGetIndex, nvmlDevice_t, unsigned int *)(devices[i], &index),
                         NVML_SUCCESS);
        assert_ptr_equal(devices[i], at(index));
    }
}

/* What takes two handles answers for any two that can be had. */
static void test_pairs(void **state)
{
    (void)state;
    nvmlGpuP2PStatus_t status;
    nvmlGpuTopologyLevel_t level;
    for (unsigned int i = 0; i < 2; i++) {
        assert_int_equal(
            NVML(nvmlDeviceGetP2PStatus, nvmlDevice_t, nvmlDevice_t, nvmlGpuP2PCapsIndex_t,
                 nvmlGpuP2PStatus_t *)(at(i), at(1 - i), NVML_P2P_CAPS_INDEX_READ, &status),
            NVML_SUCCESS);
        /* GPUs 3 and 1 are of one kind, 0 and 1 are not */
        assert_int_equal(status, hooked ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED);
        assert_int_equal(NVML(nvmlDeviceGetTopologyCommonAncestor, nvmlDevice_t, nvmlDevice_t,
                              nvmlGpuTopologyLevel_t *)(at(i), at(1 - i), &level),
                         NVML_SUCCESS);
        assert_int_equal(level, 30);
    }
}

/* Who uses a device: NVML's own list, in each of its layouts, and NVML's own word about room. */
static void test_processes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t entry_bytes;
    } lists[] = {{"nvmlDeviceGetComputeRunningProcesses", 16},
                 {"nvmlDeviceGetComputeRunningProcesses_v2", 24},
                 {"nvmlDeviceGetComputeRunningProcesses_v3", 24}};
    if (!hooked)
        skip(); /* test_memory_in_use has left a context on GPU 3 */
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        nvmlReturn_t (*list)(nvmlDevice_t, unsigned int *, void *) =
            (nvmlReturn_t(*)(nvmlDevice_t, unsigned int *, void *))(uintptr_t)dlsym(nvml,
                                                                                    lists[i].name);
        unsigned char entries[48];
        unsigned int count = 0;
        pid_t pid;
        unsigned long long bytes;
        assert_non_null(list);
        assert_int_equal(list(at(0), &count, NULL), NVML_ERROR_INSUFFICIENT_SIZE);
        assert_int_equal(count, 1);
        memset(entries, 0xee, sizeof entries);
        assert_int_equal(list(at(0), &count, entries), NVML_SUCCESS);
        memcpy(&pid, entries, sizeof pid);
        memcpy(&bytes, entries + 8, sizeof bytes);
        assert_int_equal(pid, getpid());
        assert_true(bytes > GIB / 4); /* the allocation, and what the context takes by itself */
        for (size_t j = lists[i].entry_bytes; j < sizeof entries; j++)
            assert_int_equal(entries[j], 0xee);
        assert_int_equal(list(at(1), &count, entries), NVML_SUCCESS);
        assert_int_equal(count, 0);
        assert_int_equal(list(NULL, &count, entries), NVML_ERROR_INVALID_ARGUMENT);
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
        cmocka_unit_test(test_before_init), cmocka_unit_test(test_init_and_shutdown),
        cmocka_unit_test(test_indices),     cmocka_unit_test(test_names),
        cmocka_unit_test(test_memory),      cmocka_unit_test(test_memory_in_use),
        cmocka_unit_test(test_one_total),   cmocka_unit_test(test_lists_of_devices),
        cmocka_unit_test(test_pairs),       cmocka_unit_test(test_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
