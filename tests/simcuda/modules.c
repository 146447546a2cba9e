/* modules.c -- see modules.h. */
#include "modules.h"

#include "api.h"
#include "backing.h"
#include "context.h"
#include "memory.h"
#include "settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VARIABLE_BYTES = 64 << 10 };

struct variable {
    char *name;
    CUdeviceptr address;
    struct variable *next;
};

CUresult module_new(CUcontext context, CUlibrary library, const void *image, CUmodule *out)
{
    if (!image)
        return CUDA_ERROR_INVALID_IMAGE;
    CUresult result = context_take_overhead(context, settings_module_bytes());
    if (result != CUDA_SUCCESS)
        return result;
    CUmodule module = handle_new(HANDLE_MODULE, sizeof *module, context);
    module->library = library;
    module->code_bytes = settings_module_bytes();
    *out = module;
    return CUDA_SUCCESS;
}

void module_delete(CUmodule module)
{
    while (module->functions) {
        CUfunction function = module->functions;
        module->functions = function->next;
        free(function->name);
        handle_delete(function);
    }
    while (module->variables) {
        struct variable *variable = module->variables;
        module->variables = variable->next;
        memory_release(range_from(variable->address));
        free(variable->name);
        free(variable);
    }
    context_give_overhead(module->handle.context, module->code_bytes);
    handle_delete(module);
}

void modules_empty(CUcontext context)
{
    CUmodule module;

    while ((module = handle_any(HANDLE_MODULE, context)))
        module_delete(module);
}

CUfunction module_function(CUmodule module, const char *name)
{
    for (CUfunction function = module->functions; function; function = function->next)
        if (strcmp(function->name, name) == 0)
            return function;
    CUfunction function = handle_new(HANDLE_FUNCTION, sizeof *function, module->handle.context);
    function->module = module;
    function->name = strdup(name);
    function->next = module->functions;
    module->functions = function;
    return function;
}

static CUresult make_variable(CUmodule module, const char *name, CUdeviceptr *address)
{
    CUcontext context = module->handle.context;
    CUresult result = context_take_overhead(context, VARIABLE_BYTES);

    if (result != CUDA_SUCCESS)
        return result;
    void *memory = backing_take(VARIABLE_BYTES);
    struct variable *variable = calloc(1, sizeof *variable);
    if (!memory || !variable)
        abort();
    memset(memory, 0, VARIABLE_BYTES);
    *address = range_address(memory);
    range_add((struct range){.base = *address,
                             .bytes = VARIABLE_BYTES,
                             .charged = VARIABLE_BYTES,
                             .kind = RANGE_GLOBAL,
                             .device = context->device,
                             .context = context},
              &context->memory);
    *variable = (struct variable){strdup(name), *address, module->variables};
    module->variables = variable;
    return CUDA_SUCCESS;
}

CUresult module_variable(CUmodule module, const char *name, CUdeviceptr *address, size_t *bytes)
{
    struct variable *variable = module->variables;
    CUdeviceptr found = 0;
    CUresult result = CUDA_SUCCESS;

    while (variable && strcmp(variable->name, name) != 0)
        variable = variable->next;
    if (variable)
        found = variable->address;
    else
        result = make_variable(module, name, &found);
    if (result == CUDA_SUCCESS && address)
        *address = found;
    if (result == CUDA_SUCCESS && bytes)
        *bytes = VARIABLE_BYTES;
    return result;
}

CUresult sim_cuModuleLoadData(CUmodule *module, const void *image)
{
    return module ? module_new(context_current(), NULL, image, module) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                                int *options, void **values)
{
    (void)count, (void)options, (void)values;
    return sim_cuModuleLoadData(module, image);
}

CUresult sim_cuModuleLoad(CUmodule *module, const char *path)
{
    if (!module || !path)
        return CUDA_ERROR_INVALID_VALUE;
    return access(path, R_OK) == 0 ? sim_cuModuleLoadData(module, path) : CUDA_ERROR_FILE_NOT_FOUND;
}

CUresult sim_cuModuleUnload(CUmodule module)
{
    if (!handle_is(module, HANDLE_MODULE) || module->library)
        return CUDA_ERROR_INVALID_HANDLE;
    module_delete(module);
    return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    if (!function || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(module, HANDLE_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!*name)
        return CUDA_ERROR_NOT_FOUND;
    *function = module_function(module, name);
    return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module,
                                  const char *name)
{
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(module, HANDLE_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    return *name ? module_variable(module, name, address, bytes) : CUDA_ERROR_NOT_FOUND;
}

CUresult sim_cuModuleGetLoadingMode(int *mode)
{
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = 2; /* lazy */
    return CUDA_SUCCESS;
}

/* Nobody knows what an image holds: no functions are counted. */
CUresult sim_cuModuleGetFunctionCount(unsigned int *count, CUmodule module)
{
    if (!count || !handle_is(module, HANDLE_MODULE))
        return CUDA_ERROR_INVALID_VALUE;
    *count = 0;
    return CUDA_SUCCESS;
}

CUresult sim_cuModuleEnumerateFunctions(CUfunction *functions, unsigned int count, CUmodule module)
{
    (void)functions, (void)count;
    return handle_is(module, HANDLE_MODULE) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
