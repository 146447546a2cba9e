/* nvml_memory.c -- memory of cards and the processes that use it, as all processes' simulated
 * drivers say. */
#include "nvml_api.h"
#include "settings.h"
#include "state.h"

enum { MEMORY_2_VERSION = sizeof(struct nvml_memory_2) | 2 << 24, MOST_PROCESSES = 1024 };

/* What a card's MIG devices use, the card has not. */
static uint64_t free_bytes(const struct gpu *gpu)
{
    uint64_t bytes = state_free_bytes(gpu->index);

    for (int i = 0; i < gpu->migs; i++) {
        const struct gpu *mig = machine_gpu(gpu->first_mig + i);
        bytes -= mig->bytes - state_free_bytes(mig->index);
    }
    return bytes;
}

nvmlReturn_t sim_nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct nvml_memory *memory)
{
    const struct gpu *gpu = nvml_gpu(device);

    if (!gpu || !memory)
        return NVML_ERROR_INVALID_ARGUMENT;
    memory->first = gpu->bytes + settings_reserved_bytes(); /* total, free, used */
    memory->second = free_bytes(gpu);
    memory->third = memory->first - memory->second;
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct nvml_memory_2 *memory)
{
    const struct gpu *gpu = nvml_gpu(device);

    if (!gpu || !memory)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (memory->version != MEMORY_2_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory->reserved = settings_reserved_bytes();
    memory->total = gpu->bytes + memory->reserved;
    memory->free = free_bytes(gpu);
    memory->used = gpu->bytes - memory->free;
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, struct nvml_memory *memory)
{
    if (!nvml_gpu(device) || !memory)
        return NVML_ERROR_INVALID_ARGUMENT;
    *memory = (struct nvml_memory){256u << 20, 255u << 20, 1u << 20}; /* total, free, used */
    return NVML_SUCCESS;
}

/* How many processes there are, and whether the caller's array of *count holds them. */
static nvmlReturn_t list(nvmlDevice_t device, unsigned int *count, const void *out,
                         struct state_process found[MOST_PROCESSES])
{
    const struct gpu *gpu = nvml_gpu(device);

    if (!gpu || !count || (*count && !out))
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned int room = *count;
    *count = settings_hide_processes() ? 0 : state_processes(gpu->index, found, MOST_PROCESSES);
    return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count,
                                                      struct nvml_process *out)
{
    struct state_process found[MOST_PROCESSES];
    nvmlReturn_t result = list(device, count, out, found);

    for (unsigned int i = 0; result == NVML_SUCCESS && i < *count; i++)
        out[i] = (struct nvml_process){(unsigned int)found[i].pid, found[i].bytes};
    return result;
}

nvmlReturn_t sim_nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count,
                                                         struct nvml_process_2 *out)
{
    struct state_process found[MOST_PROCESSES];
    nvmlReturn_t result = list(device, count, out, found);

    for (unsigned int i = 0; result == NVML_SUCCESS && i < *count; i++)
        out[i] = (struct nvml_process_2){(unsigned int)found[i].pid, found[i].bytes, UINT32_MAX,
                                         UINT32_MAX};
    return result;
}

nvmlReturn_t sim_nvml_no_processes(nvmlDevice_t device, unsigned int *count, void *out)
{
    (void)out;
    if (!nvml_gpu(device) || !count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}
