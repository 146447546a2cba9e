/* libraries.c -- libraries: modules that come into being in each context that uses them, and their
 * kernels. */
#include "api.h"
#include "backing.h"
#include "context.h"
#include "devices.h"
#include "modules.h"
#include "ranges.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANAGED_BYTES = 64 << 10 };

struct CUkern_st {
    struct handle handle;
    CUlibrary library;
    char *name;
    CUkernel next;
};

struct managed { /* a managed variable: there before any context is */
    char *name;
    CUdeviceptr address;
    struct managed *next;
};

struct CUlib_st {
    struct handle handle;
    const void *image;
    CUkernel kernels;
    struct managed *variables;
    struct range *memory;
};

CUresult sim_cuLibraryLoadData(CUlibrary *out, const void *image, int *jit_options,
                               void **jit_values, unsigned int jit_count, int *options,
                               void **values, unsigned int count)
{
    (void)jit_options, (void)jit_values, (void)jit_count, (void)options, (void)values, (void)count;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!image)
        return CUDA_ERROR_INVALID_IMAGE;
    CUlibrary library = handle_new(HANDLE_LIBRARY, sizeof *library, NULL);
    library->image = image;
    *out = library;
    return CUDA_SUCCESS;
}

CUresult sim_cuLibraryLoadFromFile(CUlibrary *out, const char *path, int *jit_options,
                                   void **jit_values, unsigned int jit_count, int *options,
                                   void **values, unsigned int count)
{
    static const char somewhere[] = "file";

    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    if (access(path, R_OK) != 0)
        return CUDA_ERROR_FILE_NOT_FOUND;
    return sim_cuLibraryLoadData(out, somewhere, jit_options, jit_values, jit_count, options,
                                 values, count);
}

/* The library's module in a context; NULL: not there yet. */
static CUmodule find_module(CUlibrary library, const struct CUctx_st *context)
{
    for (struct handle *handle = handle_first(); handle; handle = handle_after(handle)) {
        CUmodule module = (CUmodule)(void *)handle;
        if (handle->kind == HANDLE_MODULE && module->library == library &&
            (!context || handle->context == context))
            return module;
    }
    return NULL;
}

static CUresult module_here(CUlibrary library, CUmodule *module)
{
    *module = find_module(library, context_current());
    return *module ? CUDA_SUCCESS : module_new(context_current(), library, library->image, module);
}

CUresult sim_cuLibraryUnload(CUlibrary library)
{
    CUmodule module;

    if (!handle_is(library, HANDLE_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    while ((module = find_module(library, NULL)))
        module_delete(module);
    while (library->kernels) {
        CUkernel kernel = library->kernels;
        library->kernels = kernel->next;
        free(kernel->name);
        handle_delete(kernel);
    }
    while (library->variables) {
        struct managed *variable = library->variables;
        library->variables = variable->next;
        range_remove(range_from(variable->address), &library->memory);
        backing_give(range_pointer(variable->address), MANAGED_BYTES);
        free(variable->name);
        free(variable);
    }
    handle_delete(library);
    return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name)
{
    if (!out || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(library, HANDLE_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!*name)
        return CUDA_ERROR_NOT_FOUND;
    for (CUkernel kernel = library->kernels; kernel; kernel = kernel->next)
        if (strcmp(kernel->name, name) == 0) {
            *out = kernel;
            return CUDA_SUCCESS;
        }
    CUkernel kernel = handle_new(HANDLE_KERNEL, sizeof *kernel, NULL);
    kernel->library = library;
    kernel->name = strdup(name);
    kernel->next = library->kernels;
    library->kernels = kernel;
    *out = kernel;
    return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    if (!module)
        return CUDA_ERROR_INVALID_VALUE;
    return handle_is(library, HANDLE_LIBRARY) ? module_here(library, module)
                                              : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library,
                                const char *name)
{
    CUmodule module;
    CUresult result = sim_cuLibraryGetModule(&module, library);

    return result == CUDA_SUCCESS ? sim_cuModuleGetGlobal_v2(address, bytes, module, name) : result;
}

/* Works without a context: runtimes ask while they register a program's variables. */
CUresult sim_cuLibraryGetManaged(CUdeviceptr *address, size_t *bytes, CUlibrary library,
                                 const char *name)
{
    if (!handle_is(library, HANDLE_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!name || !*name)
        return CUDA_ERROR_INVALID_VALUE;
    struct managed *variable = library->variables;
    while (variable && strcmp(variable->name, name) != 0)
        variable = variable->next;
    if (!variable) {
        void *memory = backing_take(MANAGED_BYTES);
        variable = calloc(1, sizeof *variable);
        if (!memory || !variable)
            abort();
        memset(memory, 0, MANAGED_BYTES);
        *variable = (struct managed){strdup(name), range_address(memory), library->variables};
        library->variables = variable;
        range_add((struct range){.base = variable->address,
                                 .bytes = MANAGED_BYTES,
                                 .charged = MANAGED_BYTES,
                                 .kind = RANGE_MANAGED},
                  &library->memory);
    }
    if (address)
        *address = variable->address;
    if (bytes)
        *bytes = MANAGED_BYTES;
    return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetUnifiedFunction(void **function, CUlibrary library, const char *name)
{
    (void)function, (void)library, (void)name;
    return CUDA_ERROR_NOT_FOUND;
}

CUresult sim_cuLibraryGetKernelCount(unsigned int *count, CUlibrary library)
{
    if (!count || !handle_is(library, HANDLE_LIBRARY))
        return CUDA_ERROR_INVALID_VALUE;
    *count = 0;
    return CUDA_SUCCESS;
}

CUresult sim_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int count, CUlibrary library)
{
    (void)kernels, (void)count;
    return handle_is(library, HANDLE_LIBRARY) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    CUmodule module;

    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(kernel, HANDLE_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = module_here(kernel->library, &module);
    if (result == CUDA_SUCCESS)
        *function = module_function(module, kernel->name);
    return result;
}

CUresult function_prepare(CUfunction function_or_kernel)
{
    CUfunction unused;

    if (handle_is(function_or_kernel, HANDLE_FUNCTION))
        return CUDA_SUCCESS;
    return sim_cuKernelGetFunction(&unused, (CUkernel)(void *)function_or_kernel);
}

CUresult sim_cuKernelGetName(const char **name, CUkernel kernel)
{
    if (!name || !handle_is(kernel, HANDLE_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    *name = kernel->name;
    return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
    if (!library || !handle_is(kernel, HANDLE_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    *library = kernel->library;
    return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *bytes)
{
    (void)index, (void)offset, (void)bytes;
    return handle_is(kernel, HANDLE_KERNEL) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuKernelSetCacheConfig(CUkernel kernel, int config, CUdevice ordinal)
{
    (void)config;
    if (!handle_is(kernel, HANDLE_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    return device_of(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
