/* fault_test.c -- each call into the driver that a hook makes fails once, each in a process of its
 * own: the hook then answers as without the fault or with the driver's error; made again, it does
 * what it does; and when everything is given back, the referee counts nothing and the whole cap is
 * to be had, and no more.
 *
 *   fault_test [SYMBOL ...]    only these of calls.def
 *
 * Which calls a hook makes is not written down: the simulated driver's counters tell, from a run
 * without faults. Run with a cap of 256 MiB on four devices.
 */
#include "calls.h"
#include "script.h"
#include "simcuda.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CODE = 999, OUT_OF_MEMORY = 2, GPUS = 4, TEXT = 1024 };

/* Everything that can fail. */
static const char *const exports[] = {
#define API(base, version, stream, symbol, served, when, takes) #symbol,
#define STUB(base, version, stream, symbol) #symbol,
#include "api.def"
#undef API
#undef STUB
#define NVML(symbol, served, when, takes) #symbol,
#define NVML_STUB(symbol) #symbol,
#include "nvml.def"
#undef NVML
#undef NVML_STUB
};
enum { EXPORTS = sizeof exports / sizeof exports[0] };

static const char *const hooks[] = {
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments) #symbol,
#define NVML_HOOK(symbol, when, parameters, arguments) #symbol,
#define RUNTIME_HOOK(symbol, parameters, arguments) #symbol,
#define DRIVER_CALL(symbol, parameters)
#define NVML_CALL(symbol, parameters)
#include "hooks.def"
};

/* What a child found, in memory that it shares with its parent. */
static struct outcome {
    int result;         /* of the good call */
    char said[TEXT];    /* that, and all that it wrote */
    char problem[TEXT]; /* empty: none */
    uint64_t before[EXPORTS], after[EXPORTS];
} * outcome;

static uint64_t (*driver_calls)(const char *symbol), (*nvml_calls)(const char *symbol);
static uint64_t (*live_bytes)(int gpu, int pid);

static void open_referee(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    void *found = dlsym(driver, "simcuda_calls");
    memcpy(&driver_calls, &found, sizeof found);
    found = dlsym(driver, "simcuda_live_bytes");
    memcpy(&live_bytes, &found, sizeof found);
    found = dlsym(nvml, "simcuda_nvml_calls");
    memcpy(&nvml_calls, &found, sizeof found);
}

static void count_calls(uint64_t counts[EXPORTS])
{
    for (int i = 0; i < EXPORTS; i++)
        counts[i] = (strncmp(exports[i], "nvml", 4) == 0 ? nvml_calls : driver_calls)(exports[i]);
}

__attribute__((format(printf, 1, 2))) static void problem(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!outcome->problem[0])
        vsnprintf(outcome->problem, TEXT, format, arguments);
    va_end(arguments);
}

static void expect(const char *script, int right)
{
    const int result = script_run(script);
    if (result != right)
        problem("%s: %d, not %d", script, result, right);
}

static void check_books(void)
{
    expect("cuDevicePrimaryCtxRetain &again 0; cuCtxSetCurrent again", 0);
    expect("cuDeviceGetDefaultMemPool &pool_of_0 0; cuMemPoolTrimTo pool_of_0 0", 0);
    for (int gpu = 0; gpu < GPUS; gpu++) {
        const uint64_t live = live_bytes(gpu, SIMCUDA_THIS_PROCESS);
        if (live)
            problem("%llu bytes are alive on GPU %d", (unsigned long long)live, gpu);
    }
    expect("cuMemAlloc_v2 &whole 256M", 0);
    expect("cuMemAlloc_v2 &more 1", OUT_OF_MEMORY);
    expect("cuMemFree_v2 whole", 0);
}

/* What a hook may answer where a call inside it fails, besides the driver's own error. */
static bool is_right_refusal(const char *symbol, int result)
{
    static const struct {
        const char *symbol;
        int result;
    } refusals[] = {
        {"cuInit", 800},   /* a view that cannot be made is refused, with a line, and for good */
        {"cuMemAlloc", 2}, /* what a pool keeps idle could not be had back */
        {"cuMemCreate", 2},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (strncmp(refusals[i].symbol, symbol, strlen(refusals[i].symbol)) == 0 &&
            refusals[i].result == result)
            return true;
    return false;
}

/* Makes the good call, and keeps what it said. */
static int call(const struct row *row)
{
    FILE *said = fmemopen(outcome->said, sizeof outcome->said, "w");
    if (!said)
        _exit(3);
    const int result = script_call(row->symbol, row->good, said);
    fclose(said);
    return result;
}

/* The row, with the fault that the environment names; `right` is what it answers without one. */
static void act(const struct row *row, bool fault, int right)
{
    open_referee();
    expect(row->before, 0);
    count_calls(outcome->before);
    int result = outcome->result = call(row);
    count_calls(outcome->after);
    if (!fault)
        right = result;
    if (result == 800 && is_right_refusal(row->symbol, result))
        return; /* no context will be had */
    if (result != right && result != CODE && !is_right_refusal(row->symbol, result))
        problem("it answers %d", result);
    if (result != right && (result = script_call(row->symbol, row->good, NULL)) != right)
        problem("made again, it answers %d, not %d", result, right);
    if (result == 0)
        expect(row->after, 0);
    else
        script_try(row->after);
    check_books();
}

/* False: the child did not come to its end. */
static bool run(const struct row *row, const char *fault, int right)
{
    int status = -1;
    fflush(stdout);
    memset(outcome, 0, sizeof *outcome);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        if (fault)
            setenv("SIMCUDA_FAIL", fault, 1);
        act(row, fault != NULL, right);
        fflush(stdout);
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        problem("status %d", status);
    return status == 0;
}

static int failures, faults;

static void report(const struct row *row, const char *fault)
{
    if (!outcome->problem[0])
        return;
    printf("%s, with %s: %s\n", row->symbol, fault ? fault : "no fault", outcome->problem);
    failures++;
}

static void try_row(const struct row *row)
{
    static struct outcome plain;
    char fault[TEXT];
    const bool ended = run(row, NULL, 0);
    report(row, NULL);
    if (!ended)
        return;
    plain = *outcome;
    for (int i = 0; i < EXPORTS; i++) {
        for (uint64_t n = plain.before[i] + 1; n <= plain.after[i]; n++, faults++) {
            snprintf(fault, sizeof fault, "%s:%llu:%d", exports[i], (unsigned long long)n, CODE);
            if (run(row, fault, plain.result) && outcome->result == plain.result &&
                strcmp(outcome->said, plain.said) != 0)
                problem("it says %s, not %s", outcome->said, plain.said);
            report(row, fault);
        }
    }
}

static bool is_wanted(const struct row *row, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], row->symbol) == 0)
            return true;
    for (size_t i = 0; argc == 1 && i < sizeof hooks / sizeof hooks[0]; i++)
        if (strcmp(hooks[i], row->symbol) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    outcome =
        mmap(NULL, sizeof *outcome, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (outcome == MAP_FAILED)
        return EXIT_FAILURE;
    for (int i = 0; i < ROWS; i++)
        if (is_wanted(&rows[i], argc, argv))
            try_row(&rows[i]);
    printf("%d faults\n", faults);
    return failures || faults == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
