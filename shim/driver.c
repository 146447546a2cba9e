/* driver.c -- see driver.h. */
#include "driver.h"
#include "objects.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

struct hook_driver real;
struct hook_nvml real_nvml;

static struct library {
    void *handle;
    bool open; /* set last */
} driver, nvml;

/* Address of an original -> row. Slots are claimed by address and never emptied. */
enum { ADDRESS_SLOTS = 256 };
static struct {
    const void *address;
    int row;
} addresses[ADDRESS_SLOTS];
static void *originals[HOOK_ROWS];
_Static_assert(HOOK_ROWS < ADDRESS_SLOTS / 2, "the table is to stay at most half full");

static unsigned int first_slot(const void *address)
{
    return (unsigned int)(((uintptr_t)address * 0x9E3779B97F4A7C15U) >> 56) % ADDRESS_SLOTS;
}

static void remember(int row, void *original)
{
    __atomic_store_n(&originals[row], original, __ATOMIC_RELAXED);
    if (!original)
        return;
    for (unsigned int slot = first_slot(original);; slot = (slot + 1) % ADDRESS_SLOTS) {
        const void *held = __atomic_load_n(&addresses[slot].address, __ATOMIC_RELAXED);
        if (held == original)
            return; /* a second name of the same function */
        if (held)
            continue;
        __atomic_store_n(&addresses[slot].row, row, __ATOMIC_RELAXED);
        __atomic_store_n(&addresses[slot].address, original, __ATOMIC_RELEASE);
        return;
    }
}

int driver_row_at(const void *address)
{
    for (unsigned int slot = first_slot(address); address; slot = (slot + 1) % ADDRESS_SLOTS) {
        const void *held = __atomic_load_n(&addresses[slot].address, __ATOMIC_ACQUIRE);
        if (held == address)
            return __atomic_load_n(&addresses[slot].row, __ATOMIC_RELAXED);
        if (!held)
            break;
    }
    return -1;
}

void *driver_original(int row) { return __atomic_load_n(&originals[row], __ATOMIC_RELAXED); }

void *driver_look_up(int row)
{
    struct hook_info info;
    hook_describe(row, &info);
    void *handle = info.library == HOOK_OF_NVML ? nvml.handle : driver.handle;
    return objects_libc()->dlsym(handle, info.symbol);
}

/* A slot of `real` is a function pointer, dlsym's answer an object pointer: copied as bytes. */
#define FILL_SLOT(slots, handle, symbol)                                                           \
    do {                                                                                           \
        void *found = objects_libc()->dlsym(handle, #symbol);                                      \
        memcpy(&(slots).symbol, &found, sizeof found);                                             \
    } while (0)
#define FILL_HOOK(slots, handle, symbol)                                                           \
    do {                                                                                           \
        FILL_SLOT(slots, handle, symbol);                                                          \
        void *original;                                                                            \
        memcpy(&original, &(slots).symbol, sizeof original);                                       \
        remember(HOOK_ROW_##symbol, original);                                                     \
    } while (0)
#define RUNTIME_HOOK(symbol, parameters, arguments)

static void fill_driver(void *handle)
{
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)                    \
    FILL_HOOK(real, handle, symbol);
#define DRIVER_CALL(symbol, parameters) FILL_SLOT(real, handle, symbol);
#define NVML_HOOK(symbol, when, parameters, arguments)
#define NVML_CALL(symbol, parameters)
#include "hooks.def"
#undef DRIVER_HOOK
#undef DRIVER_CALL
#undef NVML_HOOK
#undef NVML_CALL
}

static void fill_nvml(void *handle)
{
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)
#define DRIVER_CALL(symbol, parameters)
#define NVML_HOOK(symbol, when, parameters, arguments) FILL_HOOK(real_nvml, handle, symbol);
#define NVML_CALL(symbol, parameters) FILL_SLOT(real_nvml, handle, symbol);
#include "hooks.def"
}

/* Threads that meet here open and fill side by side, with the same values: none may wait for
 * another, which may itself be waiting in dlopen for the linker's lock that this one holds (in a
 * constructor). */
static bool open_library(struct library *library, const char *name, bool load,
                         void (*fill)(void *handle))
{
    const struct objects_libc *libc = objects_libc();
    if (__atomic_load_n(&library->open, __ATOMIC_ACQUIRE))
        return true;
    if (!libc->dlopen || !libc->dlsym)
        return false;
    int saved_errno = errno;
    void *handle = libc->dlopen(name, RTLD_NOW | RTLD_LOCAL | (load ? 0 : RTLD_NOLOAD));
    if (handle) {
        __atomic_store_n(&library->handle, handle, __ATOMIC_RELAXED);
        fill(handle);
        __atomic_store_n(&library->open, true, __ATOMIC_RELEASE);
    }
    errno = saved_errno;
    return handle != NULL;
}

bool driver_open(bool load) { return open_library(&driver, "libcuda.so.1", load, fill_driver); }

bool nvml_open(bool load) { return open_library(&nvml, "libnvidia-ml.so.1", load, fill_nvml); }
