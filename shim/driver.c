/* driver.c -- see driver.h. */
#include "driver.h"
#include "objects.h"
#include "once.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

struct hook_driver real;
struct hook_nvml real_nvml;

static struct library {
    void *handle;
    struct once once;
} driver, nvml;

/* Address of an original -> row. Slots are claimed by address and never emptied. */
enum { ADDRESS_SLOTS = 1024 };
static struct {
    const void *address;
    int row;
} addresses[ADDRESS_SLOTS];
_Static_assert(HOOK_ROWS < ADDRESS_SLOTS / 2, "the table is to stay at most half full");

static unsigned int first_slot(const void *address)
{
    return (unsigned int)(((uintptr_t)address * 0x9E3779B97F4A7C15U) >> 54) % ADDRESS_SLOTS;
}

static void remember(int row, void *original)
{
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

void *driver_look_up(int row)
{
    struct hook_info info;
    hook_describe(row, &info);
    void *handle = info.library == HOOK_OF_NVML ? nvml.handle : driver.handle;
    return objects_libc()->dlsym(handle, info.symbol);
}

/* Threads that meet here open and look up side by side, and the first to end fills the slots, in
 * which nothing is called: none may wait for another that may itself be waiting in dlopen for the
 * linker's lock, which this one holds (in a constructor). */

/* A slot of `real` is a function pointer, dlsym's answer an object pointer: copied as bytes. */
#define FIND(found, handle, symbol)                                                                \
    do {                                                                                           \
        void *address = objects_libc()->dlsym(handle, #symbol);                                    \
        memcpy(&(found).symbol, &address, sizeof address);                                         \
    } while (0)
#define REMEMBER(found, symbol)                                                                    \
    do {                                                                                           \
        void *address;                                                                             \
        memcpy(&address, &(found).symbol, sizeof address);                                         \
        remember(HOOK_ROW_##symbol, address);                                                      \
    } while (0)
#define RUNTIME_HOOK(symbol, parameters, arguments)

/* The driver's rows, each by one of two macros; NVML's by none. */
#define NVML_HOOK(symbol, when, parameters, arguments)
#define NVML_CALL(symbol, parameters)
static void find_driver(void *handle, struct hook_driver *found)
{
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)                    \
    FIND(*found, handle, symbol);
#define DRIVER_CALL(symbol, parameters) FIND(*found, handle, symbol);
#include "hooks.def"
#undef DRIVER_HOOK
#undef DRIVER_CALL
}

static void fill_driver(void *handle)
{
    struct hook_driver found;
    bool done;
    find_driver(handle, &found);
    if (!once_begin(&driver.once, &done))
        return;
    real = found;
    driver.handle = handle;
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)                    \
    REMEMBER(found, symbol);
#define DRIVER_CALL(symbol, parameters)
#include "hooks.def"
#undef DRIVER_HOOK
#undef DRIVER_CALL
    once_done(&driver.once);
}
#undef NVML_HOOK
#undef NVML_CALL

/* And the other way round. */
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)
#define DRIVER_CALL(symbol, parameters)
static void find_nvml(void *handle, struct hook_nvml *found)
{
#define NVML_HOOK(symbol, when, parameters, arguments) FIND(*found, handle, symbol);
#define NVML_CALL(symbol, parameters) FIND(*found, handle, symbol);
#include "hooks.def"
#undef NVML_HOOK
#undef NVML_CALL
}

static void fill_nvml(void *handle)
{
    struct hook_nvml found;
    bool done;
    find_nvml(handle, &found);
    if (!once_begin(&nvml.once, &done))
        return;
    real_nvml = found;
    nvml.handle = handle;
#define NVML_HOOK(symbol, when, parameters, arguments) REMEMBER(found, symbol);
#define NVML_CALL(symbol, parameters)
#include "hooks.def"
    once_done(&nvml.once);
}

static bool open_library(struct library *library, const char *name, bool load,
                         void (*fill)(void *handle))
{
    const struct objects_libc *libc = objects_libc();
    if (once_is_done(&library->once))
        return true;
    if (!libc->dlopen || !libc->dlsym)
        return false;
    int saved_errno = errno;
    void *handle = libc->dlopen(name, RTLD_NOW | RTLD_LOCAL | (load ? 0 : RTLD_NOLOAD));
    if (handle)
        fill(handle);
    errno = saved_errno;
    return handle != NULL;
}

bool driver_open(bool load) { return open_library(&driver, "libcuda.so.1", load, fill_driver); }

bool nvml_open(bool load) { return open_library(&nvml, "libnvidia-ml.so.1", load, fill_nvml); }
