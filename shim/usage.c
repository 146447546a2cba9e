/* usage.c -- see usage.h. */
#include "usage.h"
#include "driver.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { AT_ONCE = 64, TRIES = 3 };

/* The newest layout that this NVML has. */
static nvmlReturn_t list(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)
{
    if (real_nvml.nvmlDeviceGetComputeRunningProcesses_v3)
        return real_nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, count, infos);
    if (real_nvml.nvmlDeviceGetComputeRunningProcesses_v2)
        return real_nvml.nvmlDeviceGetComputeRunningProcesses_v2(device, count, infos);
    if (!real_nvml.nvmlDeviceGetComputeRunningProcesses)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    /* The first layout is the beginning of the later one: spread it out, from the end. */
    nvmlProcessInfo_v1_t *first = (void *)infos;
    nvmlReturn_t rc = real_nvml.nvmlDeviceGetComputeRunningProcesses(device, count, first);
    for (unsigned int i = rc == NVML_SUCCESS ? *count : 0; i-- > 0;) {
        const nvmlProcessInfo_v1_t info = first[i];
        infos[i] = (nvmlProcessInfo_t){.pid = info.pid, .usedGpuMemory = info.usedGpuMemory};
    }
    return rc;
}

static void find_own(const nvmlProcessInfo_t *infos, unsigned int count, struct usage *usage)
{
    const unsigned int pid = (unsigned int)getpid();
    for (unsigned int i = 0; i < count; i++) {
        if (infos[i].pid != pid || infos[i].usedGpuMemory == NVML_VALUE_NOT_AVAILABLE)
            continue;
        usage->listed = true;
        usage->own += infos[i].usedGpuMemory;
    }
}

/* As many processes as there are, which may change between two questions. */
static nvmlReturn_t ask_processes(nvmlDevice_t device, struct usage *usage)
{
    nvmlProcessInfo_t few[AT_ONCE], *infos = few;
    unsigned int room = AT_ONCE;
    nvmlReturn_t rc = NVML_ERROR_UNKNOWN;
    for (int i = 0; i < TRIES; i++) {
        unsigned int count = room;
        rc = list(device, &count, infos);
        if (rc == NVML_SUCCESS)
            find_own(infos, count, usage);
        if (infos != few)
            munmap(infos, room * sizeof *infos);
        if (rc != NVML_ERROR_INSUFFICIENT_SIZE)
            break;
        room = count + AT_ONCE;
        infos = mmap(NULL, room * sizeof *infos, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (infos == MAP_FAILED)
            break;
    }
    return rc;
}

static nvmlReturn_t ask(const char *uuid, struct usage *usage)
{
    nvmlDevice_t device;
    nvmlMemory_t memory;
    nvmlReturn_t rc = real_nvml.nvmlDeviceGetHandleByUUID(uuid, &device);
    if (rc == NVML_SUCCESS)
        rc = real_nvml.nvmlDeviceGetMemoryInfo(device, &memory);
    if (rc == NVML_SUCCESS)
        rc = ask_processes(device, usage);
    if (rc == NVML_SUCCESS)
        usage->card = memory.used;
    return rc;
}

void usage_ask(const char *uuid, struct usage *usage)
{
    const int saved_errno = errno;
    memset(usage, 0, sizeof *usage);
    if (nvml_open(true) && real_nvml.nvmlInit_v2 && real_nvml.nvmlShutdown &&
        real_nvml.nvmlDeviceGetHandleByUUID && real_nvml.nvmlDeviceGetMemoryInfo &&
        real_nvml.nvmlInit_v2() == NVML_SUCCESS) {
        usage->known = ask(uuid, usage) == NVML_SUCCESS;
        real_nvml.nvmlShutdown();
    }
    errno = saved_errno;
}
