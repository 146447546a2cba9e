/* runtime_double.c -- the two calls of a CUDA runtime that the shim exports, for programs that are
 * linked to one: they answer as a runtime with four devices does, without a driver. */
#include "cuda_abi.h"

#define EXPORT __attribute__((visibility("default")))
EXPORT cudaError_t cudaSetDevice(int device);
EXPORT cudaError_t cudaGetDeviceCount(int *count);

enum { DEVICES = 4 };

cudaError_t cudaSetDevice(int device)
{
    return device >= 0 && device < DEVICES ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    if (!count)
        return (cudaError_t)1; /* cudaErrorInvalidValue */
    *count = DEVICES;
    return cudaSuccess;
}
