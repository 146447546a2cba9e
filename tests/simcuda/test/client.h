/* client.h -- the simulated driver as a test's program sees it: a library to load and functions to
 * call by name.
 *
 * Knows: api.def's types. Must not know: the driver's inside; what a test asks, it asks by an
 * exported name.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_CLIENT_H
#define GPUSHIM_TESTS_SIMCUDA_CLIENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api.h"
#include "simcuda.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

enum { CONTEXT_BYTES = 300 << 20 }; /* SIMCUDA_CONTEXT's default */

/* The default cards in CUDA's order: which card of the PCI order is device 0, and so on. */
enum { CARD_OF_DEVICE_0 = 1, CARD_OF_DEVICE_1 = 3, CARD_OF_DEVICE_2 = 0, CARD_OF_DEVICE_3 = 2 };

/* Every export, typed. A future driver's are null. */
struct driver {
    void *library;
#define API(base, version, stream, symbol, served, when, takes)                                    \
    CUresult(*symbol) PARAMETERS_##takes;
#define STUB(base, version, stream, symbol) CUresult (*symbol)(void);
#include "api.def"
#undef API
#undef STUB
    uint64_t (*live_bytes)(int gpu, int pid);
    uint64_t (*context_bytes)(int gpu, int pid);
    uint64_t (*calls)(const char *symbol);
};

extern struct driver cuda;

/* Loads the library that SIMCUDA_LIBRARY names. */
void client_load(void);
/* The same, cuInit, and device 0's primary context current. For cmocka's group setup. */
int client_start(void **state);

/* This process's live bytes on the card of device 0. */
uint64_t client_live(void);

#define ok(call) assert_int_equal(call, CUDA_SUCCESS)
#define fails(code, call) assert_int_equal(call, code)

#endif
