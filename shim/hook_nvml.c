/* hook_nvml.c -- NVML sees what CUDA sees: the granted GPUs, in the granted order, with the capped
 * figures.
 *
 * Knows: NVML's ways to find a device, and its memory figures. Must not know: how the grant is
 * made. Handles are NVML's own; a handle of a GPU outside the grant is simply not to be had. Struct
 * versions are passed through. Everything else (temperature, power, processes) goes to NVML
 * untouched. Where the grant cannot be resolved NVML is left alone: CUDA is what is refused then.
 */
#include "driver.h"
#include "granted.h"
#include "hook.h"
#include "posture.h"
#include "view.h"

#include <limits.h>
#include <string.h>

/* The first statement of a hook, as HOOK_ENTER is for the driver's. */
#define NVML_ENTER(symbol, arguments)                                                              \
    do {                                                                                           \
        if (!nvml_open(true))                                                                      \
            return NVML_ERROR_LIBRARY_NOT_FOUND;                                                   \
        if (!real_nvml.symbol)                                                                     \
            return NVML_ERROR_FUNCTION_NOT_FOUND;                                                  \
        if (!posture_needs(HOOK_WHEN(symbol)))                                                     \
            return real_nvml.symbol arguments;                                                     \
    } while (0)

enum { OUTSIDE = -1 };

static const struct granted *grant(void)
{
    const struct granted *granted;
    struct text_line why;
    return granted_on_machine(&granted, &why) == GRANTED_OK ? granted : NULL;
}

/* A device's place in the view, OUTSIDE where it has none. NVML numbers GPUs, and finds a GPU's MIG
 * devices by way of it; CUDA and the policy know GPUs and MIG devices alike. */
struct place {
    int number;   /* among the GPUs that are granted whole or in part */
    int position; /* in the grant */
};
static const struct place outside = {OUTSIDE, OUTSIDE};

/* A failure is NVML's, and the answer: of a device without a name nothing can be said. */
static nvmlReturn_t find_place(const struct granted *granted, nvmlDevice_t device,
                               struct place *place)
{
    char uuid[sizeof granted->gpus[0].uuid] = "";
    *place = outside;
    if (!real_nvml.nvmlDeviceGetUUID)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    nvmlReturn_t rc = real_nvml.nvmlDeviceGetUUID(device, uuid, sizeof uuid);
    if (rc != NVML_SUCCESS)
        return rc;
    for (size_t i = 0; i < granted->card_count; i++) {
        if (strcmp(granted->gpus[granted->cards[i]].uuid, uuid) == 0)
            place->number = (int)i;
    }
    for (size_t i = 0; i < granted->count; i++) {
        if (strcmp(granted_uuid(granted, i), uuid) == 0)
            place->position = (int)i;
    }
    return NVML_SUCCESS;
}

static bool is_seen(const struct place *place)
{
    return place->number != OUTSIDE || place->position != OUTSIDE;
}

/* NVML's own answer first: it says whether it is initialised, and whether the arguments make sense.
 */
static nvmlReturn_t count_granted(nvmlReturn_t rc, unsigned int *count)
{
    const struct granted *granted = rc == NVML_SUCCESS ? grant() : NULL;
    if (granted)
        *count = (unsigned int)granted->card_count;
    return rc;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    NVML_ENTER(nvmlDeviceGetCount, (count));
    return count_granted(real_nvml.nvmlDeviceGetCount(count), count);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    NVML_ENTER(nvmlDeviceGetCount_v2, (count));
    return count_granted(real_nvml.nvmlDeviceGetCount_v2(count), count);
}

