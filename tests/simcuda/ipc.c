/* ipc.c -- memory shared between processes by a handle of 64 bytes: cuIpc*, and pool pointers.
 *
 * Knows: a process's descriptors, by /proc. Must not know: accounting; what is opened counts for
 * its exporter.
 */
#include "api.h"
#include "backing.h"
#include "context.h"
#include "devices.h"
#include "memory.h"
#include "pools.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MARK = 0x53494d43 };

struct ticket {
    uint32_t mark;
    int32_t pid, fd;
    int32_t gpu;
    uint64_t length, offset, bytes;
};

_Static_assert(sizeof(struct ticket) <= sizeof(struct ipc_handle), "a ticket fits a handle");

static CUresult write_ticket(char out[64], const struct range *range)
{
    struct backing_share share;
    struct ticket ticket = {.mark = MARK, .pid = getpid(), .gpu = range->device->gpu->index};

    if (backing_share(range_pointer(range->base), range->charged, &share) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    ticket.fd = share.fd;
    ticket.length = share.length;
    ticket.offset = share.offset;
    ticket.bytes = range->bytes;
    memset(out, 0, 64);
    memcpy(out, &ticket, sizeof ticket);
    return CUDA_SUCCESS;
}

static struct device *device_of_gpu(int gpu)
{
    for (int i = 0; i < device_count(); i++)
        if (device_of(i)->gpu->index == gpu)
            return device_of(i);
    return NULL;
}

static CUresult open_ticket(const char in[64], CUcontext context, CUdeviceptr *address)
{
    struct ticket ticket;
    char path[64];

    memcpy(&ticket, in, sizeof ticket);
    struct device *device = device_of_gpu(ticket.gpu);
    if (ticket.mark != MARK)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", ticket.pid, ticket.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return CUDA_ERROR_INVALID_VALUE;
    void *memory =
        mmap(NULL, ticket.length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    close(fd);
    if (memory == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = range_address(memory) + ticket.offset;
    range_add((struct range){.base = *address,
                             .bytes = ticket.bytes,
                             .kind = RANGE_IMPORTED,
                             .device = device,
                             .context = context,
                             .offset = ticket.offset,
                             .mapped = ticket.length},
              &context->memory);
    return CUDA_SUCCESS;
}

CUresult sim_cuIpcGetMemHandle(struct ipc_handle *handle, CUdeviceptr address)
{
    struct range *range = range_at(address);

    if (!handle || !range || range->kind != RANGE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    return write_ticket(handle->bytes, range);
}

CUresult sim_cuIpcOpenMemHandle(CUdeviceptr *address, struct ipc_handle handle, unsigned int flags)
{
    struct ticket ticket;

    memcpy(&ticket, handle.bytes, sizeof ticket);
    if (!address || flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (ticket.mark == MARK && ticket.pid == getpid())
        return CUDA_ERROR_INVALID_CONTEXT; /* one's own memory */
    return open_ticket(handle.bytes, context_current(), address);
}

CUresult sim_cuIpcCloseMemHandle(CUdeviceptr address)
{
    struct range *range = range_from(address);

    if (!range || range->kind != RANGE_IMPORTED)
        return CUDA_ERROR_INVALID_VALUE;
    memory_release(range);
    return CUDA_SUCCESS;
}

/* A shareable pool is a file that holds the card's index; its pointers are tickets. */
CUresult sim_cuMemPoolExportToShareableHandle(void *out, CUmemoryPool pool, int type,
                                              unsigned long long flags)
{
    if (!out || flags || !pool_known(pool) || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !(pool->props.handleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) || !pool->device)
        return CUDA_ERROR_INVALID_VALUE;
    int fd = memfd_create("simcuda-pool", MFD_CLOEXEC);
    int gpu = pool->device->gpu->index;
    if (fd < 0 || pwrite(fd, &gpu, sizeof gpu, 0) != sizeof gpu)
        return CUDA_ERROR_UNKNOWN;
    memcpy(out, &fd, sizeof fd);
    return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *os_handle, int type,
                                                unsigned long long flags)
{
    int fd = (int)(intptr_t)os_handle, gpu;

    if (!pool || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        pread(fd, &gpu, sizeof gpu, 0) != sizeof gpu)
        return CUDA_ERROR_INVALID_VALUE;
    struct device *device = device_of_gpu(gpu);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, device->ordinal}};
    *pool = pool_new(device, &props);
    (*pool)->imported = 1;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolExportPointer(struct pool_pointer *out, CUdeviceptr address)
{
    struct range *range = range_from(address);

    if (!out || !range || range->kind != RANGE_POOL || !range->device)
        return CUDA_ERROR_INVALID_VALUE;
    return write_ticket((char *)out->bytes, range);
}

CUresult sim_cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool,
                                    struct pool_pointer *pointer)
{
    CUcontext context = context_current();

    if (!address || !pointer || !pool_known(pool) || !pool->imported)
        return CUDA_ERROR_INVALID_VALUE;
    if (context_check(context) != CUDA_SUCCESS)
        context = &pool->device->primary;
    CUresult result = open_ticket((const char *)pointer->bytes, context, address);
    if (result == CUDA_SUCCESS)
        range_from(*address)->freeable = 1;
    return result;
}
