/* nodriver_test.c -- a machine without a driver, and a program that refers to it weakly: under the
 * shim the names are there (it exports them), and every one answers an error; none crashes.
 */
#include "cmocka_all.h"
#include "cuda_abi.h"
#include "nvml_abi.h"

#include <dlfcn.h>
#include <string.h>

CUresult cuInit(unsigned int flags) __attribute__((weak));
CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytes) __attribute__((weak));
CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status) __attribute__((weak));
cudaError_t cudaSetDevice(int device) __attribute__((weak));
cudaError_t cudaGetDeviceCount(int *count) __attribute__((weak));
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t other,
                                    nvmlGpuP2PCapsIndex_t index, nvmlGpuP2PStatus_t *status)
    __attribute__((weak));

static void test_calls_answer(void **state)
{
    (void)state;
    CUdeviceptr pointer;
    void *function = NULL;
    int count;
    nvmlGpuP2PStatus_t status;
    if (!cuInit)
        fail_msg("run with the shim preloaded");
    assert_int_equal(cuMemAlloc_v2(&pointer, 512), CUDA_ERROR_STUB_LIBRARY);
    assert_int_equal(cuInit(0), CUDA_ERROR_STUB_LIBRARY);
    assert_int_equal(cuGetProcAddress_v2("cuInit", &function, 13000, 0, NULL),
                     CUDA_ERROR_STUB_LIBRARY);
    assert_int_equal(cudaSetDevice(0), cudaErrorInitializationError);
    assert_int_equal(cudaGetDeviceCount(&count), cudaErrorInitializationError);
    assert_int_equal(nvmlDeviceGetP2PStatus(NULL, NULL, NVML_P2P_CAPS_INDEX_READ, &status),
                     NVML_ERROR_LIBRARY_NOT_FOUND);
}

static void test_look_ups_find_nothing(void **state)
{
    (void)state;
    assert_null(dlopen("libcuda.so.1", RTLD_NOW));
    assert_null(dlsym(RTLD_DEFAULT, "cuInit"));
    assert_non_null(strstr(dlerror(), "cuInit"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_look_ups_find_nothing),
                                       cmocka_unit_test(test_calls_answer),
                                       cmocka_unit_test(test_look_ups_find_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
