/* nvml_devices.c -- NVML's cards: handles, and what each is. */
#include "nvml_api.h"

#include <stdio.h>
#include <string.h>

struct nvmlDevice_st {
    char unused;
};

static struct nvmlDevice_st devices[MACHINE_MAX_GPUS];

nvmlDevice_t nvml_device(const struct gpu *gpu) { return &devices[gpu->index]; }

const struct gpu *nvml_gpu(nvmlDevice_t device)
{
    for (int i = 0; i < machine_device_count(); i++)
        if (device == &devices[i])
            return machine_gpu(i);
    return NULL;
}

nvmlReturn_t sim_nvmlDeviceGetCount(unsigned int *count)
{
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = (unsigned int)machine_gpu_count();
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    if (!device || index >= (unsigned int)machine_gpu_count())
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = &devices[index];
    return NVML_SUCCESS;
}

static void serial_text(const struct gpu *gpu, char text[32])
{
    snprintf(text, 32, "51c0da%07x", (unsigned int)(gpu->is_mig ? gpu->parent : gpu->index));
}

/* The card of which `text_of` makes this text. */
static nvmlReturn_t find(const char *text, void (*text_of)(const struct gpu *, char *),
                         nvmlDevice_t *device)
{
    if (!text || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < machine_device_count(); i++) {
        char own[64];
        text_of(machine_gpu(i), own);
        if (strcmp(text, own) == 0) {
            *device = &devices[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t sim_nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    return find(uuid, machine_uuid_text, device);
}

nvmlReturn_t sim_nvmlDeviceGetHandleByUUIDV(const struct nvml_uuid *uuid, nvmlDevice_t *device)
{
    enum { ASCII = 1, BINARY = 2 };

    if (!uuid || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (uuid->type == ASCII)
        return sim_nvmlDeviceGetHandleByUUID(uuid->text, device);
    if (uuid->type != BINARY)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < machine_device_count(); i++)
        if (memcmp(uuid->bytes, machine_gpu(i)->uuid, UUID_BYTES) == 0) {
            *device = &devices[i];
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t sim_nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    return find(serial, serial_text, device);
}

nvmlReturn_t sim_nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *device)
{
    unsigned int domain = 0, bus, slot;

    if (!id || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
        domain = 0;
        if (sscanf(id, "%x:%x", &bus, &slot) != 2)
            return NVML_ERROR_INVALID_ARGUMENT;
    }
    for (int i = 0; i < machine_gpu_count(); i++) {
        const struct gpu *gpu = machine_gpu(i);
        if ((int)domain == gpu->pci_domain && (int)bus == gpu->pci_bus &&
            (int)slot == gpu->pci_device) {
            *device = &devices[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t sim_nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    const struct gpu *gpu = nvml_gpu(device);

    if (!gpu || !index)
        return NVML_ERROR_INVALID_ARGUMENT;
    *index = (unsigned int)(gpu->is_mig ? gpu->mig_index : gpu->index);
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned int *id)
{
    const struct gpu *gpu = nvml_gpu(device);

    if (!gpu || !id)
        return NVML_ERROR_INVALID_ARGUMENT;
    *id = (unsigned int)gpu->pci_bus << 8;
    return NVML_SUCCESS;
}

static nvmlReturn_t text(nvmlDevice_t device, void (*text_of)(const struct gpu *, char *),
                         char *buffer, unsigned int bytes)
{
    const struct gpu *gpu = nvml_gpu(device);
    char own[96];

    if (!gpu)
        return NVML_ERROR_INVALID_ARGUMENT;
    text_of(gpu, own);
    return nvml_write(buffer, bytes, own);
}

static void name_text(const struct gpu *gpu, char *text_out)
{
    snprintf(text_out, 96, "%s", gpu->name);
}

static void vbios_text(const struct gpu *gpu, char *text_out)
{
    (void)gpu;
    snprintf(text_out, 96, "00.00.00.00.00");
}

nvmlReturn_t sim_nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int bytes)
{
    return text(device, machine_uuid_text, uuid, bytes);
}

nvmlReturn_t sim_nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int bytes)
{
    return text(device, name_text, name, bytes);
}

nvmlReturn_t sim_nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int bytes)
{
    return text(device, serial_text, serial, bytes);
}

nvmlReturn_t sim_nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned int bytes)
{
    return text(device, vbios_text, version, bytes);
}

/* The legacy id has a domain of 4 digits; _v2 lacks the long one, the first also the subsystem. */
static nvmlReturn_t pci(nvmlDevice_t device, nvmlPciInfo_t *info, size_t bytes)
{
    const struct gpu *gpu = nvml_gpu(device);
    nvmlPciInfo_t all = {0};
    char id[PCI_TEXT];

    if (!gpu || !info)
        return NVML_ERROR_INVALID_ARGUMENT;
    machine_pci_text(gpu, 4, id);
    memcpy(all.busIdLegacy, id, strlen(id) + 1);
    machine_pci_text(gpu, 8, id);
    memcpy(all.busId, id, strlen(id) + 1);
    all.domain = (unsigned int)gpu->pci_domain;
    all.bus = (unsigned int)gpu->pci_bus;
    all.device = (unsigned int)gpu->pci_device;
    all.pciDeviceId = gpu->kind == GPU_TESLA ? 0x20b210deu : 0x220410deu;
    all.pciSubSystemId = all.pciDeviceId;
    memcpy(info, &all, bytes);
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    return pci(device, info, offsetof(nvmlPciInfo_t, pciSubSystemId));
}

nvmlReturn_t sim_nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    return pci(device, info, offsetof(nvmlPciInfo_t, busId));
}

nvmlReturn_t sim_nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    return pci(device, info, sizeof *info);
}

nvmlReturn_t sim_nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    const struct gpu *gpu = nvml_gpu(device);

    if (!gpu || !major || !minor)
        return NVML_ERROR_INVALID_ARGUMENT;
    *major = gpu->cc_major;
    *minor = gpu->cc_minor;
    return NVML_SUCCESS;
}
