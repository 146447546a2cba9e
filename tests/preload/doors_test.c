/* doors_test.c -- ipc = deny at every door: each hook that the rule hands out answers 800, whatever
 * is asked of it, and the door that only closes stays open. Rows come from hooks.def, so that a
 * door that is added there and not here fails this test.
 */
#include "cmocka_all.h"
#include "hooks.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void *driver;

#define DRIVER(name, ...) ((CUresult(*)(__VA_ARGS__))(uintptr_t)dlsym(driver, #name))

static CUresult knock(const char *door)
{
    CUipcMemHandle memory = {{0}};
    CUipcEventHandle event = {{0}};
    char shared[64];
    CUdeviceptr address = 0;
    CUmemGenericAllocationHandle handle = 0;
    CUmemoryPool pool = NULL;
    CUevent opened;
    CUexternalMemory external;
    CUexternalSemaphore semaphore;
#define IS(name) (strcmp(door, #name) == 0)
    if (IS(cuIpcGetMemHandle))
        return DRIVER(cuIpcGetMemHandle, CUipcMemHandle *, CUdeviceptr)(&memory, 0);
    if (IS(cuIpcOpenMemHandle))
        return DRIVER(cuIpcOpenMemHandle, CUdeviceptr *, CUipcMemHandle, unsigned int)(&address,
                                                                                       memory, 1);
    if (IS(cuIpcOpenMemHandle_v2))
        return DRIVER(cuIpcOpenMemHandle_v2, CUdeviceptr *, CUipcMemHandle,
                      unsigned int)(&address, memory, 1);
    if (IS(cuIpcGetEventHandle))
        return DRIVER(cuIpcGetEventHandle, CUipcEventHandle *, CUevent)(&event, NULL);
    if (IS(cuIpcOpenEventHandle))
        return DRIVER(cuIpcOpenEventHandle, CUevent *, CUipcEventHandle)(&opened, event);
    if (IS(cuMemExportToShareableHandle))
        return DRIVER(cuMemExportToShareableHandle, void *, CUmemGenericAllocationHandle,
                      CUmemAllocationHandleType,
                      unsigned long long)(shared, 0, CU_MEM_HANDLE_TYPE_NONE, 0);
    if (IS(cuMemImportFromShareableHandle))
        return DRIVER(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle *, void *,
                      CUmemAllocationHandleType)(&handle, shared, CU_MEM_HANDLE_TYPE_NONE);
    if (IS(cuMemPoolExportToShareableHandle))
        return DRIVER(cuMemPoolExportToShareableHandle, void *, CUmemoryPool,
                      CUmemAllocationHandleType,
                      unsigned long long)(shared, NULL, CU_MEM_HANDLE_TYPE_NONE, 0);
    if (IS(cuMemPoolImportFromShareableHandle))
        return DRIVER(cuMemPoolImportFromShareableHandle, CUmemoryPool *, void *,
                      CUmemAllocationHandleType,
                      unsigned long long)(&pool, shared, CU_MEM_HANDLE_TYPE_NONE, 0);
    if (IS(cuMemPoolExportPointer))
        return DRIVER(cuMemPoolExportPointer, void *, CUdeviceptr)(shared, 0);
    if (IS(cuMemPoolImportPointer))
        return DRIVER(cuMemPoolImportPointer, CUdeviceptr *, CUmemoryPool, void *)(&address, NULL,
                                                                                   shared);
    if (IS(cuMemGetHandleForAddressRange))
        return DRIVER(cuMemGetHandleForAddressRange, void *, CUdeviceptr, size_t,
                      CUmemRangeHandleType, unsigned long long)(shared, 0, 0, 1, 0);
    if (IS(cuImportExternalMemory))
        return DRIVER(cuImportExternalMemory, CUexternalMemory *, void *)(&external, shared);
    if (IS(cuImportExternalSemaphore))
        return DRIVER(cuImportExternalSemaphore, CUexternalSemaphore *, void *)(&semaphore, shared);
    return CUDA_ERROR_UNKNOWN; /* a door that this test does not know */
}

static void test_every_door(void **state)
{
    static const struct {
        const char *symbol;
        unsigned int when;
    } rows[] = {
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments) {#symbol, (when)},
#define NVML_HOOK(symbol, when, parameters, arguments)
#define RUNTIME_HOOK(symbol, parameters, arguments)
#define DRIVER_CALL(symbol, parameters)
#define NVML_CALL(symbol, parameters)
#include "hooks.def"
    };
    int doors = 0;
    (void)state;
    assert_int_equal(DRIVER(cuInit, unsigned int)(0), CUDA_SUCCESS);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!(rows[i].when & WHEN_IPC))
            continue;
        CUresult rc = knock(rows[i].symbol);
        if (rc != CUDA_ERROR_NOT_PERMITTED)
            fail_msg("%s answers %d, not 800", rows[i].symbol, (int)rc);
        doors++;
    }
    assert_int_equal(doors, 14);
    assert_int_not_equal(DRIVER(cuIpcCloseMemHandle, CUdeviceptr)(0), CUDA_ERROR_NOT_PERMITTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_door)};
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    return driver ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
