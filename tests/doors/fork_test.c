/* fork_test.c -- forks in the middle of everything.
 *
 * In flight: while other threads take and give memory by every kind of call, a child of fork is
 * answered as the driver answers it, has nothing charged, and one that execs lives a life of its
 * own up to the whole cap. Beginning: while another thread is in its first cuInit, a child that has
 * no driver yet gets one. Afterwards the parent's books are what the referee counts.
 *
 * Run with a cap of 256 MiB on GPU 0, and without the shim on a card of that size.
 */
#include "hooks.h"
#include "simcuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
static const size_t CAP = 256 * MIB;

enum { THREADS = 4, FORKS = 40, BEGINNINGS = 60, HELD = 3, PATIENCE_SECONDS = 20 };

static struct hook_driver cuda;
static struct hook_nvml nvml;
static CUresult (*cuCtxSetCurrent)(CUcontext context);
static uint64_t (*live_bytes)(int gpu, int pid);
static const char *self;
static int failures, stop;
static CUcontext context;

static void open_libraries(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *ml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    void *found;
#define FIND(slot, library, name)                                                                  \
    (found = dlsym(library, name), memcpy(&(slot), &found, sizeof found))
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)                    \
    FIND(cuda.symbol, driver, #symbol);
#define DRIVER_CALL(symbol, parameters) FIND(cuda.symbol, driver, #symbol);
#define NVML_HOOK(symbol, when, parameters, arguments) FIND(nvml.symbol, ml, #symbol);
#define NVML_CALL(symbol, parameters) FIND(nvml.symbol, ml, #symbol);
#define RUNTIME_HOOK(symbol, parameters, arguments)
#include "hooks.def"
    FIND(cuCtxSetCurrent, driver, "cuCtxSetCurrent");
    FIND(live_bytes, driver, "simcuda_live_bytes");
}

static void same(const char *what, unsigned long long got, unsigned long long right)
{
    if (got == right)
        return;
    printf("%s: %llu, not %llu\n", what, got, right);
    fflush(stdout);
    failures++;
}

/* One of each kind of memory. */
struct held {
    CUdeviceptr linear, pooled;
    CUmemGenericAllocationHandle handle;
};

static void take(struct held *held, size_t bytes)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    *held = (struct held){0};
    cuda.cuMemAlloc_v2(&held->linear, bytes);
    cuda.cuMemAllocAsync(&held->pooled, bytes, NULL);
    cuda.cuMemCreate(&held->handle, bytes, &prop, 0);
}

static void give(const struct held *held)
{
    cuda.cuMemFree_v2(held->linear);
    if (held->pooled)
        cuda.cuMemFreeAsync(held->pooled, NULL);
    if (held->handle)
        cuda.cuMemRelease(held->handle);
}

static void *busy(void *unused)
{
    struct held held[HELD] = {0};
    cuCtxSetCurrent(context);
    for (size_t i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        give(&held[i % HELD]);
        take(&held[i % HELD], (1 + i % 4) * 2 * MIB);
    }
    for (int i = 0; i < HELD; i++)
        give(&held[i]);
    return unused;
}

static pid_t fork_child(void)
{
    const pid_t child = fork();
    if (child == 0)
        failures = 0; /* what went wrong before is its parent's */
    return child;
}

/* How a child ended: 0 is well. */
static int end_of(pid_t child)
{
    int status = -1;
    return waitpid(child, &status, 0) == child ? status : -1;
}