static nvmlReturn_t handle_by_index(nvmlReturn_t (*original)(unsigned int index,
                                                             nvmlDevice_t *device),
                                    unsigned int index, nvmlDevice_t *device)
{
    unsigned int count;
    nvmlReturn_t rc =
        real_nvml.nvmlDeviceGetCount_v2 ? real_nvml.nvmlDeviceGetCount_v2(&count) : NVML_SUCCESS;
    const struct granted *granted = rc == NVML_SUCCESS && device ? grant() : NULL;
    if (rc != NVML_SUCCESS)
        return rc;
    if (!granted)
        return original(index, device);
    if (index >= granted->card_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    return original(granted->cards[index], device);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    NVML_ENTER(nvmlDeviceGetHandleByIndex, (index, device));
    return handle_by_index(real_nvml.nvmlDeviceGetHandleByIndex, index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    NVML_ENTER(nvmlDeviceGetHandleByIndex_v2, (index, device));
    return handle_by_index(real_nvml.nvmlDeviceGetHandleByIndex_v2, index, device);
}

/* A device that was found by its own name: outside the grant it is not found. */
static nvmlReturn_t only_granted(nvmlReturn_t rc, nvmlDevice_t *device)
{
    const struct granted *granted = rc == NVML_SUCCESS ? grant() : NULL;
    struct place place;
    if (!granted)
        return rc;
    rc = find_place(granted, *device, &place);
    if (rc == NVML_SUCCESS && !is_seen(&place))
        rc = NVML_ERROR_NOT_FOUND;
    if (rc != NVML_SUCCESS)
        *device = NULL;
    return rc;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    NVML_ENTER(nvmlDeviceGetHandleByUUID, (uuid, device));
    return only_granted(real_nvml.nvmlDeviceGetHandleByUUID(uuid, device), device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device)
{
    NVML_ENTER(nvmlDeviceGetHandleByUUIDV, (uuid, device));
    return only_granted(real_nvml.nvmlDeviceGetHandleByUUIDV(uuid, device), device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *device)
{
    NVML_ENTER(nvmlDeviceGetHandleByPciBusId, (id, device));
    return only_granted(real_nvml.nvmlDeviceGetHandleByPciBusId(id, device), device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device)
{
    NVML_ENTER(nvmlDeviceGetHandleByPciBusId_v2, (id, device));
    return only_granted(real_nvml.nvmlDeviceGetHandleByPciBusId_v2(id, device), device);
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    NVML_ENTER(nvmlDeviceGetHandleBySerial, (serial, device));
    return only_granted(real_nvml.nvmlDeviceGetHandleBySerial(serial, device), device);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    unsigned int physical;
    struct place place = outside;
    NVML_ENTER(nvmlDeviceGetIndex, (device, index));
    if (!index)
        return real_nvml.nvmlDeviceGetIndex(device, NULL);
    nvmlReturn_t rc = real_nvml.nvmlDeviceGetIndex(device, &physical);
    if (rc != NVML_SUCCESS)
        return rc;
    const struct granted *granted = grant();
    if (granted)
        rc = find_place(granted, device, &place);
    if (rc == NVML_SUCCESS) /* a MIG device's index is NVML's, within its GPU */
        *index = place.number != OUTSIDE ? (unsigned int)place.number : physical;
    return rc;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                 nvmlDevice_t *mig)
{
    NVML_ENTER(nvmlDeviceGetMigDeviceHandleByIndex, (device, index, mig));
    return only_granted(real_nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, index, mig), mig);
}

/* Lists of devices keep NVML's contract: without room they give the number, with room at most so
 * many. */
static nvmlReturn_t filter(unsigned int room, unsigned int *count, nvmlDevice_t *devices,
                           nvmlDevice_t *all, unsigned int all_count, const struct granted *granted)
{
    unsigned int kept = 0;
    for (unsigned int i = 0; i < all_count; i++) {
        struct place place;
        nvmlReturn_t rc = find_place(granted, all[i], &place);
        if (rc != NVML_SUCCESS)
            return rc;
        if (!is_seen(&place))
            continue;
        if (devices && kept < room)
            devices[kept] = all[i];
        kept++;
    }
    *count = devices && kept > room ? room : kept;
    return NVML_SUCCESS;
}

/* NVML refuses a size without an array. */
static bool is_array(const unsigned int *count, nvmlDevice_t *devices)
{
    return count && (devices || *count == 0);
}

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level,
                                              unsigned int *count, nvmlDevice_t *devices)
{
    nvmlDevice_t all[POLICY_GPUS_MAX];
    unsigned int all_count = POLICY_GPUS_MAX;
    NVML_ENTER(nvmlDeviceGetTopologyNearestGpus, (device, level, count, devices));
    const struct granted *granted = is_array(count, devices) ? grant() : NULL;
    if (!granted)
        return real_nvml.nvmlDeviceGetTopologyNearestGpus(device, level, count, devices);
    nvmlReturn_t rc = real_nvml.nvmlDeviceGetTopologyNearestGpus(device, level, &all_count, all);
    return rc == NVML_SUCCESS ? filter(*count, count, devices, all, all_count, granted) : rc;
}

nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int cpu, unsigned int *count,
                                         nvmlDevice_t *devices)
{
    nvmlDevice_t all[POLICY_GPUS_MAX];
    unsigned int all_count = POLICY_GPUS_MAX;
    NVML_ENTER(nvmlSystemGetTopologyGpuSet, (cpu, count, devices));
    const struct granted *granted = is_array(count, devices) ? grant() : NULL;
    if (!granted)
        return real_nvml.nvmlSystemGetTopologyGpuSet(cpu, count, devices);
    nvmlReturn_t rc = real_nvml.nvmlSystemGetTopologyGpuSet(cpu, &all_count, all);
    return rc == NVML_SUCCESS ? filter(*count, count, devices, all, all_count, granted) : rc;
}

nvmlReturn_t nvmlUnitGetDevices(nvmlUnit_t unit, unsigned int *count, nvmlDevice_t *devices)
{
    nvmlDevice_t all[POLICY_GPUS_MAX];
    unsigned int all_count = POLICY_GPUS_MAX;
    NVML_ENTER(nvmlUnitGetDevices, (unit, count, devices));
    const struct granted *granted = count && devices ? grant() : NULL;
    if (!granted)
        return real_nvml.nvmlUnitGetDevices(unit, count, devices);
    const unsigned int room = *count;
    nvmlReturn_t rc = real_nvml.nvmlUnitGetDevices(unit, &all_count, all);
    if (rc == NVML_SUCCESS) /* how many there are */
        rc = filter(UINT_MAX, count, NULL, all, all_count, granted);
    if (rc == NVML_SUCCESS && *count > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    return rc == NVML_SUCCESS ? filter(room, count, devices, all, all_count, granted) : rc;
}

/* The figures of a device, in bytes, as this process may use it. False in `capped`: as they are. */
static nvmlReturn_t limit(nvmlDevice_t device, uint64_t *total, uint64_t *free_bytes, bool *capped)
{
    const struct granted *granted = grant();
    struct place place = outside;
    nvmlReturn_t rc = granted ? find_place(granted, device, &place) : NVML_SUCCESS;
    const size_t position = (size_t)place.position;
    *capped = false;
    if (place.position == OUTSIDE)
        return rc;
    const int ordinal = view_ordinal_of(granted_uuid(granted, position));
    uint64_t held = 0, cap;
    size_t layer;
    uint32_t line;
    if (ordinal >= 0) { /* NVML's total has what the driver keeps to itself, CUDA's has not */
        hook_refresh(ordinal);
        held = account_held(ordinal);
        cap = account_cap(ordinal);
    } else {
        cap = granted_cap(granted, position, *total, &layer, &line);
    }
    if (cap == ACCOUNT_NO_CAP)
        return rc;
    account_limit_to(cap, held, free_bytes, total);
    *capped = true;
    return rc;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    NVML_ENTER(nvmlDeviceGetMemoryInfo, (device, memory));
    bool capped;
    nvmlReturn_t rc = real_nvml.nvmlDeviceGetMemoryInfo(device, memory);
    if (rc != NVML_SUCCESS)
        return rc;
    uint64_t total = memory->total, free_bytes = memory->free;
    rc = limit(device, &total, &free_bytes, &capped);
    if (capped) {
        memory->total = total;
        memory->free = free_bytes;
        memory->used = total - free_bytes;
    }
    return rc;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    NVML_ENTER(nvmlDeviceGetMemoryInfo_v2, (device, memory));
    bool capped;
    nvmlReturn_t rc = real_nvml.nvmlDeviceGetMemoryInfo_v2(device, memory);
    if (rc != NVML_SUCCESS)
        return rc;
    uint64_t total = memory->total, free_bytes = memory->free;
    rc = limit(device, &total, &free_bytes, &capped);
    if (capped) {
        memory->total = total;
        memory->free = free_bytes;
        memory->used = total - free_bytes;
        memory->reserved = 0;
    }
    return rc;
}
