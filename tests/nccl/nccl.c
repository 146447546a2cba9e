/* nccl.c -- NVIDIA's own NCCL on two devices of the simulated machine: makes communicators and sums
 * something over them, so that the devices connect. Its argument is the library. What it sums is
 * not looked at, since simulated kernels do nothing; how it connects, nccl.sh reads in NCCL's own
 * log.
 */
#include "cuda_abi.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

enum { RANKS = 2, FLOATS = 1024, NCCL_FLOAT = 7, NCCL_SUM = 0 };

static int failed(const char *what, int code)
{
    fprintf(stderr, "%s answers %d\n", what, code);
    return 1;
}

int main(int argc, char **argv)
{
    void *nccl = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *comms[RANKS];
    CUdeviceptr buffers[RANKS];
    if (!nccl || !driver) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
#define NCCL(name, ...) ((int (*)(__VA_ARGS__))(uintptr_t)dlsym(nccl, #name))
#define DRIVER(name, ...) ((CUresult(*)(__VA_ARGS__))(uintptr_t)dlsym(driver, #name))
    int rc = NCCL(ncclCommInitAll, void **, int, const int *)(comms, RANKS, NULL);
    if (rc)
        return failed("ncclCommInitAll", rc);
    for (int i = 0; i < RANKS; i++) {
        CUcontext context;
        CUresult result =
            DRIVER(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)(&context, (CUdevice)i);
        if (result == CUDA_SUCCESS)
            result = DRIVER(cuCtxSetCurrent, CUcontext)(context);
        if (result == CUDA_SUCCESS)
            result =
                DRIVER(cuMemAlloc_v2, CUdeviceptr *, size_t)(&buffers[i], FLOATS * sizeof(float));
        if (result != CUDA_SUCCESS)
            return failed("the driver", (int)result);
    }
    NCCL(ncclGroupStart, void)();
    for (int i = 0; i < RANKS && rc == 0; i++)
        rc = NCCL(ncclAllReduce, uintptr_t, uintptr_t, size_t, int, int, void *,
                  CUstream)((uintptr_t)buffers[i], (uintptr_t)buffers[i], FLOATS, NCCL_FLOAT,
                            NCCL_SUM, comms[i], NULL);
    int end = NCCL(ncclGroupEnd, void)();
    if (rc || end)
        return failed("ncclAllReduce", rc ? rc : end);
    for (int i = 0; i < RANKS; i++)
        NCCL(ncclCommDestroy, void *)(comms[i]);
    return 0;
}
