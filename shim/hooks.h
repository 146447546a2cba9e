/* hooks.h -- what hooks.def says, in C: the hooks, the slots of the originals, the names.
 *
 * Knows: the list. Must not know: what any hook does, or how an original is found (driver.h).
 */
#ifndef GPUSHIM_SHIM_HOOKS_H
#define GPUSHIM_SHIM_HOOKS_H

#include "cuda_abi.h"
#include "nvml_abi.h"

/* Which rules make a hook necessary. A hook is handed out where its row's bits and the policy's
 * needs (posture.h) have one in common; WHEN_ACTIVE is set in every policy that restricts this
 * process. */
enum hook_when {
    WHEN_ACTIVE = 1 << 0,      /* any rule at all */
    WHEN_VIEW = 1 << 1,        /* `devices` names GPUs */
    WHEN_MEMORY = 1 << 2,      /* a memory cap */
    WHEN_MANAGED = 1 << 3,     /* managed = deny */
    WHEN_PEER = 1 << 4,        /* peer_access = deny */
    WHEN_CONTEXTS = 1 << 5,    /* devices_per_process = N */
    WHEN_IPC = 1 << 6,         /* ipc = deny */
    WHEN_NVML_VIEW = 1 << 7,   /* `devices` names GPUs, and nvml = follow */
    WHEN_NVML_MEMORY = 1 << 8, /* a memory cap, and nvml = follow */
    WHEN_COPIES = 1 << 9,      /* cross_device_copy = deny */
    WHEN_OVERHEAD = 1 << 10    /* a memory cap, and overhead = measured */
};

/* The exported functions. Protected: exported under this name, and never replaced within us. */
#define HOOK_EXPORT __attribute__((visibility("protected")))

#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)                    \
    HOOK_EXPORT CUresult symbol parameters;
#define NVML_HOOK(symbol, when, parameters, arguments) HOOK_EXPORT nvmlReturn_t symbol parameters;
#define RUNTIME_HOOK(symbol, parameters, arguments) HOOK_EXPORT cudaError_t symbol parameters;
#define DRIVER_CALL(symbol, parameters)
#define NVML_CALL(symbol, parameters)
#include "hooks.def"
#undef DRIVER_HOOK
#undef NVML_HOOK
#undef RUNTIME_HOOK
#undef DRIVER_CALL
#undef NVML_CALL

/* The rows that are hooks, in the order of the list. */
enum hook_row {
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments) HOOK_ROW_##symbol,
#define NVML_HOOK(symbol, when, parameters, arguments) HOOK_ROW_##symbol,
#define RUNTIME_HOOK(symbol, parameters, arguments) HOOK_ROW_##symbol,
#define DRIVER_CALL(symbol, parameters)
#define NVML_CALL(symbol, parameters)
#include "hooks.def"
    HOOK_ROWS
#undef DRIVER_HOOK
#undef NVML_HOOK
#undef RUNTIME_HOOK
#undef DRIVER_CALL
#undef NVML_CALL
};

/* The originals, from a private handle on the real libraries (driver.h). A slot is NULL until its
 * library is open, and stays NULL where the library lacks the function. Written once; read freely
 * after driver_open() or nvml_open() has returned true. */
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)                    \
    CUresult(*symbol) parameters;
#define DRIVER_CALL(symbol, parameters) CUresult(*symbol) parameters;
#define NVML_HOOK(symbol, when, parameters, arguments)
#define NVML_CALL(symbol, parameters)
#define RUNTIME_HOOK(symbol, parameters, arguments)
struct hook_driver {
#include "hooks.def"
};
#undef DRIVER_HOOK
#undef DRIVER_CALL
#undef NVML_HOOK
#undef NVML_CALL
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)
#define DRIVER_CALL(symbol, parameters)
#define NVML_HOOK(symbol, when, parameters, arguments) nvmlReturn_t(*symbol) parameters;
#define NVML_CALL(symbol, parameters) nvmlReturn_t(*symbol) parameters;
struct hook_nvml {
#include "hooks.def"
};
#undef DRIVER_HOOK
#undef DRIVER_CALL
#undef NVML_HOOK
#undef NVML_CALL
#undef RUNTIME_HOOK

extern struct hook_driver real;
extern struct hook_nvml real_nvml;

/* One row, found by name or number (names.c). */
struct hook_info {
    const char *symbol;
    void *hook;        /* our function */
    unsigned int when; /* 0 for the runtime's names: they are never handed out by dlsym */
    enum hook_library { HOOK_OF_DRIVER, HOOK_OF_NVML, HOOK_OF_RUNTIME } library;
};

/* The row of this exported name, or -1. Freestanding: safe before relocation of other objects,
 * before constructors, inside malloc, in a signal handler; takes no lock. */
int hook_find(const char *symbol);
/* Fills `info`; `row` is in [0, HOOK_ROWS). Same safety. */
void hook_describe(int row, struct hook_info *info);

#endif
