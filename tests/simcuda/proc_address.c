/* proc_address.c -- cuGetProcAddress and _v2 over api.def (simulated-driver.md, section 3).
 *
 * Knows: the table, the reported version, SIMCUDA_MISSING. Must not know: what the functions do.
 */
#include "api.h"
#include "settings.h"
#include "version.h"

#include <string.h>

/* The row that a driver of the reported version gives for a base name, version and stream; NULL:
 * none. Sets *exists if it would give one for a greater version. */
static const struct api_row *find(const char *base, int version, int stream, int *exists)
{
    const struct api_row *best = NULL;

    for (int i = 0; i < API_COUNT; i++) {
        const struct api_row *row = &api_rows[i];
        if (strcmp(row->base, base) != 0 || row->stream != stream ||
            row->version > version_reported() || settings_missing(row->symbol))
            continue;
        *exists = 1;
        if (row->version <= version && (!best || row->version > best->version))
            best = row;
    }
    return best;
}

/* What a driver of the future answers for every name (README.md): of no table of symbols. */
enum { FUTURE_VERSION = 14000 };
static CUresult future(void) { return CUDA_ERROR_NOT_SUPPORTED; }

static CUresult look_up(const char *base, void **function, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status)
{
    const struct api_row *row = NULL;
    int exists = 0;

    if (flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
        row = find(base, version, 2, &exists);
    if (!row)
        row = find(base, version, 0, &exists);
    if (row) {
        const int newer = version >= FUTURE_VERSION && version_reported() >= FUTURE_VERSION;
        void (*address)(void) =
            newer && row->version < FUTURE_VERSION ? (void (*)(void))future : row->function;
        memcpy(function, &address, sizeof *function);
        *status = CU_GET_PROC_ADDRESS_SUCCESS;
    } else {
        *status = exists ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                         : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    return row ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* Not found: 500, and the pointer stays as it was. */
CUresult sim_cuGetProcAddress(const char *base, void **function, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status;

    if (!base || !function)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
        *function = NULL;
        return CUDA_ERROR_INVALID_VALUE;
    }
    return look_up(base, function, version, flags, &status);
}

/* Not found: success, a null pointer, and the reason in *status. */
CUresult sim_cuGetProcAddress_v2(const char *base, void **function, int version, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult *status)
{
    CUdriverProcAddressQueryResult unasked;

    if (!base || !function)
        return CUDA_ERROR_INVALID_VALUE;
    *function = NULL;
    if (flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    look_up(base, function, version, flags, status ? status : &unasked);
    return CUDA_SUCCESS;
}
