/* tables.c -- the private tables (simulated-driver.md, section 2): slots that are really called do
 * what is needed, the rest answer 0.
 *
 * Knows: the tables' layouts. Must not know: what the calls behind them do.
 */
#include "tables.h"

#include "api.h"
#include "context.h"
#include "devices.h"
#include "entry.h"
#include "integrity.h"
#include "local_storage.h"
#include "modules.h"

#include <string.h>

union slot {
    size_t bytes; /* of the table, in slot 0 */
    void *pointer;
    CUresult (*unused)(void);
    CUresult (*primary)(CUcontext *, CUdevice);
    CUresult (*load)(CUmodule *, const void *, void *, void *, unsigned int);
    void (*area)(void **, size_t *);
    CUresult (*put)(CUcontext, void *, void *, local_destructor *);
    CUresult (*remove)(CUcontext, void *);
    CUresult (*get)(void **, CUcontext, void *);
    CUresult (*check)(CUcontext, uint32_t *, void **);
    uint32_t (*ask)(void);
    CUresult (*thread)(void **);
    CUresult (*context)(CUcontext, uint64_t *);
    unsigned int (*integrity)(uint32_t, uint64_t, uint64_t *);
};

static CUresult slot_unused(void) { return CUDA_SUCCESS; }

/* The handle of a device's primary context, which is neither retained nor made. */
static CUresult slot_primary(CUcontext *context, CUdevice ordinal)
{
    struct device *device = device_of(ordinal);

    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    *context = &device->primary;
    return CUDA_SUCCESS;
}

static CUresult slot_load(CUmodule *module, const void *wrapper, void *one, void *other,
                          unsigned int number)
{
    (void)one, (void)other, (void)number;
    entry_lock();
    CUresult result = context_check_current();
    if (result == CUDA_SUCCESS)
        result = sim_cuModuleLoadData(module, wrapper);
    entry_end();
    return result;
}

static void slot_area_first(void **area, size_t *count)
{
    static uint32_t words[1024];

    *area = words;
    *count = sizeof words / sizeof words[0];
}

static void slot_area_second(void **area, size_t *count)
{
    static uint32_t words[14];

    *area = words;
    *count = sizeof words / sizeof words[0];
}

static CUresult slot_put(CUcontext context, void *key, void *value, local_destructor *destructor)
{
    entry_lock();
    CUresult result = local_storage_put(context, key, value, destructor);
    entry_end();
    return result;
}

static CUresult slot_remove(CUcontext context, void *key)
{
    entry_lock();
    CUresult result = local_storage_delete(context, key);
    entry_end();
    return result;
}

static CUresult slot_get(void **value, CUcontext context, void *key)
{
    entry_lock();
    CUresult result = local_storage_get(value, context, key);
    entry_end();
    return result;
}

static CUresult slot_check(CUcontext context, uint32_t *answer, void **more)
{
    (void)context, (void)more;
    *answer = 0;
    return CUDA_SUCCESS;
}

static uint32_t slot_ask(void) { return 0; }

enum { /* of each table, its size included */
       INTERFACE_SLOTS = 13,
       HOOKS_SLOTS = 7,
       TLS_SLOTS = 3,
       CHECKS_SLOTS = 5,
       INTEGRITY_SLOTS = 3,
       TOOLS_CONTEXT_SLOTS = 95,
       TOOLS_MODULE_SLOTS = 92
};

#define SIZE(slots)                                                                                \
    {                                                                                              \
        .bytes = (slots) * sizeof(union slot)                                                      \
    }

static union slot cudart_interface[INTERFACE_SLOTS] = {
    [0] = SIZE(INTERFACE_SLOTS), [2] = {.primary = slot_primary}, [6] = {.load = slot_load}};
static union slot runtime_hooks[HOOKS_SLOTS] = {
    [0] = SIZE(HOOKS_SLOTS), [2] = {.area = slot_area_first}, [6] = {.area = slot_area_second}};
static union slot tools_tls[TLS_SLOTS] = {[0] = SIZE(TLS_SLOTS)};
static union slot local_storage[] = {/* without a size, and the last is a null pointer */
                                     {.put = slot_put},
                                     {.remove = slot_remove},
                                     {.get = slot_get},
                                     {.pointer = NULL}};
static union slot context_checks[CHECKS_SLOTS] = {
    [0] = SIZE(CHECKS_SLOTS), [2] = {.check = slot_check}, [3] = {.ask = slot_ask}};
static union slot integrity[INTEGRITY_SLOTS] = {
    [0] = SIZE(INTEGRITY_SLOTS), [1] = {.integrity = integrity_check}};
static union slot tools_context[TOOLS_CONTEXT_SLOTS] = {[0] = SIZE(TOOLS_CONTEXT_SLOTS)};
static union slot tools_module[TOOLS_MODULE_SLOTS] = {[0] = SIZE(TOOLS_MODULE_SLOTS)};

static const struct table {
    unsigned char guid[16];
    union slot *slots;
} tables[] = {
    {{0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d,
      0xf9},
     cudart_interface},
    {{0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a,
      0x66},
     runtime_hooks},
    {{0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec,
      0xdc},
     tools_tls},
    {{0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95,
      0x93},
     local_storage},
    {{0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa,
      0x7e},
     context_checks},
    {{0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1,
      0xf2},
     integrity},
    {{0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8,
      0xf2},
     tools_context},
    {{0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d, 0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1, 0x99,
      0x1e},
     tools_module},
};

__attribute__((constructor)) static void fill_unused(void)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (tables[i].slots != local_storage)
            for (size_t k = 1; k < tables[i].slots[0].bytes / sizeof(union slot); k++)
                if (!tables[i].slots[k].pointer)
                    tables[i].slots[k].unused = slot_unused;
}

CUresult sim_cuGetExportTable(const void **table, const CUuuid *guid)
{
    if (!table || !guid)
        return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (memcmp(tables[i].guid, guid->bytes, sizeof tables[i].guid) == 0)
            *table = tables[i].slots;
    return *table ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

const void *tables_cudart_interface(void) { return cudart_interface; }

const void *tables_integrity(void) { return integrity; }

const void *tables_integrity_slot(void) { return integrity[1].pointer; }
