/* functions.c -- what is asked of and set on functions and kernels, and their launch, which does
 * nothing. */
#include "api.h"
#include "capture.h"
#include "devices.h"
#include "graph.h"
#include "modules.h"
#include "streams.h"

enum function_attribute { /* CUfunction_attribute */
                          FUNCTION_MAX_THREADS = 0,
                          FUNCTION_REGISTERS = 4,
                          FUNCTION_PTX_VERSION = 5,
                          FUNCTION_BINARY_VERSION = 6,
                          FUNCTION_MAX_DYNAMIC_SHARED = 8,
                          FUNCTION_CARVEOUT = 9,
                          FUNCTION_LAST = 15
};

static int is_callable(CUfunction function)
{
    return handle_is(function, HANDLE_FUNCTION) || handle_is(function, HANDLE_KERNEL);
}

static CUresult attribute(int *value, int number)
{
    static const int values[FUNCTION_LAST + 1] = {
        [FUNCTION_MAX_THREADS] = 1024,         [FUNCTION_REGISTERS] = 32,
        [FUNCTION_PTX_VERSION] = 80,           [FUNCTION_BINARY_VERSION] = 80,
        [FUNCTION_MAX_DYNAMIC_SHARED] = 49152, [FUNCTION_CARVEOUT] = -1,
    };

    if (!value || number < 0 || number > FUNCTION_LAST)
        return CUDA_ERROR_INVALID_VALUE;
    *value = values[number];
    return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetAttribute(int *value, int number, CUfunction function)
{
    return is_callable(function) ? attribute(value, number) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuFuncSetAttribute(CUfunction function, int number, int value)
{
    (void)value;
    if (number < 0 || number > FUNCTION_LAST)
        return CUDA_ERROR_INVALID_VALUE;
    return is_callable(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuKernelGetAttribute(int *value, int number, CUkernel kernel, CUdevice ordinal)
{
    if (!handle_is(kernel, HANDLE_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    return device_of(ordinal) ? attribute(value, number) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim_cuKernelSetAttribute(int number, int value, CUkernel kernel, CUdevice ordinal)
{
    (void)value;
    if (number < 0 || number > FUNCTION_LAST)
        return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(kernel, HANDLE_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    return device_of(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult sim_cuFuncSetCacheConfig(CUfunction function, int config)
{
    (void)config;
    return is_callable(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuFuncSetSharedMemConfig(CUfunction function, int config)
{
    return sim_cuFuncSetCacheConfig(function, config);
}

CUresult sim_cuFuncGetModule(CUmodule *module, CUfunction function)
{
    if (!module || !handle_is(function, HANDLE_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    *module = function->module;
    return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetName(const char **name, CUfunction function)
{
    if (handle_is(function, HANDLE_KERNEL))
        return sim_cuKernelGetName(name, (CUkernel)(void *)function);
    if (!name || !handle_is(function, HANDLE_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    *name = function->name;
    return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes)
{
    (void)index, (void)offset, (void)bytes;
    return is_callable(function) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_cuFuncIsLoaded(int *loaded, CUfunction function)
{
    if (!loaded || !is_callable(function))
        return CUDA_ERROR_INVALID_HANDLE;
    *loaded = 1;
    return CUDA_SUCCESS;
}

CUresult sim_cuFuncLoad(CUfunction function) { return function_prepare(function); }

static CUresult launch(CUfunction function, const unsigned int sizes[6], CUstream stream)
{
    for (int i = 0; i < 6; i++)
        if (sizes[i] == 0)
            return CUDA_ERROR_INVALID_VALUE;
    CUresult result = function_prepare(function);
    return result == CUDA_SUCCESS ? capture_or_run(stream, &(struct work){.type = NODE_KERNEL})
                                  : result;
}

CUresult sim_cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                            unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                            unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                            void **parameters, void **extra)
{
    const unsigned int sizes[] = {grid_x, grid_y, grid_z, block_x, block_y, block_z};

    (void)shared_bytes, (void)parameters, (void)extra;
    return launch(function, sizes, stream);
}

CUresult sim_cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x,
                                       unsigned int grid_y, unsigned int grid_z,
                                       unsigned int block_x, unsigned int block_y,
                                       unsigned int block_z, unsigned int shared_bytes,
                                       CUstream stream, void **parameters)
{
    return sim_cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                              shared_bytes, stream, parameters, NULL);
}

CUresult sim_cuLaunchKernelEx(const struct launch_config *config, CUfunction function,
                              void **parameters, void **extra)
{
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    return sim_cuLaunchKernel(function, config->grid[0], config->grid[1], config->grid[2],
                              config->block[0], config->block[1], config->block[2],
                              config->shared_bytes, config->stream, parameters, extra);
}
