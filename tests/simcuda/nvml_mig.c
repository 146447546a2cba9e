/* nvml_mig.c -- NVML's MIG devices: parts of a card, found by way of the card ("NVML API
 * Reference", Multi Instance GPU Management). */
#include "nvml_api.h"

nvmlReturn_t sim_nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current,
                                      unsigned int *pending)
{
    const struct gpu *gpu = nvml_gpu(device);

    if (!gpu || gpu->is_mig || !current || !pending)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (gpu->kind != GPU_TESLA)
        return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = gpu->migs != MIG_OFF;
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    const struct gpu *gpu = nvml_gpu(device);

    if (!gpu || !count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = gpu->migs == MIG_OFF ? 0 : MIG_MOST;
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                     nvmlDevice_t *mig)
{
    const struct gpu *gpu = nvml_gpu(device);

    if (!gpu || !mig || index >= MIG_MOST)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (gpu->kind != GPU_TESLA || gpu->is_mig)
        return NVML_ERROR_NOT_SUPPORTED;
    if ((int)index >= gpu->migs)
        return NVML_ERROR_NOT_FOUND;
    *mig = nvml_device(machine_gpu(gpu->first_mig + (int)index));
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig,
                                                              nvmlDevice_t *device)
{
    const struct gpu *gpu = nvml_gpu(mig);

    if (!gpu || !gpu->is_mig || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = nvml_device(machine_gpu(gpu->parent));
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig)
{
    const struct gpu *gpu = nvml_gpu(device);

    if (!gpu || !is_mig)
        return NVML_ERROR_INVALID_ARGUMENT;
    *is_mig = (unsigned int)gpu->is_mig;
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id)
{
    const struct gpu *gpu = nvml_gpu(device);

    if (!gpu || !gpu->is_mig || !id)
        return NVML_ERROR_INVALID_ARGUMENT;
    *id = (unsigned int)(MIG_FIRST_GPU_INSTANCE + gpu->mig_index);
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *id)
{
    const struct gpu *gpu = nvml_gpu(device);

    if (!gpu || !gpu->is_mig || !id)
        return NVML_ERROR_INVALID_ARGUMENT;
    *id = 0;
    return NVML_SUCCESS;
}
