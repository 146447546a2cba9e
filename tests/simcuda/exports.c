/* exports.c -- the exported functions, one for each row of api.def: the door (entry.h), then the
 * function that serves the row.
 *
 * Knows: the table. Must not know: what any function does.
 */
#include "entry.h"

#define EXPORT __attribute__((visibility("default")))

#define API(base, version, stream, symbol, served, when, takes)                                    \
    EXPORT CUresult symbol PARAMETERS_##takes;                                                     \
    EXPORT CUresult symbol PARAMETERS_##takes                                                      \
    {                                                                                              \
        CUresult result = entry_begin(API_##symbol, when);                                         \
        if (result == CUDA_SUCCESS) {                                                              \
            result = sim_##served ARGUMENTS_##takes;                                               \
            entry_end();                                                                           \
        }                                                                                          \
        return result;                                                                             \
    }
#define STUB(base, version, stream, symbol)                                                        \
    EXPORT CUresult symbol(void);                                                                  \
    EXPORT CUresult symbol(void)                                                                   \
    {                                                                                              \
        CUresult result = entry_begin(API_##symbol, AFTER_INIT);                                   \
        if (result != CUDA_SUCCESS)                                                                \
            return result;                                                                         \
        entry_end();                                                                               \
        return CUDA_ERROR_NOT_SUPPORTED;                                                           \
    }
#include "api.def"
#undef API
#undef STUB

const struct api_row api_rows[API_COUNT] = {
#define API(base, version, stream, symbol, served, when, takes)                                    \
    {#base, version, stream, #symbol, (void (*)(void))symbol},
#define STUB(base, version, stream, symbol)                                                        \
    {#base, version, stream, #symbol, (void (*)(void))symbol},
#include "api.def"
#undef API
#undef STUB
};
