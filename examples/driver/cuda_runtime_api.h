/* cuda_runtime_api.h -- the few functions of the CUDA runtime API that tour.c uses, for machines
 * where no CUDA runtime can be had. tour_driver.c makes them of the driver API. */
#ifndef TOUR_CUDA_RUNTIME_API_H
#define TOUR_CUDA_RUNTIME_API_H

#include <stddef.h>

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInitializationError = 3
} cudaError_t;

struct cudaDeviceProp {
    char name[256];
    struct {
        char bytes[16];
    } uuid;
    size_t totalGlobalMem;
    int pciDomainID, pciBusID, pciDeviceID;
};

const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int ordinal);
cudaError_t cudaSetDevice(int ordinal);
cudaError_t cudaMemGetInfo(size_t *available, size_t *total);
cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaMemset(void *memory, int value, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaDeviceCanAccessPeer(int *can, int ordinal, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags);

#endif
