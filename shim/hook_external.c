/* hook_external.c -- external memory: what another API, or another process, allocated.
 *
 * Knows: it is charged to whoever allocated it, and that may be this process: an exported handle
 * can be imported here too. Must not know: what is mapped of it; frees of mapped buffers are
 * forwarded like any.
 */
#include "handles.h"
#include "hook.h"

/* External memory among the handles: no address and no handle of the driver's is so large. */
static uint64_t key_of(CUexternalMemory memory) { return (uint64_t)(uintptr_t)memory | 1ULL << 62; }

CUresult cuImportExternalMemory(CUexternalMemory *memory,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *from)
{
    HOOK_ENTER(cuImportExternalMemory, (memory, from));
    if (ipc_is_denied())
        return ipc_refuse("cuImportExternalMemory");
    handles_import_begins();
    CUresult rc = real.cuImportExternalMemory(memory, from);
    if (rc != CUDA_SUCCESS || !memory) {
        handles_import_failed();
        return rc;
    }
    if (!handles_imported(key_of(*memory), HANDLES_EVERYWHERE)) {
        if (real.cuDestroyExternalMemory)
            real.cuDestroyExternalMemory(*memory);
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return rc;
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory)
{
    struct handles_leave leave;
    HOOK_ENTER(cuDestroyExternalMemory, (memory));
    handles_leave(&leave, key_of(memory), HANDLES_REFERENCE);
    CUresult rc = real.cuDestroyExternalMemory(memory);
    handles_left(&leave, rc == CUDA_SUCCESS);
    return rc;
}

CUresult cuImportExternalSemaphore(CUexternalSemaphore *semaphore,
                                   const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *from)
{
    HOOK_ENTER(cuImportExternalSemaphore, (semaphore, from));
    return ipc_refuse("cuImportExternalSemaphore");
}
