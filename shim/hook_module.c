/* hook_module.c -- what takes memory in a context without an allocation call: the load of modules
 * and libraries, the first look at their variables, larger heaps.
 *
 * Knows: the doors, and how to go back through them. Must not know: how the memory is measured
 * (overhead.h). A load that takes the process past its cap is undone and answered "out of memory".
 */
#include "fork.h"
#include "hook.h"
#include "overhead.h"
#include "track.h"

/* Modules and libraries whose variables have been asked for: what is loaded lazily is there then.
 */
static struct track_table seen;

void module_forget(void) { track_forget(&seen); }

/* Hands a loaded module to the caller, or unloads it where it took the process past its cap. */
static CUresult finish(const char *call, CUresult rc, const struct overhead_watch *watch,
                       CUmodule loaded, CUmodule *module)
{
    if (rc != CUDA_SUCCESS)
        return rc;
    if (!overhead_watched(watch) && real.cuModuleUnload) {
        hook_say_over_cap(call, watch->device, 0);
        rc = real.cuModuleUnload(loaded);
        (void)overhead_watched(watch);
        if (rc == CUDA_SUCCESS)
            return CUDA_ERROR_OUT_OF_MEMORY; /* else it is there, and counts */
    }
    *module = loaded;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    struct overhead_watch watch;
    CUmodule loaded = NULL;
    HOOK_ENTER(cuModuleLoad, (module, path));
    if (!module)
        return real.cuModuleLoad(module, path);
    overhead_watch(&watch);
    CUresult rc = real.cuModuleLoad(&loaded, path);
    return finish("cuModuleLoad", rc, &watch, loaded, module);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    struct overhead_watch watch;
    CUmodule loaded = NULL;
    HOOK_ENTER(cuModuleLoadData, (module, image));
    if (!module)
        return real.cuModuleLoadData(module, image);
    overhead_watch(&watch);
    CUresult rc = real.cuModuleLoadData(&loaded, image);
    return finish("cuModuleLoadData", rc, &watch, loaded, module);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                            CUjit_option *options, void **values)
{
    struct overhead_watch watch;
    CUmodule loaded = NULL;
    HOOK_ENTER(cuModuleLoadDataEx, (module, image, count, options, values));
    if (!module)
        return real.cuModuleLoadDataEx(module, image, count, options, values);
    overhead_watch(&watch);
    CUresult rc = real.cuModuleLoadDataEx(&loaded, image, count, options, values);
    return finish("cuModuleLoadDataEx", rc, &watch, loaded, module);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *binary)
{
    struct overhead_watch watch;
    CUmodule loaded = NULL;
    HOOK_ENTER(cuModuleLoadFatBinary, (module, binary));
    if (!module)
        return real.cuModuleLoadFatBinary(module, binary);
    overhead_watch(&watch);
    CUresult rc = real.cuModuleLoadFatBinary(&loaded, binary);
    return finish("cuModuleLoadFatBinary", rc, &watch, loaded, module);
}

/* A handle may be given out again. */
static void forget(const void *handle)
{
    struct track_entry entry;
    (void)track_take(&seen, (uint64_t)(uintptr_t)handle, &entry);
}

CUresult cuModuleUnload(CUmodule module)
{
    struct overhead_watch watch;
    HOOK_ENTER(cuModuleUnload, (module));
    forget(module);
    overhead_watch(&watch);
    CUresult rc = real.cuModuleUnload(module);
    (void)overhead_watched(&watch);
    return rc;
}

/* Only the first question is watched: programs ask again and again. */
static void watch_first(struct overhead_watch *watch, const void *handle)
{
    const struct track_entry fresh = {.key = (uint64_t)(uintptr_t)handle};
    struct track_entry entry;
    watch->device = NO_DEVICE;
    if (!track_find(&seen, fresh.key, &entry) && track_put(&seen, &fresh))
        overhead_watch(watch);
}

/* What is there cannot be taken away again; it counts. */
CUresult cuModuleGetGlobal(CUdeviceptr_v1 *dptr, unsigned int *bytes, CUmodule module,
                           const char *name)
{
    struct overhead_watch watch;
    HOOK_ENTER(cuModuleGetGlobal, (dptr, bytes, module, name));
    watch_first(&watch, module);
    CUresult rc = real.cuModuleGetGlobal(dptr, bytes, module, name);
    (void)overhead_watched(&watch);
    return rc;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule module, const char *name)
{
    struct overhead_watch watch;
    HOOK_ENTER(cuModuleGetGlobal_v2, (dptr, bytes, module, name));
    watch_first(&watch, module);
    CUresult rc = real.cuModuleGetGlobal_v2(dptr, bytes, module, name);
    (void)overhead_watched(&watch);
    return rc;
}

