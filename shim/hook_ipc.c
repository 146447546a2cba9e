/* hook_ipc.c -- ipc = deny: no memory or event of this process for others, nor theirs for it.
 *
 * Knows: the doors that are only guarded; those that are counted too are in hook_vmm.c and
 * hook_external.c. Must not know: what is shared through them. Closing what is open
 * (cuIpcCloseMemHandle) is always allowed.
 */
#include "hook.h"
#include "log.h"
#include "posture.h"

bool ipc_is_denied(void) { return posture_needs(WHEN_IPC) != 0; }

CUresult ipc_refuse(const char *call)
{
    const struct posture_decision *decided = posture();
    struct text_line line;
    size_t layer;
    struct policy_choice ipc = policy_ipc(decided->layers, decided->layer_count, &layer);
    if (hook_start_refusal(&line, "ipc", call, NO_DEVICE, NO_DEVICE)) {
        text_add(&line, " refused: ");
        policy_describe_rule(&line, &decided->layers[layer], ipc.line);
        text_add(&line, " says ipc = deny; share through host memory or files instead");
        log_write(POLICY_LOG_WARN, &line);
    }
    return CUDA_ERROR_NOT_PERMITTED;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
    HOOK_ENTER(cuIpcGetMemHandle, (handle, address));
    return ipc_refuse("cuIpcGetMemHandle");
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags)
{
    HOOK_ENTER(cuIpcOpenMemHandle, (address, handle, flags));
    return ipc_refuse("cuIpcOpenMemHandle");
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags)
{
    HOOK_ENTER(cuIpcOpenMemHandle_v2, (address, handle, flags));
    return ipc_refuse("cuIpcOpenMemHandle");
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
    HOOK_ENTER(cuIpcGetEventHandle, (handle, event));
    return ipc_refuse("cuIpcGetEventHandle");
}

CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
    HOOK_ENTER(cuIpcOpenEventHandle, (event, handle));
    return ipc_refuse("cuIpcOpenEventHandle");
}

CUresult cuMemPoolExportToShareableHandle(void *shared, CUmemoryPool pool,
                                          CUmemAllocationHandleType type, unsigned long long flags)
{
    HOOK_ENTER(cuMemPoolExportToShareableHandle, (shared, pool, type, flags));
    return ipc_refuse("cuMemPoolExportToShareableHandle");
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *shared,
                                            CUmemAllocationHandleType type,
                                            unsigned long long flags)
{
    HOOK_ENTER(cuMemPoolImportFromShareableHandle, (pool, shared, type, flags));
    return ipc_refuse("cuMemPoolImportFromShareableHandle");
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shared, CUdeviceptr address)
{
    HOOK_ENTER(cuMemPoolExportPointer, (shared, address));
    return ipc_refuse("cuMemPoolExportPointer");
}

CUresult cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool,
                                CUmemPoolPtrExportData *shared)
{
    HOOK_ENTER(cuMemPoolImportPointer, (address, pool, shared));
    return ipc_refuse("cuMemPoolImportPointer");
}

CUresult cuMemGetHandleForAddressRange(void *shared, CUdeviceptr address, size_t bytes,
                                       CUmemRangeHandleType type, unsigned long long flags)
{
    HOOK_ENTER(cuMemGetHandleForAddressRange, (shared, address, bytes, type, flags));
    return ipc_refuse("cuMemGetHandleForAddressRange");
}
