/* hook_runtime.c -- cudaSetDevice and cudaGetDeviceCount, for programs linked to a shared runtime.
 *
 * Knows: which runtime is the caller's. Must not know: how devices are hidden (the driver does
 * that); these two are here for what a person reads. Two runtimes may live in one process, so each
 * caller is forwarded to its own.
 */
#include "hook.h"
#include "objects.h"

#include <dlfcn.h>
#include <string.h>

/* Call site -> its runtime's functions. A site is remembered for good, and the runtime that it was
 * given stays loaded; one that finds its places taken is resolved anew each time. */
enum { SITES = 256, PROBES = 8 };
struct runtime {
    cudaError_t (*cudaSetDevice)(int device);
    cudaError_t (*cudaGetDeviceCount)(int *count);
};
static struct site {
    const void *address; /* claimed first */
    int ready;           /* set last */
    struct runtime runtime;
} sites[SITES];

static void *find(const struct link_map *caller, const char *name, const void *ours)
{
    const struct objects_libc *libc = objects_libc();
    void *found = NULL;
    if (!libc->dlsym || !libc->dlopen)
        return NULL;
    if (caller && caller != objects_first() && caller->l_name[0]) {
        void *handle = libc->dlopen(caller->l_name, RTLD_LAZY | RTLD_NOLOAD);
        if (handle) {
            found = libc->dlsym(handle, name);
            libc->dlclose(handle);
        }
    }
    if (!found || found == ours)
        found = libc->dlsym(RTLD_NEXT, name);
    return found == ours ? NULL : found;
}

static void resolve(struct runtime *runtime, const struct link_map *caller)
{
    void *set = find(caller, "cudaSetDevice", (void *)(uintptr_t)cudaSetDevice);
    void *count = find(caller, "cudaGetDeviceCount", (void *)(uintptr_t)cudaGetDeviceCount);
    memcpy(&runtime->cudaSetDevice, &set, sizeof set);
    memcpy(&runtime->cudaGetDeviceCount, &count, sizeof count);
}

static bool pin(const struct runtime *runtime)
{
    void *function;
    memcpy(&function, &runtime->cudaSetDevice, sizeof function);
    const struct link_map *object = function ? objects_holding(function) : NULL;
    return object && objects_libc()->dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD);
}

static struct runtime runtime_of(const void *address)
{
    struct runtime runtime;
    struct site *free_site = NULL;
    for (unsigned int i = 0; i < PROBES && !free_site; i++) {
        struct site *site = &sites[((uintptr_t)address / 4 + i) % SITES];
        const void *held = __atomic_load_n(&site->address, __ATOMIC_RELAXED);
        if (held == address && __atomic_load_n(&site->ready, __ATOMIC_ACQUIRE))
            return site->runtime;
        if (!held && __atomic_compare_exchange_n(&site->address, &held, address, false,
                                                 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            free_site = site;
    }
    resolve(&runtime, objects_holding(address));
    if (free_site && pin(&runtime)) {
        free_site->runtime = runtime;
        __atomic_store_n(&free_site->ready, 1, __ATOMIC_RELEASE);
    }
    return runtime;
}

cudaError_t cudaSetDevice(int device)
{
    struct runtime runtime = runtime_of(__builtin_return_address(0));
    if (!runtime.cudaSetDevice)
        return cudaErrorInitializationError;
    cudaError_t rc = runtime.cudaSetDevice(device);
    if (rc == cudaErrorInvalidDevice)
        hook_explain_ordinal("cudaSetDevice", device);
    return rc;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    struct runtime runtime = runtime_of(__builtin_return_address(0));
    if (!runtime.cudaGetDeviceCount)
        return cudaErrorInitializationError;
    return runtime.cudaGetDeviceCount(count);
}