static CUresult finish_library(const char *call, CUresult rc, const struct overhead_watch *watch,
                               CUlibrary loaded, CUlibrary *library)
{
    if (rc != CUDA_SUCCESS)
        return rc;
    if (!overhead_watched(watch) && real.cuLibraryUnload) {
        hook_say_over_cap(call, watch->device, 0);
        rc = real.cuLibraryUnload(loaded);
        (void)overhead_watched(watch);
        if (rc == CUDA_SUCCESS)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *library = loaded;
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit_options,
                           void **jit_values, unsigned int jit_count, CUlibraryOption *options,
                           void **values, unsigned int count)
{
    struct overhead_watch watch;
    CUlibrary loaded = NULL;
    HOOK_ENTER(cuLibraryLoadData,
               (library, code, jit_options, jit_values, jit_count, options, values, count));
    if (!library)
        return real.cuLibraryLoadData(library, code, jit_options, jit_values, jit_count, options,
                                      values, count);
    overhead_watch(&watch);
    CUresult rc = real.cuLibraryLoadData(&loaded, code, jit_options, jit_values, jit_count, options,
                                         values, count);
    return finish_library("cuLibraryLoadData", rc, &watch, loaded, library);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit_options,
                               void **jit_values, unsigned int jit_count, CUlibraryOption *options,
                               void **values, unsigned int count)
{
    struct overhead_watch watch;
    CUlibrary loaded = NULL;
    HOOK_ENTER(cuLibraryLoadFromFile,
               (library, path, jit_options, jit_values, jit_count, options, values, count));
    if (!library)
        return real.cuLibraryLoadFromFile(library, path, jit_options, jit_values, jit_count,
                                          options, values, count);
    overhead_watch(&watch);
    CUresult rc = real.cuLibraryLoadFromFile(&loaded, path, jit_options, jit_values, jit_count,
                                             options, values, count);
    return finish_library("cuLibraryLoadFromFile", rc, &watch, loaded, library);
}

CUresult cuLibraryUnload(CUlibrary library)
{
    struct overhead_watch watch;
    HOOK_ENTER(cuLibraryUnload, (library));
    forget(library);
    overhead_watch(&watch);
    CUresult rc = real.cuLibraryUnload(library);
    (void)overhead_watched(&watch);
    return rc;
}

/* Loads the library into the current context; what is there stays, and counts. */
CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    struct overhead_watch watch;
    HOOK_ENTER(cuLibraryGetModule, (module, library));
    overhead_watch(&watch);
    CUresult rc = real.cuLibraryGetModule(module, library);
    (void)overhead_watched(&watch);
    return rc;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    struct overhead_watch watch;
    HOOK_ENTER(cuLibraryGetGlobal, (dptr, bytes, library, name));
    watch_first(&watch, library);
    CUresult rc = real.cuLibraryGetGlobal(dptr, bytes, library, name);
    (void)overhead_watched(&watch);
    return rc;
}

CUresult cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
    struct overhead_watch watch;
    HOOK_ENTER(cuLibraryGetManaged, (dptr, bytes, library, name));
    watch_first(&watch, library);
    CUresult rc = real.cuLibraryGetManaged(dptr, bytes, library, name);
    (void)overhead_watched(&watch);
    return rc;
}

/* The heap of kernels' malloc, the buffer of their printf, their stacks. */
CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    struct overhead_watch watch;
    size_t before;
    HOOK_ENTER(cuCtxSetLimit, (limit, value));
    overhead_watch(&watch);
    const bool reversible = watch.device != NO_DEVICE && real.cuCtxGetLimit &&
                            real.cuCtxGetLimit(&before, limit) == CUDA_SUCCESS;
    CUresult rc = real.cuCtxSetLimit(limit, value);
    if (rc != CUDA_SUCCESS || overhead_watched(&watch) || !reversible)
        return rc;
    hook_say_over_cap("cuCtxSetLimit", watch.device, 0);
    real.cuCtxSetLimit(limit, before);
    (void)overhead_watched(&watch);
    return CUDA_ERROR_OUT_OF_MEMORY;
}
