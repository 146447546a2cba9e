/* devices.c -- see devices.h; cuInit and the calls that tell devices apart. */
#include "devices.h"

#include "api.h"
#include "entry.h"
#include "state.h"
#include "version.h"
#include "visible.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct device devices[MACHINE_MAX_GPUS];
static int count;
static int initialised;

int device_count(void) { return count; }

struct device *device_of(CUdevice ordinal)
{
    return ordinal >= 0 && ordinal < count ? &devices[ordinal] : NULL;
}

const struct gpu *device_card(const struct device *device)
{
    return device->gpu->is_mig ? machine_gpu(device->gpu->parent) : device->gpu;
}

CUresult sim_cuInit(unsigned int flags)
{
    int gpus[MACHINE_MAX_GPUS];

    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (initialised)
        return CUDA_SUCCESS;
    int found = visible_gpus(getenv("CUDA_VISIBLE_DEVICES"), getenv("CUDA_DEVICE_ORDER"), gpus);
    if (found == 0)
        return CUDA_ERROR_NO_DEVICE;
    if (state_join() != 0)
        return CUDA_ERROR_UNKNOWN;
    for (int i = 0; i < found; i++) {
        devices[i].ordinal = i;
        devices[i].gpu = machine_gpu(gpus[i]);
        devices[i].primary.device = &devices[i];
        devices[i].primary.is_primary = 1;
    }
    count = found;
    initialised = 1;
    entry_initialised();
    return CUDA_SUCCESS;
}

CUresult sim_cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = version_reported();
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetCount(int *number)
{
    if (!number)
        return CUDA_ERROR_INVALID_VALUE;
    *number = count;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_of(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetName(char *name, int bytes, CUdevice ordinal)
{
    struct device *device = device_of(ordinal);

    if (!name || bytes <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)bytes, "%s", device->gpu->name);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceTotalMem_v2(size_t *bytes, CUdevice ordinal)
{
    struct device *device = device_of(ordinal);

    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = device->gpu->bytes;
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice ordinal)
{
    struct device *device = device_of(ordinal);

    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    memcpy(uuid->bytes, device->gpu->uuid, sizeof uuid->bytes);
    return CUDA_SUCCESS;
}

/* Of a MIG device: its card's. */
CUresult sim_cuDeviceGetUuid(CUuuid *uuid, CUdevice ordinal)
{
    struct device *device = device_of(ordinal);

    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    memcpy(uuid->bytes, device_card(device)->uuid, sizeof uuid->bytes);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetLuid(char *luid, unsigned int *mask, CUdevice ordinal)
{
    (void)luid, (void)mask, (void)ordinal; /* Windows only */
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult sim_cuDeviceGetPCIBusId(char *id, int bytes, CUdevice ordinal)
{
    struct device *device = device_of(ordinal);
    char text[PCI_TEXT];

    if (!id || bytes <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    machine_pci_text(device->gpu, 4, text);
    snprintf(id, (size_t)bytes, "%s", text);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetByPCIBusId(CUdevice *found, const char *id)
{
    unsigned int domain = 0, bus, slot;

    if (!found || !id)
        return CUDA_ERROR_INVALID_VALUE;
    if (sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
        domain = 0;
        if (sscanf(id, "%x:%x", &bus, &slot) != 2)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (int i = 0; i < count; i++) {
        const struct gpu *gpu = devices[i].gpu;
        if ((int)domain == gpu->pci_domain && (int)bus == gpu->pci_bus &&
            (int)slot == gpu->pci_device) {
            *found = i;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}
