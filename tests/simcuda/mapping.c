/* mapping.c -- reserved addresses, and physical memory mapped into them.
 *
 * Knows: addresses. Must not know: how physical memory is made. A mapping can't be touched before
 * it has been given access.
 */
#include "api.h"
#include "devices.h"
#include "granule.h"
#include "memory.h"
#include "physical.h"

#include <stdlib.h>
#include <sys/mman.h>

struct reservation {
    CUdeviceptr base;
    size_t bytes;
    unsigned int mappings;
    struct reservation *next;
};

static struct reservation *reservations;
static struct range *mapped;

static struct reservation *reservation_of(CUdeviceptr address, size_t bytes)
{
    for (struct reservation *each = reservations; each; each = each->next)
        if (address >= each->base && address - each->base <= each->bytes &&
            bytes <= each->bytes - (address - each->base))
            return each;
    return NULL;
}

CUresult sim_cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr wish,
                                 unsigned long long flags)
{
    size_t align = alignment > GRANULE_LARGE ? alignment : GRANULE_LARGE;
    int protection = PROT_NONE, how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

    if (!out || flags || bytes == 0 || bytes % GRANULE_LARGE || (alignment & (alignment - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    char *memory = mmap(range_pointer(wish), bytes + align, protection, how, -1, 0);
    struct reservation *reservation = calloc(1, sizeof *reservation);
    if (memory == MAP_FAILED || !reservation) {
        free(reservation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    size_t skip = (align - (uintptr_t)memory % align) % align;
    if (skip)
        munmap(memory, skip);
    munmap(memory + skip + bytes, align - skip);
    *reservation = (struct reservation){range_address(memory + skip), bytes, 0, reservations};
    reservations = reservation;
    *out = reservation->base;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    for (struct reservation **link = &reservations; *link; link = &(*link)->next) {
        struct reservation *reservation = *link;
        if (reservation->base != address || reservation->bytes != bytes)
            continue;
        if (reservation->mappings)
            return CUDA_ERROR_INVALID_VALUE;
        *link = reservation->next;
        munmap(range_pointer(address), bytes);
        free(reservation);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

/* Does any mapping lie in the interval? */
static int occupied(CUdeviceptr address, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += GRANULE_LARGE)
        if (range_at(address + at))
            return 1;
    return 0;
}

CUresult sim_cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                      CUmemGenericAllocationHandle value, unsigned long long flags)
{
    struct physical *physical = physical_of(value);
    struct reservation *reservation = reservation_of(address, bytes);

    if (flags || bytes == 0 || bytes % GRANULE_LARGE || address % GRANULE_LARGE ||
        offset % GRANULE_LARGE || !physical || !reservation ||
        (physical->store->team && !team_is_complete(physical->store->team)) ||
        offset > physical->store->bytes || bytes > physical->store->bytes - offset ||
        occupied(address, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    void *memory =
        mmap(range_pointer(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
             physical->store->fd, physical->store->offset + (off_t)offset);
    if (memory == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    range_add((struct range){.base = address,
                             .bytes = bytes,
                             .kind = RANGE_MAPPING,
                             .device = physical->store->device,
                             .physical = physical,
                             .offset = offset,
                             .closed = 1},
              &mapped);
    physical->mappings++;
    reservation->mappings++;
    return CUDA_SUCCESS;
}

/* Is the interval made of whole mappings (whole = 1), or at least covered by mappings? */
static int covered(CUdeviceptr address, size_t bytes, int whole)
{
    CUdeviceptr at = address, end = address + bytes;

    while (at < end) {
        const struct range *range = range_at(at);
        if (!range || range->kind != RANGE_MAPPING ||
            (whole && (range->base != at || range->base + range->bytes > end)))
            return 0;
        at = range->base + range->bytes;
    }
    return bytes != 0;
}

CUresult sim_cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    if (!covered(address, bytes, 1))
        return CUDA_ERROR_INVALID_VALUE;
    mmap(range_pointer(address), bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    for (CUdeviceptr at = address; at < address + bytes;) {
        struct range *range = range_at(at);
        struct physical *physical = range->physical;
        at += range->bytes;
        reservation_of(range->base, range->bytes)->mappings--;
        range_remove(range, &mapped);
        physical->mappings--;
        physical_drop(physical);
    }
    return CUDA_SUCCESS;
}

static CUresult check_access(const struct range *range, const CUmemAccessDesc *access)
{
    const struct device *reader = device_of(access->location.id);

    if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return access->location.type == CU_MEM_LOCATION_TYPE_INVALID ? CUDA_ERROR_INVALID_VALUE
                                                                     : CUDA_SUCCESS;
    if (!reader)
        return CUDA_ERROR_INVALID_DEVICE;
    if (range->device && reader != range->device && !machine_peers(reader->gpu, range->device->gpu))
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    return CUDA_SUCCESS;
}

/* Who may reach a mapping: a bit for each device, the last for the host. */
static uint64_t bit_of(const CUmemLocation *location)
{
    return (uint64_t)1 << (location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : 63);
}

static void set_access(struct range *range, const CUmemAccessDesc *access)
{
    uint64_t bit = bit_of(&access->location);

    range->readable &= ~bit;
    range->writable &= ~bit;
    if (access->flags & CU_MEM_ACCESS_FLAGS_PROT_READ)
        range->readable |= bit;
    if (access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        range->writable |= bit;
    range->closed = range->readable == 0;
    mprotect(range_pointer(range->base), range->bytes,
             range->closed ? PROT_NONE : PROT_READ | PROT_WRITE);
}

CUresult sim_cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                            size_t count)
{
    if (!access || count == 0 || !covered(address, bytes, 0))
        return CUDA_ERROR_INVALID_VALUE;
    for (int pass = 0; pass < 2; pass++) /* all is judged before anything is changed */
        for (CUdeviceptr at = address; at < address + bytes;) {
            struct range *range = range_at(at);
            for (size_t i = 0; i < count; i++) {
                CUresult result = check_access(range, &access[i]);
                if (result != CUDA_SUCCESS)
                    return result;
                if (pass)
                    set_access(range, &access[i]);
            }
            at = range->base + range->bytes;
        }
    return CUDA_SUCCESS;
}

CUresult sim_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                            CUdeviceptr address)
{
    struct range *range = range_at(address);

    if (!flags || !location || !range || range->kind != RANGE_MAPPING)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t bit = bit_of(location);
    *flags = range->writable & bit   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             : range->readable & bit ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}
