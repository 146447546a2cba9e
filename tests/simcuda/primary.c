/* primary.c -- primary contexts: retained by count, one for each device and process. */
#include "api.h"
#include "context.h"
#include "devices.h"

CUresult sim_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice ordinal)
{
    struct device *device = device_of(ordinal);
    CUresult result = CUDA_SUCCESS;

    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!device->primary.alive)
        result = context_start(&device->primary, device, device->primary_flags);
    if (result != CUDA_SUCCESS)
        return result;
    device->primary_references++;
    *context = &device->primary;
    return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxRelease(CUdevice ordinal)
{
    struct device *device = device_of(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (device->primary_references == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--device->primary_references == 0 && device->primary.alive)
        context_end(&device->primary);
    return CUDA_SUCCESS;
}

/* Drops all references (assumed): runtimes retain anew after a reset, without having released. */
CUresult sim_cuDevicePrimaryCtxReset(CUdevice ordinal)
{
    struct device *device = device_of(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (device->primary.alive)
        context_end(&device->primary);
    device->primary_references = 0;
    device->primary_flags = 0;
    return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxSetFlags(CUdevice ordinal, unsigned int flags)
{
    struct device *device = device_of(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    device->primary_flags = flags;
    if (device->primary.alive)
        device->primary.flags = flags;
    return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int *flags, int *active)
{
    struct device *device = device_of(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (flags)
        *flags = device->primary_flags;
    if (active)
        *active = device->primary.alive;
    return CUDA_SUCCESS;
}
