/* tour_driver.c -- what tour.c needs of the CUDA runtime, made of the driver API.
 *
 * For machines without a CUDA runtime. Finds the driver as the runtime does, by dlopen and dlsym.
 */
#include "driver/cuda_runtime_api.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

enum { PCI_BUS_ID = 33, PCI_DEVICE_ID = 34, PCI_DOMAIN_ID = 50, GPUS_MAX = 64 };

static struct {
    int (*init)(unsigned int flags);
    int (*error_string)(int error, const char **text);
    int (*count)(int *count);
    int (*get)(int *device, int ordinal);
    int (*name)(char *name, int bytes, int device);
    int (*uuid)(char uuid[16], int device);
    int (*total)(size_t *bytes, int device);
    int (*attribute)(int *value, int attribute, int device);
    int (*retain)(void **context, int device);
    int (*set_current)(void *context);
    int (*mem_info)(size_t *available, size_t *total);
    int (*alloc)(unsigned long long *address, size_t bytes);
    int (*set)(unsigned long long address, unsigned char value, size_t bytes);
    int (*release)(unsigned long long address);
    int (*can_access_peer)(int *can, int device, int peer);
    int (*enable_peer)(void *context, unsigned int flags);
} cu;

static void *contexts[GPUS_MAX];
static int current = -1; /* ordinal with a current context */

static cudaError_t load(void)
{
    static const char *const names[] = {
        "cuInit",
        "cuGetErrorString",
        "cuDeviceGetCount",
        "cuDeviceGet",
        "cuDeviceGetName",
        "cuDeviceGetUuid",
        "cuDeviceTotalMem_v2",
        "cuDeviceGetAttribute",
        "cuDevicePrimaryCtxRetain",
        "cuCtxSetCurrent",
        "cuMemGetInfo_v2",
        "cuMemAlloc_v2",
        "cuMemsetD8_v2",
        "cuMemFree_v2",
        "cuDeviceCanAccessPeer",
        "cuCtxEnablePeerAccess",
    };
    static int loaded;
    void *slots[sizeof names / sizeof names[0]];
    if (loaded)
        return cudaSuccess;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        return cudaErrorInitializationError;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        slots[i] = dlsym(driver, names[i]);
        if (!slots[i])
            return cudaErrorInitializationError;
    }
    memcpy(&cu, slots, sizeof cu);
    int error = cu.init(0);
    loaded = error == 0;
    return (cudaError_t)error;
}

static cudaError_t select_context(int ordinal)
{
    int device;
    int error = (int)load();
    if (!error)
        error = cu.get(&device, ordinal);
    if (!error && !contexts[ordinal])
        error = cu.retain(&contexts[ordinal], device);
    if (!error)
        error = cu.set_current(contexts[ordinal]);
    if (!error)
        current = ordinal;
    return (cudaError_t)error;
}

static cudaError_t some_context(void) { return current >= 0 ? cudaSuccess : select_context(0); }

const char *cudaGetErrorString(cudaError_t error)
{
    const char *text = NULL;
    if (error == cudaSuccess)
        return "no error";
    return cu.error_string && cu.error_string((int)error, &text) == 0 ? text : "no CUDA driver";
}

cudaError_t cudaGetLastError(void) { return cudaSuccess; }

cudaError_t cudaGetDeviceCount(int *count)
{
    cudaError_t error = load();
    return error == cudaSuccess ? (cudaError_t)cu.count(count) : error;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int ordinal)
{
    int device;
    int error = cu.get(&device, ordinal);
    memset(properties, 0, sizeof *properties);
    if (!error)
        error = cu.name(properties->name, (int)sizeof properties->name, device);
    if (!error)
        error = cu.uuid(properties->uuid.bytes, device);
    if (!error)
        error = cu.total(&properties->totalGlobalMem, device);
    if (!error)
        error = cu.attribute(&properties->pciDomainID, PCI_DOMAIN_ID, device);
    if (!error)
        error = cu.attribute(&properties->pciBusID, PCI_BUS_ID, device);
    if (!error)
        error = cu.attribute(&properties->pciDeviceID, PCI_DEVICE_ID, device);
    return (cudaError_t)error;
}

cudaError_t cudaSetDevice(int ordinal) { return select_context(ordinal); }

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    cudaError_t error = some_context();
    return error == cudaSuccess ? (cudaError_t)cu.mem_info(available, total) : error;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    unsigned long long address = 0;
    int error = (int)some_context();
    if (!error)
        error = cu.alloc(&address, bytes);
    if (!error)
        *memory = (void *)(uintptr_t)address;
    return (cudaError_t)error;
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
    return (cudaError_t)cu.set((uintptr_t)memory, (unsigned char)value, bytes);
}

cudaError_t cudaFree(void *memory) { return (cudaError_t)cu.release((uintptr_t)memory); }

cudaError_t cudaDeviceCanAccessPeer(int *can, int ordinal, int peer)
{
    int device, other;
    int error = cu.get(&device, ordinal);
    if (!error)
        error = cu.get(&other, peer);
    if (!error)
        error = cu.can_access_peer(can, device, other);
    return (cudaError_t)error;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    int ordinal = current;
    cudaError_t error = select_context(peer);
    if (error == cudaSuccess)
        error = select_context(ordinal);
    return error == cudaSuccess ? (cudaError_t)cu.enable_peer(contexts[peer], flags) : error;
}
