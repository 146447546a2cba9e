/* hook_vmm.c -- virtual memory management: handles, their references and their mappings.
 *
 * Knows: physical memory lives until its references (create, retain) and its mappings are all gone,
 * in any order. Must not know: pools, linear memory. Imported handles are not in the table: the
 * exporter paid. Address reservations take no memory.
 */
#include "fork.h"
#include "hook.h"
#include "once.h"
#include "track.h"

/* Handle -> device, bytes, references (count), mappings (owner). */
static struct track_table handles;
/* First address -> bytes, handle (owner). */
static struct track_table mappings;
/* Entries are changed under the lock, which is never held across a call into the driver. */
static struct short_lock lock;

enum { MAPPINGS_AT_ONCE = 32 };

/* Changes a handle's counts; true, with the entry, if that was the last of both and it left the
 * table. */
static bool adjust_locked(uint64_t handle, int references, int maps, struct track_entry *entry,
                          bool *known)
{
    *known = track_take(&handles, handle, entry);
    if (!*known)
        return false;
    entry->count += (uint32_t)references;
    entry->owner += (uint64_t)(int64_t)maps;
    if (entry->count == 0 && entry->owner == 0)
        return true;
    track_put(&handles, entry);
    return false;
}

static bool adjust(uint64_t handle, int references, int maps, struct track_entry *entry,
                   bool *known)
{
    short_lock_take(&lock);
    bool gone = adjust_locked(handle, references, maps, entry, known);
    short_lock_drop(&lock);
    return gone;
}

/* Undoes an adjust() of a handle that was known. */
static void adjust_back(const struct track_entry *gone_entry, bool gone, uint64_t handle,
                        int references, int maps)
{
    struct track_entry entry = *gone_entry;
    bool known;
    short_lock_take(&lock);
    if (gone) {
        entry.count = (uint32_t)references;
        entry.owner = (uint64_t)maps;
        track_put(&handles, &entry);
    } else {
        adjust_locked(handle, references, maps, &entry, &known);
    }
    short_lock_drop(&lock);
}

bool vmm_hold(CUmemGenericAllocationHandle handle)
{
    struct track_entry entry;
    bool known;
    adjust(handle, 0, 1, &entry, &known);
    return known;
}

void vmm_drop(CUmemGenericAllocationHandle handle)
{
    struct track_entry entry;
    bool known;
    if (adjust(handle, 0, -1, &entry, &known))
        account_refund(entry.device, entry.bytes);
}

void vmm_forget(void)
{
    track_forget(&handles);
    track_forget(&mappings);
    lock = (struct short_lock){0};
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct charge charge;
    HOOK_ENTER(cuMemCreate, (handle, bytes, prop, flags));
    if (!handle || !bytes || !prop || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return real.cuMemCreate(handle, bytes, prop, flags);
    CUresult rc = hook_charge(&charge, prop->location.id, "cuMemCreate", account_granule(bytes));
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuMemCreate(handle, bytes, prop, flags);
    if (charge.device == NO_DEVICE)
        return rc;
    if (rc != CUDA_SUCCESS) {
        hook_refund(&charge);
        return rc;
    }
    const struct track_entry entry = {
        .key = *handle, .bytes = charge.bytes, .device = (uint16_t)charge.device, .count = 1};
    short_lock_take(&lock);
    bool kept = track_put(&handles, &entry);
    short_lock_drop(&lock);
    if (!kept) {
        real.cuMemRelease(*handle);
        hook_refund(&charge);
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return rc;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    struct track_entry entry;
    bool known;
    HOOK_ENTER(cuMemRetainAllocationHandle, (handle, address));
    CUresult rc = real.cuMemRetainAllocationHandle(handle, address);
    if (rc == CUDA_SUCCESS && handle)
        adjust(*handle, 1, 0, &entry, &known);
    return rc;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct track_entry entry;
    bool known;
    HOOK_ENTER(cuMemRelease, (handle));
    bool gone = adjust(handle, -1, 0, &entry, &known);
    CUresult rc = real.cuMemRelease(handle);
    if (known && rc != CUDA_SUCCESS)
        adjust_back(&entry, gone, handle, 1, 0);
    else if (gone)
        account_refund(entry.device, entry.bytes);
    return rc;
}

/* The handle is held by the coming mapping before the driver makes it: its last reference may be
 * released by another thread meanwhile. */
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct track_entry entry;
    bool known;
    HOOK_ENTER(cuMemMap, (address, bytes, offset, handle, flags));
    adjust(handle, 0, 1, &entry, &known);
    CUresult rc = real.cuMemMap(address, bytes, offset, handle, flags);
    if (!known)
        return rc;
    if (rc == CUDA_SUCCESS) {
        const struct track_entry mapping = {.key = address, .bytes = bytes, .owner = handle};
        if (!track_put(&mappings, &mapping))
            rc = real.cuMemUnmap(address, bytes) == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY
                                                                 : CUDA_SUCCESS;
    }
    if (rc != CUDA_SUCCESS && adjust(handle, 0, -1, &entry, &known))
        account_refund(entry.device, entry.bytes);
    return rc;
}

struct unmapping {
    struct track_entry mapping, handle;
    bool known, gone;
};

/* One call may unmap several neighbouring mappings. */
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    struct unmapping parts[MAPPINGS_AT_ONCE];
    int count = 0;
    HOOK_ENTER(cuMemUnmap, (address, bytes));
    uint64_t at = address;
    for (; at - address < bytes && count < MAPPINGS_AT_ONCE; count++) {
        struct unmapping *part = &parts[count];
        if (!track_take(&mappings, at, &part->mapping) || part->mapping.bytes == 0)
            break;
        part->gone = adjust(part->mapping.owner, 0, -1, &part->handle, &part->known);
        at += part->mapping.bytes;
    }
    CUresult rc = real.cuMemUnmap(address, bytes);
    for (int i = 0; i < count; i++) {
        if (rc != CUDA_SUCCESS) {
            track_put(&mappings, &parts[i].mapping);
            if (parts[i].known)
                adjust_back(&parts[i].handle, parts[i].gone, parts[i].mapping.owner, 0, 1);
        } else if (parts[i].gone) {
            account_refund(parts[i].handle.device, parts[i].handle.bytes);
        }
    }
    /* More than fit above: their addresses are still the program's reservation, so nobody else has
     * them. */
    struct track_entry mapping, handle;
    bool known;
    while (rc == CUDA_SUCCESS && at - address < bytes && track_take(&mappings, at, &mapping) &&
           mapping.bytes) {
        if (adjust(mapping.owner, 0, -1, &handle, &known))
            account_refund(handle.device, handle.bytes);
        at += mapping.bytes;
    }
    return rc;
}
