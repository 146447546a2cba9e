/* physical.c -- see physical.h; the calls on allocation handles.
 *
 * Memory that can be exported is a file of its own, named after its card, so that an importer knows
 * whose it is. All other memory is a piece of one endless sparse file: a process may hold more
 * handles than descriptors.
 */
#include "physical.h"

#include "api.h"
#include "devices.h"
#include "granule.h"
#include "memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char file_name[] = "simcuda-gpu";

static int common_fd = -1;
static off_t common_end;

static int is_host(CUmemLocationType type)
{
    return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
           type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static CUresult check_prop(const CUmemAllocationProp *prop)
{
    if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (is_host(prop->location.type))
        return CUDA_SUCCESS;
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    return device_of(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

struct physical *physical_of(CUmemGenericAllocationHandle value)
{
    struct physical *physical = (struct physical *)(uintptr_t)value;

    return handle_is(physical, HANDLE_PHYSICAL) && physical->references ? physical : NULL;
}

CUmemGenericAllocationHandle physical_value(struct physical *physical)
{
    return (uintptr_t)physical;
}

static struct physical *new_handle(struct store *store)
{
    struct physical *physical = handle_new(HANDLE_PHYSICAL, sizeof *physical, NULL);

    physical->references = 1;
    physical->store = store;
    store->holders++;
    return physical;
}

static void end_store(struct store *store)
{
    if (store->own_file)
        close(store->fd);
    else
        fallocate(store->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, store->offset,
                  (off_t)store->bytes);
    if (store->charged)
        memory_refund(store->device, store->bytes);
    if (store->team)
        team_end(store->team);
    free(store);
}

void store_drop(struct store *store)
{
    if (--store->holders == 0)
        end_store(store);
}

void physical_drop(struct physical *physical)
{
    struct store *store = physical->store;

    if (physical->references || physical->mappings)
        return;
    handle_delete(physical);
    store_drop(store);
}

static int open_file(struct store *store)
{
    char name[32];

    if (store->prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        snprintf(name, sizeof name, "%s%d", file_name,
                 store->device ? store->device->gpu->index : -1);
        store->fd = memfd_create(name, MFD_CLOEXEC);
        store->own_file = 1;
        return store->fd >= 0 ? ftruncate(store->fd, (off_t)store->bytes) : -1;
    }
    if (common_fd < 0) {
        common_fd = memfd_create("simcuda", MFD_CLOEXEC);
        if (common_fd < 0 || ftruncate(common_fd, (off_t)1 << 46) != 0)
            return -1;
    }
    store->fd = common_fd;
    store->offset = common_end;
    common_end += (off_t)store->bytes;
    return 0;
}

struct physical *physical_of_team(struct team *team, size_t bytes)
{
    struct store *store = calloc(1, sizeof *store);

    if (!store)
        return NULL;
    store->bytes = bytes;
    store->team = team;
    if (open_file(store) == 0)
        return new_handle(store);
    free(store);
    return NULL;
}

CUresult sim_cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
                                           int option)
{
    CUresult result = check_prop(prop);

    (void)option;
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *bytes = GRANULE_LARGE;
    return result;
}

CUresult sim_cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes,
                         const CUmemAllocationProp *prop, unsigned long long flags)
{
    CUresult result = check_prop(prop);

    if (!out || flags || bytes == 0 || bytes % GRANULE_LARGE)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    struct store *store = calloc(1, sizeof *store);
    if (!store)
        return CUDA_ERROR_OUT_OF_MEMORY;
    store->bytes = bytes;
    store->prop = *prop;
    if (!is_host(prop->location.type))
        store->device = device_of(prop->location.id);
    if (store->device)
        result = memory_charge(store->device, bytes);
    store->charged = store->device && result == CUDA_SUCCESS;
    if (result == CUDA_SUCCESS && open_file(store) != 0)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        if (store->charged)
            memory_refund(store->device, bytes);
        free(store);
        return result;
    }
    *out = physical_value(new_handle(store));
    return CUDA_SUCCESS;
}

CUresult sim_cuMemRelease(CUmemGenericAllocationHandle value)
{
    struct physical *physical = physical_of(value);

    if (!physical)
        return CUDA_ERROR_INVALID_VALUE;
    physical->references--;
    physical_drop(physical);
    return CUDA_SUCCESS;
}

CUresult sim_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address)
{
    struct range *range = range_at(range_address(address));

    if (!out || !range || range->kind != RANGE_MAPPING)
        return CUDA_ERROR_INVALID_VALUE;
    range->physical->references++;
    *out = physical_value(range->physical);
    return CUDA_SUCCESS;
}

CUresult sim_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                    CUmemGenericAllocationHandle value)
{
    struct physical *physical = physical_of(value);

    if (!prop || !physical || physical->store->team)
        return CUDA_ERROR_INVALID_VALUE;
    *prop = physical->store->prop;
    return CUDA_SUCCESS;
}

CUresult sim_cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle value, int type,
                                          unsigned long long flags)
{
    struct physical *physical = physical_of(value);

    if (!out || flags || !physical || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !physical->store->own_file)
        return CUDA_ERROR_INVALID_VALUE;
    int fd = fcntl(physical->store->fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return CUDA_ERROR_UNKNOWN;
    memcpy(out, &fd, sizeof fd);
    return CUDA_SUCCESS;
}

/* The store of this process that a descriptor stands for; NULL: another process's. */
static struct store *find_store(const struct stat *file)
{
    struct stat other;

    for (struct handle *handle = handle_first(); handle; handle = handle_after(handle)) {
        if (handle->kind != HANDLE_PHYSICAL)
            continue;
        struct store *store = ((struct physical *)(void *)handle)->store;
        if (store->own_file && fstat(store->fd, &other) == 0 && other.st_ino == file->st_ino &&
            other.st_dev == file->st_dev)
            return store;
    }
    return NULL;
}

/* The device whose memory a descriptor's file is, by the file's name. */
static CUresult device_of_file(int fd, struct device **device)
{
    char link[64], name[128];
    int gpu;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, name, sizeof name - 1);
    name[length < 0 ? 0 : length] = '\0';
    const char *found = strstr(name, file_name);
    if (!found || sscanf(found + sizeof file_name - 1, "%d", &gpu) != 1)
        return CUDA_ERROR_INVALID_VALUE;
    *device = NULL;
    for (int i = 0; i < device_count(); i++)
        if (device_of(i)->gpu->index == gpu)
            *device = device_of(i);
    return *device || gpu < 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult import_store(int fd, const struct stat *file, struct store **out)
{
    struct device *device = NULL;
    CUresult result = device_of_file(fd, &device);

    if (result != CUDA_SUCCESS)
        return result;
    struct store *store = calloc(1, sizeof *store);
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (!store || own < 0) {
        free(store);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    store->device = device;
    store->bytes = (size_t)file->st_size;
    store->fd = own;
    store->own_file = 1;
    store->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    store->prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    store->prop.location.type = device ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST;
    store->prop.location.id = device ? device->ordinal : 0;
    *out = store;
    return CUDA_SUCCESS;
}

CUresult store_of_file(int fd, struct store **store)
{
    struct stat file;

    if (fstat(fd, &file) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *store = find_store(&file);
    return *store ? CUDA_SUCCESS : import_store(fd, &file, store);
}

CUresult sim_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *os_handle,
                                            int type)
{
    struct store *store;

    if (!out || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = store_of_file((int)(intptr_t)os_handle, &store);
    if (result == CUDA_SUCCESS)
        *out = physical_value(new_handle(store));
    return result;
}
