/* nvml.c -- NVML: physical whatever CUDA_VISIBLE_DEVICES says, counted initialisation, the same use
 * as CUDA's. */
#include "client.h"

#include "nvml_api.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
#define NVML(symbol, served, when, takes) nvmlReturn_t(*symbol) PARAMETERS_##takes;
#define NVML_STUB(symbol) nvmlReturn_t (*symbol)(void);
#include "nvml.def"
#undef NVML
#undef NVML_STUB
} nvml;

static int load(void **state)
{
    const char *path = getenv("SIMCUDA_NVML_LIBRARY");
    void *library = dlopen(path ? path : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

    (void)state;
    if (!library)
        return -1;
#define FIND(symbol)                                                                               \
    do {                                                                                           \
        void *address = dlsym(library, #symbol);                                                   \
        memcpy(&nvml.symbol, &address, sizeof address);                                            \
        assert_non_null(address);                                                                  \
    } while (0)
#define NVML(symbol, served, when, takes) FIND(symbol);
#define NVML_STUB(symbol) FIND(symbol);
#include "nvml.def"
#undef NVML
#undef NVML_STUB
    return 0;
}

static void test_count_of_inits(void **state)
{
    unsigned int count;

    (void)state;
    fails(NVML_ERROR_UNINITIALIZED, nvml.nvmlDeviceGetCount_v2(&count));
    fails(NVML_ERROR_UNINITIALIZED, nvml.nvmlShutdown());
    ok(nvml.nvmlInit_v2());
    ok(nvml.nvmlInit());
    ok(nvml.nvmlShutdown());
    ok(nvml.nvmlDeviceGetCount_v2(&count));
    assert_int_equal(count, 4);
    ok(nvml.nvmlShutdown());
    fails(NVML_ERROR_UNINITIALIZED, nvml.nvmlDeviceGetCount_v2(&count));
    ok(nvml.nvmlInit_v2()); /* for the rest */
}

static void test_handles(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 4; i++) {
        nvmlDevice_t device, again;
        nvmlPciInfo_t pci;
        char text[96];
        unsigned int index;
        ok(nvml.nvmlDeviceGetHandleByIndex_v2(i, &device));
        ok(nvml.nvmlDeviceGetIndex(device, &index));
        assert_int_equal(index, i);
        ok(nvml.nvmlDeviceGetUUID(device, text, sizeof text));
        ok(nvml.nvmlDeviceGetHandleByUUID(text, &again));
        assert_ptr_equal(again, device);
        ok(nvml.nvmlDeviceGetPciInfo_v3(device, &pci));
        ok(nvml.nvmlDeviceGetHandleByPciBusId_v2(pci.busId, &again));
        assert_ptr_equal(again, device);
        ok(nvml.nvmlDeviceGetSerial(device, text, sizeof text));
        ok(nvml.nvmlDeviceGetHandleBySerial(text, &again));
        assert_ptr_equal(again, device);
        fails(NVML_ERROR_INSUFFICIENT_SIZE, nvml.nvmlDeviceGetUUID(device, text, 10));
    }
    fails(NVML_ERROR_INVALID_ARGUMENT,
          nvml.nvmlDeviceGetIndex((nvmlDevice_t)&state, &(unsigned){0}));
}

static void test_use(void **state)
{
    nvmlDevice_t device;
    CUdeviceptr address;
    struct nvml_memory memory;
    struct nvml_memory_2 memory_2 = {.version = sizeof memory_2 | 2 << 24};
    struct nvml_process processes[4];
    unsigned int count = 4;
    int cuda_devices;

    (void)state;
    setenv("CUDA_VISIBLE_DEVICES", "3", 1);
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    client_start(state);
    ok(cuda.cuDeviceGetCount(&cuda_devices));
    assert_int_equal(cuda_devices, 1);
    ok(cuda.cuMemAlloc_v2(&address, GIB));
    ok(nvml.nvmlDeviceGetHandleByIndex_v2(3, &device));
    ok(nvml.nvmlDeviceGetMemoryInfo(device, &memory));
    assert_int_equal(memory.first, 80 * GIB);
    assert_int_equal(memory.third, GIB + CONTEXT_BYTES);
    ok(nvml.nvmlDeviceGetMemoryInfo_v2(device, &memory_2));
    assert_int_equal(memory_2.used, memory.third);
    ok(nvml.nvmlDeviceGetComputeRunningProcesses(device, &count, processes));
    assert_int_equal(count, 1);
    assert_int_equal(processes[0].pid, getpid());
    assert_int_equal(processes[0].bytes, GIB + CONTEXT_BYTES);
    count = 0;
    fails(NVML_ERROR_INSUFFICIENT_SIZE,
          nvml.nvmlDeviceGetComputeRunningProcesses(device, &count, NULL));
    assert_int_equal(count, 1);
    ok(cuda.cuMemFree_v2(address));
}

static void test_peers(void **state)
{
    nvmlDevice_t devices[3];
    nvmlGpuP2PStatus_t status;

    (void)state;
    for (unsigned int i = 0; i < 3; i++)
        ok(nvml.nvmlDeviceGetHandleByIndex_v2(i, &devices[i]));
    ok(nvml.nvmlDeviceGetP2PStatus(devices[0], devices[2], NVML_P2P_CAPS_INDEX_READ, &status));
    assert_int_equal(status, NVML_P2P_STATUS_OK);
    ok(nvml.nvmlDeviceGetP2PStatus(devices[0], devices[1], NVML_P2P_CAPS_INDEX_READ, &status));
    assert_int_equal(status, NVML_P2P_STATUS_NOT_SUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_count_of_inits),
        cmocka_unit_test(test_handles),
        cmocka_unit_test(test_use),
        cmocka_unit_test(test_peers),
    };

    return cmocka_run_group_tests(tests, load, NULL);
}
