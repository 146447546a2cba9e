/* probe.c -- a small CUDA program on the driver API, told by its arguments what to do; prints what
 * it meets, one line a step. Knows nothing of gpushim.
 *
 *   init  devices  get=N  device=N (a context on N)  destroy
 *   retain=N  leave=N  reset=N (the primary context of N)  overhead=GPU (the referee's, of
 * contexts) alloc=BYTES  managed=BYTES  pitch=WIDTHxROWS  async=BYTES  free  async-free  trim
 *   create=DEVICE:BYTES  map  unmap  release
 *   info  total=N  peer=A:B  enable=A:B  live=GPU (the referee's figure, by nvidia-smi's number)
 *   resolve=NAME:VERSION (cuGetProcAddress_v2)  resolve1=NAME:VERSION (cuGetProcAddress)
 *   secure (whether the kernel says that the environment is another's: AT_SECURE)
 *   wait (until standard input ends)  fork (what the next steps meet in a child)  variable
 * (CUDA_VISIBLE_DEVICES as it is now)
 *   set=NAME:VALUE (a variable)  become=USER (another user, for good)
 */
#include "cuda_abi.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HELD_MAX = 1024, RESERVATION = 1 << 30 };

static void *driver;
static CUdeviceptr held[HELD_MAX];
static int held_count;
static CUcontext contexts[64];
static CUmemGenericAllocationHandle handle;
static unsigned long long handle_bytes;
static CUdeviceptr reservation;

static uintptr_t look_up(const char *name)
{
    void *found = dlsym(driver, name);
    if (!found) {
        printf("%s\n", dlerror());
        exit(3);
    }
    return (uintptr_t)found;
}

#define DRIVER(name, ...) ((CUresult(*)(__VA_ARGS__))look_up(#name))

static void print_result(const char *step, CUresult rc) { printf("%s: %d\n", step, (int)rc); }

static void keep(const char *step, CUresult rc, const CUdeviceptr *pointer)
{
    print_result(step, rc);
    if (rc == CUDA_SUCCESS && held_count < HELD_MAX)
        held[held_count++] = *pointer;
}

static void devices(void)
{
    int count = -1;
    CUresult rc = DRIVER(cuDeviceGetCount, int *)(&count);
    printf("devices: %d, %d\n", (int)rc, count);
    for (int i = 0; rc == CUDA_SUCCESS && i < count; i++) {
        char id[32] = "";
        DRIVER(cuDeviceGetPCIBusId, char *, int, CUdevice)(id, (int)sizeof id, i);
        /* the simulated machine puts card k on bus 4 + 2k */
        printf("  %d = GPU %ld\n", i, (strtol(strchr(id, ':') + 1, NULL, 16) - 4) / 2);
    }
}

static void context_on(int device)
{
    CUresult rc = DRIVER(cuCtxCreate_v2, CUcontext *, unsigned int,
                         CUdevice)(&contexts[device & 63], 0, device);
    print_result("device", rc);
}

static void release_pointer(const char *step, uintptr_t function)
{
    CUdeviceptr pointer = held_count > 0 ? held[--held_count] : 0;
    print_result(step, strcmp(step, "free") == 0
                           ? ((CUresult(*)(CUdeviceptr))function)(pointer)
                           : ((CUresult(*)(CUdeviceptr, CUstream))function)(pointer, NULL));
}

static void create(int device, unsigned long long bytes)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    handle_bytes = bytes;
    print_result("create",
                 DRIVER(cuMemCreate, CUmemGenericAllocationHandle *, size_t,
                        const CUmemAllocationProp *, unsigned long long)(&handle, bytes, &prop, 0));
}

static void map(void)
{
    if (!reservation)
        DRIVER(cuMemAddressReserve, CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long)
    (&reservation, RESERVATION, 0, 0, 0);
    print_result("map", DRIVER(cuMemMap, CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
                               unsigned long long)(reservation, handle_bytes, 0, handle, 0));
}