/* In the child: the driver is gone, and so is what the parent holds. */
static void check_child(void)
{
    CUdeviceptr address = 0;
    size_t free_bytes = 0, total = 0;
    nvmlDevice_t gpu;
    nvmlMemory_t memory = {0};
    alarm(PATIENCE_SECONDS);
    same("cuInit in a child", cuda.cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
    same("cuMemAlloc in a child", cuda.cuMemAlloc_v2(&address, 1), CUDA_ERROR_NOT_INITIALIZED);
    same("cuMemAllocAsync in a child", cuda.cuMemAllocAsync(&address, 1, NULL),
         CUDA_ERROR_NOT_INITIALIZED);
    same("cuMemFree in a child", cuda.cuMemFree_v2(4096), CUDA_ERROR_NOT_INITIALIZED);
    same("cuMemGetInfo in a child", cuda.cuMemGetInfo_v2(&free_bytes, &total),
         CUDA_ERROR_NOT_INITIALIZED);
    same("cuDevicePrimaryCtxReset in a child", cuda.cuDevicePrimaryCtxReset_v2(0),
         CUDA_ERROR_NOT_INITIALIZED);
    /* NVML lives on, and what it calls used is this process's own: nothing. The parent's own is
     * taken of the card, which is larger than the cap only with the shim. */
    same("nvmlDeviceGetHandleByIndex", nvml.nvmlDeviceGetHandleByIndex_v2(0, &gpu), NVML_SUCCESS);
    same("nvmlDeviceGetMemoryInfo", nvml.nvmlDeviceGetMemoryInfo(gpu, &memory), NVML_SUCCESS);
    if (getenv("GPUSHIM_POLICY"))
        same("used, according to NVML in a child", memory.used, 0);
    fflush(stdout);
    _exit(failures ? 1 : 0);
}

/* What a program does from its start; the whole cap is its own. */
static int whole_life(void)
{
    CUdeviceptr address = 0;
    alarm(PATIENCE_SECONDS);
    same("cuInit", cuda.cuInit(0), CUDA_SUCCESS);
    same("cuDevicePrimaryCtxRetain", cuda.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    same("cuCtxSetCurrent", cuCtxSetCurrent(context), CUDA_SUCCESS);
    same("the whole cap", cuda.cuMemAlloc_v2(&address, CAP), CUDA_SUCCESS);
    same("the whole cap is alive", live_bytes(0, SIMCUDA_THIS_PROCESS), CAP);
    same("its end", cuda.cuMemFree_v2(address), CUDA_SUCCESS);
    fflush(stdout);
    return failures ? 1 : 0;
}

static void fork_once(bool exec)
{
    const pid_t child = fork_child();
    if (child == 0) {
        if (!exec)
            check_child();
        execl("/proc/self/exe", self, "life", (char *)NULL);
        _exit(2);
    }
    same(exec ? "end of a child that execs" : "end of a child", (unsigned int)end_of(child), 0);
}

static void test_in_flight(void)
{
    pthread_t threads[THREADS];
    CUmemoryPool pool;
    CUdeviceptr whole = 0;
    size_t free_bytes = 0, total = 0;
    same("cuInit", cuda.cuInit(0), CUDA_SUCCESS);
    same("nvmlInit", nvml.nvmlInit_v2(), NVML_SUCCESS);
    cuda.cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, busy, NULL);
    const bool room_for_two = getenv("GPUSHIM_POLICY") != NULL; /* a card larger than the cap */
    for (int i = 0; i < FORKS; i++)
        fork_once(room_for_two && i % 4 == 3);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cuda.cuDeviceGetDefaultMemPool(&pool, 0);
    cuda.cuMemPoolTrimTo(pool, 0);
    same("alive at the end", live_bytes(0, SIMCUDA_THIS_PROCESS), 0);
    cuda.cuMemGetInfo_v2(&free_bytes, &total);
    same("free at the end", free_bytes, CAP);
    same("the whole cap at the end", cuda.cuMemAlloc_v2(&whole, CAP), CUDA_SUCCESS);
    cuda.cuMemFree_v2(whole);
}

static void *first_init(void *unused)
{
    cuda.cuInit(0);
    return unused;
}

/* A process of its own: forks while its other thread is in its first cuInit. Its child then lives a
 * whole life, or is told that it cannot, as where the driver was ready already; it never hangs. */
static void begin_and_fork(unsigned int delay)
{
    pthread_t thread;
    alarm(PATIENCE_SECONDS);
    open_libraries();
    pthread_create(&thread, NULL, first_init, NULL);
    for (volatile unsigned int i = 0; i < delay; i++)
        continue;
    const pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE_SECONDS);
        const CUresult rc = cuda.cuInit(0);
        if (rc == CUDA_ERROR_NOT_INITIALIZED ||
            cuda.cuDevicePrimaryCtxRetain(&context, 0) == CUDA_ERROR_NOT_INITIALIZED)
            _exit(0);
        _exit(whole_life());
    }
    pthread_join(thread, NULL);
    _exit(end_of(child) == 0 ? 0 : 1);
}

static void test_beginning(void)
{
    for (unsigned int i = 0; i < BEGINNINGS; i++) {
        const pid_t child = fork_child();
        if (child == 0)
            begin_and_fork(i * 20000);
        same("end of a process that forks in its first cuInit", (unsigned int)end_of(child), 0);
    }
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc > 1) {
        open_libraries();
        return whole_life();
    }
    test_beginning(); /* before this process has a driver */
    open_libraries();
    test_in_flight();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
