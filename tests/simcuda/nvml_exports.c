/* nvml_exports.c -- the exported functions of libnvidia-ml, one for each row of nvml.def: counted,
 * refused before nvmlInit, then served.
 *
 * Knows: the table, and how often NVML was initialised. Must not know: what any function does.
 */
#include "nvml_api.h"
#include "settings.h"
#include "simcuda.h"

#include <stdatomic.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum nvml_index {
#define NVML(symbol, served, when, takes) INDEX_##symbol,
#define NVML_STUB(symbol) INDEX_##symbol,
#include "nvml.def"
#undef NVML
#undef NVML_STUB
    NVML_COUNT
};

static const char *const names[NVML_COUNT] = {
#define NVML(symbol, served, when, takes) #symbol,
#define NVML_STUB(symbol) #symbol,
#include "nvml.def"
#undef NVML
#undef NVML_STUB
};

static _Atomic uint64_t calls[NVML_COUNT];
static atomic_int initialised;

void nvml_retain(void) { atomic_fetch_add(&initialised, 1); }

int nvml_release(void)
{
    int count = atomic_load(&initialised);

    while (count > 0)
        if (atomic_compare_exchange_weak(&initialised, &count, count - 1))
            return 0;
    return -1;
}

static nvmlReturn_t begin(enum nvml_index index, enum nvml_when when)
{
    uint64_t n = atomic_fetch_add(&calls[index], 1) + 1;
    int code = settings_has_failures() ? settings_failure(names[index], n) : 0;

    if (code)
        return (nvmlReturn_t)code;
    return when == INITIALISED && atomic_load(&initialised) == 0 ? NVML_ERROR_UNINITIALIZED
                                                                 : NVML_SUCCESS;
}

#define NVML(symbol, served, when, takes)                                                          \
    EXPORT nvmlReturn_t symbol PARAMETERS_##takes;                                                 \
    EXPORT nvmlReturn_t symbol PARAMETERS_##takes                                                  \
    {                                                                                              \
        nvmlReturn_t result = begin(INDEX_##symbol, when);                                         \
        return result == NVML_SUCCESS ? sim_##served ARGUMENTS_##takes : result;                   \
    }
#define NVML_STUB(symbol)                                                                          \
    EXPORT nvmlReturn_t symbol(void);                                                              \
    EXPORT nvmlReturn_t symbol(void)                                                               \
    {                                                                                              \
        nvmlReturn_t result = begin(INDEX_##symbol, INITIALISED);                                  \
        return result == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : result;                         \
    }
#include "nvml.def"
#undef NVML
#undef NVML_STUB

EXPORT uint64_t simcuda_nvml_calls(const char *symbol)
{
    for (int i = 0; i < NVML_COUNT; i++)
        if (strcmp(names[i], symbol) == 0)
            return atomic_load(&calls[i]);
    return 0;
}
