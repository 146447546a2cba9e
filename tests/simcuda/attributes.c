/* attributes.c -- what a device says of itself.
 *
 * Knows: cards. Must not know: memory in use. Numbers: CUdevice_attribute of CUDA 13.0.
 */
#include "api.h"
#include "devices.h"

enum {
    ATTRIBUTE_CLOCK_RATE = 13,
    ATTRIBUTE_MULTIPROCESSORS = 16,
    ATTRIBUTE_PCI_BUS = 33,
    ATTRIBUTE_PCI_DEVICE = 34,
    ATTRIBUTE_MEMORY_CLOCK = 36,
    ATTRIBUTE_BUS_WIDTH = 37,
    ATTRIBUTE_PCI_DOMAIN = 50,
    ATTRIBUTE_CC_MAJOR = 75,
    ATTRIBUTE_CC_MINOR = 76
};

static int common_attribute(int number)
{
    switch (number) {
#define ATTRIBUTE(n, value)                                                                        \
    case n:                                                                                        \
        return value;
#include "attributes.def"
#undef ATTRIBUTE
    default:
        return 0;
    }
}

static int attribute(const struct gpu *gpu, int number)
{
    switch (number) {
    case ATTRIBUTE_CLOCK_RATE:
        return gpu->clock_khz;
    case ATTRIBUTE_MULTIPROCESSORS:
        return gpu->multiprocessors;
    case ATTRIBUTE_PCI_BUS:
        return gpu->pci_bus;
    case ATTRIBUTE_PCI_DEVICE:
        return gpu->pci_device;
    case ATTRIBUTE_PCI_DOMAIN:
        return gpu->pci_domain;
    case ATTRIBUTE_MEMORY_CLOCK:
        return gpu->memory_clock_khz;
    case ATTRIBUTE_BUS_WIDTH:
        return gpu->bus_bits;
    case ATTRIBUTE_CC_MAJOR:
        return gpu->cc_major;
    case ATTRIBUTE_CC_MINOR:
        return gpu->cc_minor;
    default:
        return common_attribute(number);
    }
}

CUresult sim_cuDeviceGetAttribute(int *value, int number, CUdevice ordinal)
{
    struct device *device = device_of(ordinal);

    if (!value || number <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *value = attribute(device->gpu, number);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceComputeCapability(int *major, int *minor, CUdevice ordinal)
{
    struct device *device = device_of(ordinal);

    if (!major || !minor)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *major = device->gpu->cc_major;
    *minor = device->gpu->cc_minor;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetTexture1DLinearMaxWidth(size_t *width, int format, unsigned int channels,
                                                CUdevice ordinal)
{
    (void)format;
    if (!width || channels == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_of(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *width = (size_t)1 << 28;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetExecAffinitySupport(int *supported, int type, CUdevice ordinal)
{
    (void)type;
    if (!supported)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_of(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *supported = 0;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities, const int *operations,
                                               unsigned int count, CUdevice ordinal)
{
    if (!capabilities || !operations)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_of(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    for (unsigned int i = 0; i < count; i++)
        capabilities[i] = 0;
    return CUDA_SUCCESS;
}
