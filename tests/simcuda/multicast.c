/* multicast.c -- multicast objects: a team of devices, and the memory that each has bound.
 *
 * Knows: what is bound where. Must not know: addresses. Bound memory lives until it is unbound or
 * the object ends. Where the real driver waits for the team to be complete, this one refuses.
 */
#include "api.h"
#include "devices.h"
#include "granule.h"
#include "physical.h"
#include "ranges.h"

#include <stdlib.h>

struct binding {
    struct physical *memory; /* NULL: a pool's */
    const struct device *device;
    size_t offset, bytes;
    struct binding *next;
};

struct team {
    size_t bytes;
    unsigned int wanted, present;
    uint64_t devices; /* a bit for each */
    struct binding *bindings;
};

int team_is_complete(const struct team *team) { return team->present == team->wanted; }

static void unbind(struct binding **link)
{
    struct binding *binding = *link;

    *link = binding->next;
    if (binding->memory) {
        binding->memory->mappings--;
        physical_drop(binding->memory);
    }
    free(binding);
}

void team_end(struct team *team)
{
    while (team->bindings)
        unbind(&team->bindings);
    free(team);
}

static struct team *team_of(CUmemGenericAllocationHandle value)
{
    const struct physical *physical = physical_of(value);

    return physical ? physical->store->team : NULL;
}

CUresult sim_cuMulticastGetGranularity(size_t *bytes, const CUmulticastObjectProp *prop, int option)
{
    (void)option;
    if (!bytes || !prop)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = GRANULE_LARGE;
    return CUDA_SUCCESS;
}

CUresult sim_cuMulticastCreate(CUmemGenericAllocationHandle *out, const CUmulticastObjectProp *prop)
{
    if (!out || !prop || prop->numDevices == 0 || prop->numDevices > (unsigned)device_count() ||
        prop->flags || prop->size == 0 || prop->size % GRANULE_LARGE)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_NOT_SUPPORTED;
    struct team *team = calloc(1, sizeof *team);
    if (!team)
        return CUDA_ERROR_OUT_OF_MEMORY;
    team->bytes = prop->size;
    team->wanted = prop->numDevices;
    struct physical *physical = physical_of_team(team, prop->size);
    if (!physical) {
        free(team);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = physical_value(physical);
    return CUDA_SUCCESS;
}

CUresult sim_cuMulticastAddDevice(CUmemGenericAllocationHandle value, CUdevice ordinal)
{
    struct team *team = team_of(value);

    if (!device_of(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!team || team_is_complete(team) || (team->devices >> ordinal & 1))
        return CUDA_ERROR_INVALID_VALUE;
    team->devices |= (uint64_t)1 << ordinal;
    team->present++;
    return CUDA_SUCCESS;
}

/* Is the interval of the object free on a device, and the device of the team? */
static int may_bind(const struct team *team, const struct device *device, size_t offset,
                    size_t bytes)
{
    if (!team || !device || !team_is_complete(team) || !(team->devices >> device->ordinal & 1) ||
        bytes == 0 || bytes % GRANULE_LARGE || offset % GRANULE_LARGE || offset > team->bytes ||
        bytes > team->bytes - offset)
        return 0;
    for (const struct binding *each = team->bindings; each; each = each->next)
        if (each->device == device && offset < each->offset + each->bytes &&
            each->offset < offset + bytes)
            return 0;
    return 1;
}

static CUresult bind(struct team *team, const struct device *device, size_t offset, size_t bytes,
                     struct physical *memory)
{
    struct binding *binding = calloc(1, sizeof *binding);

    if (!binding)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *binding = (struct binding){memory, device, offset, bytes, team->bindings};
    team->bindings = binding;
    if (memory)
        memory->mappings++;
    return CUDA_SUCCESS;
}

CUresult sim_cuMulticastBindMem(CUmemGenericAllocationHandle value, size_t offset,
                                CUmemGenericAllocationHandle memory_value, size_t memory_offset,
                                size_t bytes, unsigned long long flags)
{
    struct team *team = team_of(value);
    struct physical *memory = physical_of(memory_value);

    if (flags || !memory || memory->store->team || memory_offset % GRANULE_LARGE ||
        memory_offset > memory->store->bytes || bytes > memory->store->bytes - memory_offset ||
        !may_bind(team, memory->store->device, offset, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return bind(team, memory->store->device, offset, bytes, memory);
}

CUresult sim_cuMulticastBindAddr(CUmemGenericAllocationHandle value, size_t offset,
                                 CUdeviceptr address, size_t bytes, unsigned long long flags)
{
    struct team *team = team_of(value);
    const struct range *range = range_at(address);

    if (flags || !range || (range->kind != RANGE_MAPPING && range->kind != RANGE_POOL) ||
        (range->physical && range->physical->store->team) ||
        bytes > range->bytes - (address - range->base) ||
        !may_bind(team, range->device, offset, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return bind(team, range->device, offset, bytes, range->physical);
}

CUresult sim_cuMulticastUnbind(CUmemGenericAllocationHandle value, CUdevice ordinal, size_t offset,
                               size_t bytes)
{
    struct team *team = team_of(value);

    if (!device_of(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    for (struct binding **link = team ? &team->bindings : NULL; link && *link;
         link = &(*link)->next)
        if ((*link)->device->ordinal == ordinal && (*link)->offset == offset &&
            (*link)->bytes == bytes) {
            unbind(link);
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}
