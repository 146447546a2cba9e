/* errors.c -- the names and sentences of results. */
#include "api.h"

static const struct error {
    int code;
    const char *name, *sentence;
} errors[] = {
#define ERROR(code, name, sentence) {code, #name, sentence},
#include "errors.def"
#undef ERROR
};

static const struct error *find(CUresult code)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == (int)code)
            return &errors[i];
    return NULL;
}

CUresult sim_cuGetErrorName(CUresult code, const char **name)
{
    const struct error *error = find(code);

    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    *name = error ? error->name : NULL;
    return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGetErrorString(CUresult code, const char **sentence)
{
    const struct error *error = find(code);

    if (!sentence)
        return CUDA_ERROR_INVALID_VALUE;
    *sentence = error ? error->sentence : NULL;
    return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