static void trim(void)
{
    CUmemoryPool pool;
    DRIVER(cuDeviceGetDefaultMemPool, CUmemoryPool *, CUdevice)(&pool, 0);
    print_result("trim", DRIVER(cuMemPoolTrimTo, CUmemoryPool, size_t)(pool, 0));
}

static void live(int gpu)
{
    uint64_t (*referee)(int, int) = (uint64_t(*)(int, int))look_up("simcuda_live_bytes");
    printf("live %d: %llu\n", gpu, (unsigned long long)referee(gpu, -1));
}

static void step_memory(const char *step, const char *value)
{
    CUdeviceptr pointer = 0;
    char *end;
    unsigned long long bytes = strtoull(value, &end, 0),
                       second = *end ? strtoull(end + 1, NULL, 0) : 0;
    size_t pitch = 0;
    if (strcmp(step, "alloc") == 0)
        keep(step, DRIVER(cuMemAlloc_v2, CUdeviceptr *, size_t)(&pointer, bytes), &pointer);
    else if (strcmp(step, "managed") == 0)
        keep(step,
             DRIVER(cuMemAllocManaged, CUdeviceptr *, size_t, unsigned int)(&pointer, bytes, 1),
             &pointer);
    else if (strcmp(step, "pitch") == 0)
        keep(step,
             DRIVER(cuMemAllocPitch_v2, CUdeviceptr *, size_t *, size_t, size_t,
                    unsigned int)(&pointer, &pitch, bytes, second, 4),
             &pointer);
    else if (strcmp(step, "async") == 0)
        keep(step, DRIVER(cuMemAllocAsync, CUdeviceptr *, size_t, CUstream)(&pointer, bytes, NULL),
             &pointer);
    else if (strcmp(step, "create") == 0)
        create((int)bytes, second);
    else
        printf("no such step: %s\n", step);
}

static void step_pair(const char *step, int a, int b)
{
    int can = -1;
    if (strcmp(step, "peer") == 0) {
        CUresult rc = DRIVER(cuDeviceCanAccessPeer, int *, CUdevice, CUdevice)(&can, a, b);
        printf("peer: %d, %d\n", (int)rc, can);
    } else {
        DRIVER(cuCtxSetCurrent, CUcontext)(contexts[a]);
        print_result("enable",
                     DRIVER(cuCtxEnablePeerAccess, CUcontext, unsigned int)(contexts[b], 0));
    }
}

static void resolve(const char *step, char *name)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    void *function = NULL;
    char *colon = strchr(name, ':');
    *colon = '\0';
    int version = atoi(colon + 1);
    CUresult rc;
    if (strcmp(step, "resolve") == 0)
        rc = DRIVER(cuGetProcAddress_v2, const char *, void **, int, cuuint64_t,
                    CUdriverProcAddressQueryResult *)(name, &function, version, 0, &status);
    else
        rc = DRIVER(cuGetProcAddress, const char *, void **, int, cuuint64_t)(name, &function,
                                                                              version, 0);
    printf("%s: %d, %s, status %d\n", step, (int)rc, function ? "a function" : "nothing",
           (int)status);
}

static void step_number(const char *step, int number)
{
    CUdevice device;
    size_t total = 0;
    if (strcmp(step, "get") == 0) {
        print_result(step, DRIVER(cuDeviceGet, CUdevice *, int)(&device, number));
    } else if (strcmp(step, "retain") == 0) {
        CUresult rc =
            DRIVER(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)(&contexts[number & 63], number);
        print_result(step, rc);
    } else if (strcmp(step, "leave") == 0) {
        print_result(step, DRIVER(cuDevicePrimaryCtxRelease_v2, CUdevice)(number));
    } else if (strcmp(step, "reset") == 0) {
        print_result(step, DRIVER(cuDevicePrimaryCtxReset_v2, CUdevice)(number));
    } else if (strcmp(step, "overhead") == 0) {
        uint64_t (*referee)(int, int) = (uint64_t(*)(int, int))look_up("simcuda_context_bytes");
        printf("overhead %d: %llu\n", number, (unsigned long long)referee(number, -1));
    } else if (strcmp(step, "device") == 0) {
        context_on(number);
    } else if (strcmp(step, "become") == 0) {
        if (setuid((uid_t)number) != 0)
            printf("become: no\n");
    } else if (strcmp(step, "total") == 0) {
        CUresult rc = DRIVER(cuDeviceTotalMem_v2, size_t *, CUdevice)(&total, number);
        printf("total: %d, %zu\n", (int)rc, total);
    } else {
        live(number);
    }
}

