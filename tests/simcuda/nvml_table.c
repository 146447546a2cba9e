/* nvml_table.c -- the private table that nvidia-smi asks for (simulated-driver.md, section 7):
 * every slot refuses. */
#include "nvml_api.h"

#include <string.h>

enum { SLOTS = 251 };

union entry {
    size_t bytes; /* of the table, in slot 0 */
    nvmlReturn_t (*refuse)(void);
};

static nvmlReturn_t refuse(void) { return NVML_ERROR_NOT_SUPPORTED; }

static union entry table[SLOTS];

__attribute__((constructor)) static void fill(void)
{
    table[0].bytes = sizeof table;
    for (int i = 1; i < SLOTS; i++)
        table[i].refuse = refuse;
}

nvmlReturn_t sim_nvmlInternalGetExportTable(const void **out, const CUuuid *guid)
{
    static const unsigned char known[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                            0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};

    if (!out || !guid || memcmp(known, guid->bytes, sizeof known) != 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    *out = table;
    return NVML_SUCCESS;
}
