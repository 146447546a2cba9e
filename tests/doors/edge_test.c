/* edge_test.c -- at the edge of the cap, for every call that is charged (edge.def): what fits to
 * the byte is granted; one granule less, and it is refused with exactly CUDA_ERROR_OUT_OF_MEMORY,
 * and nothing is taken; with some memory given back, it is granted again. At each point all reports
 * agree with the referee.
 *
 * Knows: the cap, 256 MiB, which without the shim is the whole card. same.sh holds the transcripts
 * of both against each other: a refusal looks as the driver's own does. Must not know: whether the
 * shim is there.
 */
#include "hooks.h"
#include "script.h"
#include "simcuda.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)
static const uint64_t CAP = 256 * MIB, GRANULE = 512;

enum { OUT_OF_MEMORY = 2, FILLERS = 8 };

static const struct edge {
    const char *symbol, *bytes, *before, *take, *give;
} edges[] = {
#define EDGE(symbol, bytes, before, take, give) {#symbol, #bytes, before, take, give},
#include "edge.def"
#undef EDGE
};

static bool is_counted(const char *symbol)
{
    static const struct {
        const char *symbol;
        unsigned int when;
    } hooks[] = {
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments) {#symbol, (when)},
#define NVML_HOOK(symbol, when, parameters, arguments)
#define RUNTIME_HOOK(symbol, parameters, arguments)
#define DRIVER_CALL(symbol, parameters)
#define NVML_CALL(symbol, parameters)
#include "hooks.def"
    };
    for (size_t i = 0; i < sizeof hooks / sizeof hooks[0]; i++)
        if (strcmp(hooks[i].symbol, symbol) == 0)
            return hooks[i].when & WHEN_MEMORY;
    return false;
}

static uint64_t (*live_bytes)(int gpu, int pid);
static const struct edge *edge; /* the one that is tried */
static int failures;

static void same(const char *what, uint64_t got, uint64_t right)
{
    if (got == right)
        return;
    printf("%s of %s: %s is %llu, not %llu\n", edge->symbol, edge->bytes, what,
           (unsigned long long)got, (unsigned long long)right);
    failures++;
}

static void run(const char *script, int right)
{
    same(script, (uint64_t)script_run(script), (uint64_t)right);
}

static uint64_t low(const char *variable) { return script_get(variable, 0) & UINT32_MAX; }

static uint64_t free_bytes(void)
{
    run("cuMemGetInfo_v2 &free &total", 0);
    return script_get("free", 0);
}

/* All reports say what the referee counts. */
static void check_reports(void)
{
    const uint64_t live = live_bytes(0, SIMCUDA_THIS_PROCESS);
    same("free", free_bytes(), CAP - live);
    same("total", script_get("total", 0), CAP);
    run("cuMemGetInfo &free &total", 0);
    same("free, of 32 bits,", low("free"), CAP - live);
    same("total, of 32 bits,", low("total"), CAP);
    run("cuDeviceTotalMem_v2 &total 0", 0);
    same("the device's total", script_get("total", 0), CAP);
    run("cuDeviceTotalMem &total 0", 0);
    same("the device's total, of 32 bits,", low("total"), CAP);
    run("nvmlDeviceGetMemoryInfo gpu &memory", 0);
    same("NVML's total", script_get("memory", 0), CAP);
    same("NVML's free", script_get("memory", 1), CAP - live);
    same("NVML's used", script_get("memory", 2), live);
}

static uint64_t fillers[FILLERS];
static int fillers_used;

static void give_filler(void)
{
    script_set("filler", fillers[--fillers_used]);
    run("cuMemFree_v2 filler", 0);
}

/* Takes memory until exactly so much is free. */
static void leave_free(uint64_t bytes)
{
    for (uint64_t over = free_bytes() - bytes; over; over = free_bytes() - bytes) {
        uint64_t part = over >= 2 * MIB ? over / (2 * MIB) * (2 * MIB)
                        : over >= MIB   ? MIB - GRANULE
                                        : over;
        script_set("part", part);
        run("cuMemAlloc_v2 &filler part", 0);
        fillers[fillers_used++] = script_get("filler", 0);
    }
    check_reports();
}

static void take(int right)
{
    const uint64_t before = live_bytes(0, SIMCUDA_THIS_PROCESS);
    const uint64_t bytes = script_word(edge->bytes);
    FILE *report = right == 0 ? NULL : stdout;
    same("the call", (uint64_t)script_call(edge->symbol, edge->take, report), (uint64_t)right);
    same("what is alive", live_bytes(0, SIMCUDA_THIS_PROCESS), before + (right == 0 ? bytes : 0));
    check_reports();
}

static void try_edge(void)
{
    const uint64_t bytes = script_word(edge->bytes);
    run(edge->before, 0);
    leave_free(bytes);
    take(0);
    run("cuMemAlloc_v2 &more 1", OUT_OF_MEMORY);
    run(edge->give, 0);
    leave_free(bytes - GRANULE);
    take(OUT_OF_MEMORY);
    take(OUT_OF_MEMORY);
    give_filler();
    take(0);
    run(edge->give, 0);
    while (fillers_used)
        give_filler();
    same("what is alive at the end", live_bytes(0, SIMCUDA_THIS_PROCESS), 0);
    check_reports();
}

int main(void)
{
    int tried = 0;
    void *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "simcuda_live_bytes");
    memcpy(&live_bytes, &found, sizeof found);
    edge = edges;
    run("cuInit 0; cuDevicePrimaryCtxRetain &ctx 0; cuCtxSetCurrent ctx", 0);
    run("nvmlInit_v2; nvmlDeviceGetHandleByIndex_v2 0 &gpu", 0);
    for (; edge < edges + sizeof edges / sizeof edges[0]; edge++) {
        if (is_counted(edge->symbol)) {
            try_edge();
            tried++;
        }
    }
    printf("%d edges\n", tried);
    return failures || !tried ? EXIT_FAILURE : EXIT_SUCCESS;
}