static void info(void)
{
    size_t free_bytes = 0, total = 0;
    CUresult rc = DRIVER(cuMemGetInfo_v2, size_t *, size_t *)(&free_bytes, &total);
    printf("info: %d, %zu of %zu\n", (int)rc, free_bytes, total);
}

static void in_child(void)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child > 0) {
        waitpid(child, &status, 0);
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 4);
    }
}

static void step_plain(const char *step)
{
    CUcontext current = NULL;
    if (strcmp(step, "init") == 0) {
        print_result(step, DRIVER(cuInit, unsigned int)(0));
    } else if (strcmp(step, "devices") == 0) {
        devices();
    } else if (strcmp(step, "info") == 0) {
        info();
    } else if (strcmp(step, "free") == 0) {
        release_pointer(step, look_up("cuMemFree_v2"));
    } else if (strcmp(step, "async-free") == 0) {
        release_pointer(step, look_up("cuMemFreeAsync"));
    } else if (strcmp(step, "trim") == 0) {
        trim();
    } else if (strcmp(step, "map") == 0) {
        map();
    } else if (strcmp(step, "unmap") == 0) {
        print_result(step, DRIVER(cuMemUnmap, CUdeviceptr, size_t)(reservation, handle_bytes));
    } else if (strcmp(step, "release") == 0) {
        print_result(step, DRIVER(cuMemRelease, CUmemGenericAllocationHandle)(handle));
    } else if (strcmp(step, "destroy") == 0) {
        DRIVER(cuCtxGetCurrent, CUcontext *)(&current);
        print_result(step, DRIVER(cuCtxDestroy_v2, CUcontext)(current));
    } else if (strcmp(step, "fork") == 0) {
        in_child();
    } else if (strcmp(step, "secure") == 0) {
        printf("secure: %lu\n", getauxval(AT_SECURE));
    } else if (strcmp(step, "wait") == 0) {
        fflush(stdout);
        while (getchar() != EOF)
            continue;
    } else if (strcmp(step, "variable") == 0) {
        const char *value = getenv("CUDA_VISIBLE_DEVICES");
        printf("variable: %s\n", value ? value : "(unset)");
    } else {
        printf("no such step: %s\n", step);
    }
}

static void set_variable(char *name)
{
    char *colon = strchr(name, ':');
    *colon = '\0';
    setenv(name, colon + 1, 1);
}

int main(int argc, char **argv)
{
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        printf("no driver\n");
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (value)
            *value++ = '\0';
        if (!value)
            step_plain(argv[i]);
        else if (strcmp(argv[i], "set") == 0)
            set_variable(value);
        else if (strncmp(argv[i], "resolve", 7) == 0)
            resolve(argv[i], value);
        else if (strcmp(argv[i], "peer") == 0 || strcmp(argv[i], "enable") == 0)
            step_pair(argv[i], atoi(value), atoi(strchr(value, ':') + 1));
        else if (strcmp(argv[i], "get") == 0 || strcmp(argv[i], "device") == 0 ||
                 strcmp(argv[i], "retain") == 0 || strcmp(argv[i], "leave") == 0 ||
                 strcmp(argv[i], "reset") == 0 || strcmp(argv[i], "overhead") == 0 ||
                 strcmp(argv[i], "total") == 0 || strcmp(argv[i], "live") == 0 ||
                 strcmp(argv[i], "become") == 0)
            step_number(argv[i], atoi(value));
        else
            step_memory(argv[i], value);
    }
    return 0;
}
