/* hook_multicast.c -- multicast objects: one address for memory of several devices.
 *
 * Knows: memory that is bound to an object lives as long as the binding. Must not know: the books
 * of handles (handles.h). An object takes no memory itself; its handle is released and mapped like
 * one of memory.
 */
#include "handles.h"
#include "hook.h"
#include "posture.h"

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *prop)
{
    HOOK_ENTER(cuMulticastCreate, (handle, prop));
    if (prop && prop->numDevices > 1 && peer_is_denied())
        return peer_refuse("cuMulticastCreate");
    CUresult rc = real.cuMulticastCreate(handle, prop);
    if (rc == CUDA_SUCCESS && handle && posture_needs(WHEN_MEMORY) &&
        !handles_enter(*handle, HANDLES_NOWHERE, 0)) {
        real.cuMemRelease(*handle);
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return rc;
}

/* After the driver's answer: what cannot be remembered is not bound. `memory` is held already. */
static CUresult bound(CUresult rc, CUmemGenericAllocationHandle object, size_t offset,
                      CUmemGenericAllocationHandle memory, size_t bytes)
{
    CUmemAllocationProp prop;
    if (rc == CUDA_SUCCESS && !handles_bind(object, offset, memory)) {
        if (!real.cuMulticastUnbind || !real.cuMemGetAllocationPropertiesFromHandle ||
            real.cuMemGetAllocationPropertiesFromHandle(&prop, memory) != CUDA_SUCCESS ||
            real.cuMulticastUnbind(object, prop.location.id, offset, bytes) != CUDA_SUCCESS)
            return CUDA_SUCCESS; /* bound it stays, and charged */
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (rc != CUDA_SUCCESS)
        handles_drop(memory, HANDLES_MAPPING);
    return rc;
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle object, size_t offset,
                            CUmemGenericAllocationHandle memory, size_t memory_offset, size_t bytes,
                            unsigned long long flags)
{
    HOOK_ENTER(cuMulticastBindMem, (object, offset, memory, memory_offset, bytes, flags));
    bool known = handles_hold(memory, HANDLES_MAPPING);
    CUresult rc = real.cuMulticastBindMem(object, offset, memory, memory_offset, bytes, flags);
    return known ? bound(rc, object, offset, memory, bytes) : rc;
}

/* The memory that is mapped at an address, held. Any other (of a pool, which is charged by what it
 * reserves) has no handle: CUDA_ERROR_INVALID_VALUE. */
static CUresult hold_mapped(CUdeviceptr address, CUmemGenericAllocationHandle *memory, bool *known)
{
    void *pointer =
        (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr): the driver's type */
    *known = false;
    if (!real.cuMemRetainAllocationHandle || !real.cuMemRelease)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult rc = real.cuMemRetainAllocationHandle(memory, pointer);
    if (rc == CUDA_SUCCESS) {
        *known = handles_hold(*memory, HANDLES_MAPPING);
        real.cuMemRelease(*memory);
    }
    return rc == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : rc;
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle object, size_t offset,
                             CUdeviceptr address, size_t bytes, unsigned long long flags)
{
    CUmemGenericAllocationHandle memory;
    bool known;
    HOOK_ENTER(cuMulticastBindAddr, (object, offset, address, bytes, flags));
    CUresult rc = hold_mapped(address, &memory, &known);
    if (rc != CUDA_SUCCESS)
        return rc; /* what cannot be asked cannot be counted */
    rc = real.cuMulticastBindAddr(object, offset, address, bytes, flags);
    return known ? bound(rc, object, offset, memory, bytes) : rc;
}

/* What is unbound was bound at just this offset ("CUDA Driver API", cuMulticastUnbind). */
CUresult cuMulticastUnbind(CUmemGenericAllocationHandle object, CUdevice device, size_t offset,
                           size_t bytes)
{
    HOOK_ENTER(cuMulticastUnbind, (object, device, offset, bytes));
    int binding = handles_unbind(object, device, offset);
    CUresult rc = real.cuMulticastUnbind(object, device, offset, bytes);
    handles_unbound(binding, rc == CUDA_SUCCESS);
    return rc;
}
