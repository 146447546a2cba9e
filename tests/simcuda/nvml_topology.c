/* nvml_topology.c -- how NVML's cards lie to each other: cards of one kind are peers, all hang on
 * one host bridge. */
#include "nvml_api.h"

#include <string.h>
#include <unistd.h>

enum { TOPOLOGY_INTERNAL = 0, TOPOLOGY_HOSTBRIDGE = 30 };

nvmlReturn_t sim_nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t other,
                                        nvmlGpuP2PCapsIndex_t index, nvmlGpuP2PStatus_t *status)
{
    const struct gpu *a = nvml_gpu(one), *b = nvml_gpu(other);

    if (!a || !b || !status || index > NVML_P2P_CAPS_INDEX_PCI)
        return NVML_ERROR_INVALID_ARGUMENT;
    int linked = machine_peers(a, b) && index != NVML_P2P_CAPS_INDEX_NVLINK &&
                 index != NVML_P2P_CAPS_INDEX_ATOMICS;
    *status = linked ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other,
                                                     int *level)
{
    if (!nvml_gpu(one) || !nvml_gpu(other) || !level)
        return NVML_ERROR_INVALID_ARGUMENT;
    *level = one == other ? TOPOLOGY_INTERNAL : TOPOLOGY_HOSTBRIDGE;
    return NVML_SUCCESS;
}

static nvmlReturn_t all_but(const struct gpu *left_out, unsigned int *count, nvmlDevice_t *out)
{
    unsigned int room = *count, found = 0;

    for (int i = 0; i < machine_gpu_count(); i++) {
        if (machine_gpu(i) == left_out)
            continue;
        if (out && found < room)
            out[found] = nvml_device(machine_gpu(i));
        found++;
    }
    *count = found;
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, int level,
                                                  unsigned int *count, nvmlDevice_t *out)
{
    const struct gpu *gpu = nvml_gpu(device);

    if (!gpu || !count || (*count && !out))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (level != TOPOLOGY_HOSTBRIDGE) {
        *count = 0;
        return NVML_SUCCESS;
    }
    return all_but(gpu, count, out);
}

nvmlReturn_t sim_nvmlSystemGetTopologyGpuSet(unsigned int cpu, unsigned int *count,
                                             nvmlDevice_t *out)
{
    (void)cpu;
    if (!count || (*count && !out))
        return NVML_ERROR_INVALID_ARGUMENT;
    return all_but(NULL, count, out);
}

/* One unit, which holds all cards. */
static char the_unit;

nvmlReturn_t sim_nvmlUnitGetCount(unsigned int *count)
{
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 1;
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlUnitGetHandleByIndex(unsigned int index, nvmlUnit_t *unit)
{
    if (!unit || index != 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    *unit = (nvmlUnit_t)(void *)&the_unit;
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlUnitGetDevices(nvmlUnit_t unit, unsigned int *count, nvmlDevice_t *out)
{
    if (unit != (nvmlUnit_t)(void *)&the_unit || !count || !out)
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned int room = *count;
    all_but(NULL, count, room < (unsigned int)machine_gpu_count() ? NULL : out);
    return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlDeviceOnSameBoard(nvmlDevice_t one, nvmlDevice_t other, int *same)
{
    if (!nvml_gpu(one) || !nvml_gpu(other) || !same)
        return NVML_ERROR_INVALID_ARGUMENT;
    *same = one == other;
    return NVML_SUCCESS;
}

/* Sets the lowest `bits` of an array of words. */
static nvmlReturn_t fill(nvmlDevice_t device, unsigned int words, unsigned long *set, size_t bits)
{
    if (!nvml_gpu(device) || words == 0 || !set)
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(set, 0, words * sizeof *set);
    for (size_t bit = 0; bit < bits && bit < words * 64ul; bit++)
        set[bit / 64] |= 1ul << bit % 64;
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int words,
                                          unsigned long *set)
{
    return fill(device, words, set, (size_t)sysconf(_SC_NPROCESSORS_CONF));
}

nvmlReturn_t sim_nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int words,
                                                     unsigned long *set, int scope)
{
    (void)scope;
    return sim_nvmlDeviceGetCpuAffinity(device, words, set);
}

nvmlReturn_t sim_nvml_nodes(nvmlDevice_t device, unsigned int words, unsigned long *set, int scope)
{
    (void)scope;
    return fill(device, words, set, 1);
}
