/* linker.c -- the just-in-time linker: takes anything, makes an image that is only a mark. */
#include "api.h"
#include "context.h"
#include "handles.h"

struct CUlinkState_st {
    struct handle handle;
    char image[64];
};

CUresult sim_cuLinkCreate_v2(unsigned int count, int *options, void **values, CUlinkState *out)
{
    (void)count, (void)options, (void)values;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = handle_new(HANDLE_LINKER, sizeof **out, context_current());
    return CUDA_SUCCESS;
}

CUresult sim_cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t bytes,
                              const char *name, unsigned int count, int *options, void **values)
{
    (void)type, (void)name, (void)count, (void)options, (void)values;
    if (!handle_is(state, HANDLE_LINKER))
        return CUDA_ERROR_INVALID_HANDLE;
    return data && bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuLinkAddFile_v2(CUlinkState state, int type, const char *path, unsigned int count,
                              int *options, void **values)
{
    (void)type, (void)count, (void)options, (void)values;
    if (!handle_is(state, HANDLE_LINKER))
        return CUDA_ERROR_INVALID_HANDLE;
    return path ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuLinkComplete(CUlinkState state, void **image, size_t *bytes)
{
    if (!handle_is(state, HANDLE_LINKER))
        return CUDA_ERROR_INVALID_HANDLE;
    if (image)
        *image = state->image;
    if (bytes)
        *bytes = sizeof state->image;
    return CUDA_SUCCESS;
}

CUresult sim_cuLinkDestroy(CUlinkState state)
{
    if (!handle_is(state, HANDLE_LINKER))
        return CUDA_ERROR_INVALID_HANDLE;
    handle_delete(state);
    return CUDA_SUCCESS;
}
