/* external.c -- external memory: what another API allocated, given as an opaque descriptor.
 *
 * Knows: descriptors of exported memory (physical.h) and plain files, which stand for another API's
 * memory. Must not know: accounting; it counts for whoever allocated it.
 */
#include "api.h"
#include "context.h"
#include "devices.h"
#include "memory.h"
#include "physical.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OPAQUE_FD = 1, PAGE = 4096 };

struct CUextMemory_st {
    struct handle handle;
    struct store *store; /* NULL: a plain file */
    int fd;
    size_t bytes;
    struct device *device;
};

/* The descriptor is the driver's from then on. */
CUresult sim_cuImportExternalMemory(CUexternalMemory *out, const struct external_memory *from)
{
    struct store *store = NULL;

    if (!out || !from || from->bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (from->type != OPAQUE_FD)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (fcntl(from->from.fd, F_GETFD) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (store_of_file(from->from.fd, &store) != CUDA_SUCCESS)
        store = NULL;
    CUexternalMemory made = handle_new(HANDLE_EXTERNAL, sizeof *made, NULL);
    made->store = store;
    made->fd = from->from.fd;
    made->bytes = from->bytes;
    made->device = store && store->device ? store->device : context_current_device();
    if (store)
        store->holders++;
    *out = made;
    return CUDA_SUCCESS;
}

CUresult sim_cuDestroyExternalMemory(CUexternalMemory memory)
{
    if (!handle_is(memory, HANDLE_EXTERNAL))
        return CUDA_ERROR_INVALID_VALUE;
    if (memory->store)
        store_drop(memory->store);
    close(memory->fd);
    handle_delete(memory);
    return CUDA_SUCCESS;
}

CUresult sim_cuExternalMemoryGetMappedBuffer(CUdeviceptr *address, CUexternalMemory memory,
                                             const struct external_buffer *buffer)
{
    CUcontext context = context_current();

    if (!address || !buffer || !handle_is(memory, HANDLE_EXTERNAL) || buffer->flags ||
        buffer->bytes == 0 || buffer->offset % PAGE || buffer->offset > memory->bytes ||
        buffer->bytes > memory->bytes - buffer->offset)
        return CUDA_ERROR_INVALID_VALUE;
    void *mapped = mmap(NULL, buffer->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                        memory->fd, (off_t)buffer->offset);
    if (mapped == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = range_address(mapped);
    range_add((struct range){.base = *address,
                             .bytes = buffer->bytes,
                             .kind = RANGE_IMPORTED,
                             .device = memory->device,
                             .context = context,
                             .mapped = buffer->bytes,
                             .freeable = 1},
              &context->memory);
    return CUDA_SUCCESS;
}
