/* hook_vmm.c -- virtual memory management: physical memory and where it is mapped.
 *
 * Knows: the driver's calls, and what is mapped where. Must not know: the books of handles
 * (handles.h), pools, linear memory. Address reservations take no memory.
 */
#include "fork.h"
#include "handles.h"
#include "hook.h"
#include "track.h"

/* First address -> bytes, handle (owner; 0: one that is not in the books). All mappings, since one
 * call may unmap some of either kind. */
static struct track_table mappings;

enum { MAPPINGS_AT_ONCE = 32 };

void vmm_forget(void)
{
    handles_forget();
    track_forget(&mappings);
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
    if (rc == CUDA_SUCCESS && !handles_enter(*handle, charge.device, charge.bytes)) {
        real.cuMemRelease(*handle);
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (rc != CUDA_SUCCESS)
        hook_refund(&charge);
    return rc;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    HOOK_ENTER(cuMemRetainAllocationHandle, (handle, address));
    CUresult rc = real.cuMemRetainAllocationHandle(handle, address);
    if (rc == CUDA_SUCCESS && handle)
        handles_hold(*handle, HANDLES_REFERENCE);
    return rc;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct handles_leave leave;
    HOOK_ENTER(cuMemRelease, (handle));
    handles_leave(&leave, handle, HANDLES_REFERENCE);
    CUresult rc = real.cuMemRelease(handle);
    handles_left(&leave, rc == CUDA_SUCCESS);
    return rc;
}

/* The handle is held by the coming mapping before the driver makes it: its last reference may be
 * released by another thread meanwhile. */
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    HOOK_ENTER(cuMemMap, (address, bytes, offset, handle, flags));
    bool known = handles_hold(handle, HANDLES_MAPPING);
    CUresult rc = real.cuMemMap(address, bytes, offset, handle, flags);
    if (rc == CUDA_SUCCESS) {
        const struct track_entry mapping = {
            .key = address, .bytes = bytes, .owner = known ? handle : 0};
        if (!track_put(&mappings, &mapping))
            rc = real.cuMemUnmap(address, bytes) == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY
                                                                 : CUDA_SUCCESS;
    }
    if (known && rc != CUDA_SUCCESS)
        handles_drop(handle, HANDLES_MAPPING);
    return rc;
}

struct unmapping {
    struct track_entry mapping;
    struct handles_leave leave;
};

/* One call may unmap several neighbouring mappings. */
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    struct unmapping parts[MAPPINGS_AT_ONCE];
    struct track_entry mapping;
    int count = 0;
    HOOK_ENTER(cuMemUnmap, (address, bytes));
    uint64_t at = address;
    for (; at - address < bytes && count < MAPPINGS_AT_ONCE; count++) {
        struct unmapping *part = &parts[count];
        if (!track_take(&mappings, at, &part->mapping) || part->mapping.bytes == 0)
            break;
        handles_leave(&part->leave, part->mapping.owner, HANDLES_MAPPING);
        at += part->mapping.bytes;
    }
    CUresult rc = real.cuMemUnmap(address, bytes);
    for (int i = 0; i < count; i++) {
        if (rc != CUDA_SUCCESS)
            track_put(&mappings, &parts[i].mapping);
        handles_left(&parts[i].leave, rc == CUDA_SUCCESS);
    }
    /* More than fit above: their addresses are still the program's reservation, so nobody else has
     * them. */
    while (rc == CUDA_SUCCESS && at - address < bytes && track_take(&mappings, at, &mapping) &&
           mapping.bytes) {
        handles_drop(mapping.owner, HANDLES_MAPPING);
        at += mapping.bytes;
    }
    return rc;
}

CUresult cuMemExportToShareableHandle(void *shared, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    HOOK_ENTER(cuMemExportToShareableHandle, (shared, handle, type, flags));
    if (ipc_is_denied())
        return ipc_refuse("cuMemExportToShareableHandle");
    handles_export(handle);
    return real.cuMemExportToShareableHandle(shared, handle, type, flags);
}

/* Where imported memory is, as far as the driver says. */
static int place_of(CUmemGenericAllocationHandle handle)
{
    CUmemAllocationProp prop;
    if (!real.cuMemGetAllocationPropertiesFromHandle ||
        real.cuMemGetAllocationPropertiesFromHandle(&prop, handle) != CUDA_SUCCESS)
        return HANDLES_EVERYWHERE;
    if (prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return HANDLES_NOWHERE;
    return prop.location.id >= 0 && prop.location.id < ACCOUNT_DEVICES_MAX ? prop.location.id
                                                                           : HANDLES_EVERYWHERE;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shared,
                                        CUmemAllocationHandleType type)
{
    HOOK_ENTER(cuMemImportFromShareableHandle, (handle, shared, type));
    if (ipc_is_denied())
        return ipc_refuse("cuMemImportFromShareableHandle");
    handles_import_begins();
    CUresult rc = real.cuMemImportFromShareableHandle(handle, shared, type);
    if (rc != CUDA_SUCCESS || !handle) {
        handles_import_failed();
        return rc;
    }
    if (!handles_imported(*handle, place_of(*handle))) {
        real.cuMemRelease(*handle);
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return rc;
}
