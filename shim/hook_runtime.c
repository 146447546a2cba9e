/* hook_runtime.c -- cudaSetDevice and cudaGetDeviceCount, for programs linked to a shared runtime.
 *
 * Knows: which runtime is the caller's. Must not know: how devices are hidden (the driver does that);
 * these two are here for what a person reads. Two runtimes may live in one process, so each caller is
 * forwarded to its own.
 */
#include "hook.h"
#include "objects.h"
#include "posture.h"
#include "view.h"

#include <dlfcn.h>
#include <string.h>

/* Caller's object -> its runtime's functions. Objects of a process are few; a caller that finds the
 * table full is resolved anew each time. A runtime that is remembered stays loaded. */
enum { CALLERS_MAX = 32 };
struct runtime {
    const struct link_map *caller; /* published last */
    cudaError_t (*cudaSetDevice)(int device);
    cudaError_t (*cudaGetDeviceCount)(int *count);
};
static struct runtime callers[CALLERS_MAX];
static int callers_used;

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

static void remember(const struct runtime *runtime)
{
    const struct objects_libc *libc = objects_libc();
    void *function;
    memcpy(&function, &runtime->cudaSetDevice, sizeof function);
    const struct link_map *object = function ? objects_holding(function) : NULL;
    if (!runtime->caller || !object || !libc->dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD))
        return;
    int slot = __atomic_fetch_add(&callers_used, 1, __ATOMIC_RELAXED);
    if (slot < 0 || slot >= CALLERS_MAX) {
        __atomic_store_n(&callers_used, CALLERS_MAX, __ATOMIC_RELAXED);
        return;
    }
    callers[slot].cudaSetDevice = runtime->cudaSetDevice;
    callers[slot].cudaGetDeviceCount = runtime->cudaGetDeviceCount;
    __atomic_store_n(&callers[slot].caller, runtime->caller, __ATOMIC_RELEASE);
}

/* By value: what another thread is filling in is not looked at. */
static struct runtime runtime_of(const void *address)
{
    const struct link_map *caller = objects_holding(address);
    struct runtime answer = {.caller = caller};
    for (int i = 0; i < CALLERS_MAX; i++) {
        const struct link_map *known = __atomic_load_n(&callers[i].caller, __ATOMIC_ACQUIRE);
        if (known == caller && known) {
            answer.cudaSetDevice = callers[i].cudaSetDevice;
            answer.cudaGetDeviceCount = callers[i].cudaGetDeviceCount;
            return answer;
        }
    }
    resolve(&answer, caller);
    remember(&answer);
    return answer;
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
