/* nvml_health.c -- what a card is made of, how warm it is and what it draws: plausible constants of
 * an idle card. */
#include "nvml_api.h"

enum { CLOCK_GRAPHICS = 0, CLOCK_SM = 1, CLOCK_MEMORY = 2, CLOCK_LAST = 3 };

static nvmlReturn_t number(nvmlDevice_t device, unsigned int *out, unsigned int value)
{
    if (!nvml_gpu(device) || !out)
        return NVML_ERROR_INVALID_ARGUMENT;
    *out = value;
    return NVML_SUCCESS;
}

static nvmlReturn_t by_kind(nvmlDevice_t device, unsigned int *out, unsigned int geforce,
                            unsigned int tesla)
{
    const struct gpu *gpu = nvml_gpu(device);

    return number(device, out, gpu && gpu->kind == GPU_TESLA ? tesla : geforce);
}

nvmlReturn_t sim_nvml_zero(nvmlDevice_t device, unsigned int *out)
{
    return number(device, out, 0);
}

nvmlReturn_t sim_nvml_one(nvmlDevice_t device, unsigned int *out) { return number(device, out, 1); }

nvmlReturn_t sim_nvml_zeros(nvmlDevice_t device, unsigned int *one, unsigned int *other)
{
    nvmlReturn_t result = number(device, one, 0);

    return result == NVML_SUCCESS ? number(device, other, 0) : result;
}

nvmlReturn_t sim_nvml_pcie_generation(nvmlDevice_t device, unsigned int *generation)
{
    return number(device, generation, 4);
}

nvmlReturn_t sim_nvml_pcie_width(nvmlDevice_t device, unsigned int *width)
{
    return number(device, width, 16);
}

nvmlReturn_t sim_nvmlDeviceGetBrand(nvmlDevice_t device, unsigned int *brand)
{
    return by_kind(device, brand, 5, 2);
}

nvmlReturn_t sim_nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned int *architecture)
{
    return number(device, architecture, 7); /* Ampere */
}

nvmlReturn_t sim_nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int *cores)
{
    return by_kind(device, cores, 82 * 128, 108 * 64);
}

nvmlReturn_t sim_nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned int *bits)
{
    const struct gpu *gpu = nvml_gpu(device);

    return number(device, bits, gpu ? (unsigned int)gpu->bus_bits : 0);
}

nvmlReturn_t sim_nvmlDeviceGetUtilizationRates(nvmlDevice_t device, struct nvml_utilization *rates)
{
    if (!nvml_gpu(device) || !rates)
        return NVML_ERROR_INVALID_ARGUMENT;
    *rates = (struct nvml_utilization){0, 0};
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned int *celsius)
{
    return sensor == 0 ? number(device, celsius, 35) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t sim_nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int *percent)
{
    const struct gpu *gpu = nvml_gpu(device);

    if (gpu && gpu->kind == GPU_TESLA)
        return NVML_ERROR_NOT_SUPPORTED;
    return number(device, percent, 30);
}

nvmlReturn_t sim_nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts)
{
    return number(device, milliwatts, 50000);
}

nvmlReturn_t sim_nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int *milliwatts)
{
    return by_kind(device, milliwatts, 350000, 400000);
}

nvmlReturn_t sim_nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int clock, unsigned int *megahertz)
{
    const struct gpu *gpu = nvml_gpu(device);

    if (!gpu || clock < 0 || clock > CLOCK_LAST)
        return NVML_ERROR_INVALID_ARGUMENT;
    int khz = clock == CLOCK_MEMORY ? gpu->memory_clock_khz : gpu->clock_khz;
    return number(device, megahertz, (unsigned int)khz / 1000);
}

nvmlReturn_t sim_nvmlDeviceGetClockInfo(nvmlDevice_t device, int clock, unsigned int *megahertz)
{
    return sim_nvmlDeviceGetMaxClockInfo(device, clock, megahertz);
}
