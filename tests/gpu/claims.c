/* claims.c -- what only hardware can show: a few questions to whatever driver is there, each
 * answered by a line of figures. run.sh asks them with and without the shim and says what they
 * mean.
 *
 *   claims list             the GPUs' UUIDs by NVML's index, a line each
 *   claims view UUID...     does CUDA show these GPUs, in this order?
 *   claims addresses        does cuGetProcAddress give what the symbol table has, for every hook?
 *   claims cap MIB          fills device 0 up: what is held by NVML's word, and by cuMemGetInfo's
 *   claims cost             nanoseconds of each pair of calls, a line each: "NAME NS"
 *
 * Exit status 0: yes; 1: no; 2: could not be asked.
 */
#include "hooks.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
enum { LIST_MAX = 64, HELD_MAX = 65536, ROUNDS = 200, AROUND = 7, NAME_BYTES = 96 };

static void *driver, *nvml;

static void *function(void *library, const char *name)
{
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        printf("there is no %s\n", name);
        exit(2);
    }
    return found;
}

#define DRIVER(name, ...) ((CUresult(*)(__VA_ARGS__))(uintptr_t)function(driver, #name))
#define NVML(name, ...) ((nvmlReturn_t(*)(__VA_ARGS__))(uintptr_t)function(nvml, #name))

static void must(CUresult rc, const char *what)
{
    if (rc == CUDA_SUCCESS)
        return;
    printf("%s answers %d\n", what, (int)rc);
    exit(2);
}

static void start_context(void)
{
    CUcontext context;
    must(DRIVER(cuInit, unsigned int)(0), "cuInit");
    must(DRIVER(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)(&context, 0),
         "cuDevicePrimaryCtxRetain");
    must(DRIVER(cuCtxSetCurrent, CUcontext)(context), "cuCtxSetCurrent");
}

static unsigned int list(char uuids[LIST_MAX][NAME_BYTES])
{
    unsigned int count = 0;
    NVML(nvmlInit_v2, void)();
    NVML(nvmlDeviceGetCount_v2, unsigned int *)(&count);
    for (unsigned int i = 0; i < count && i < LIST_MAX; i++) {
        nvmlDevice_t device;
        uuids[i][0] = '\0';
        if (NVML(nvmlDeviceGetHandleByIndex_v2, unsigned int, nvmlDevice_t *)(i, &device) ==
            NVML_SUCCESS)
            NVML(nvmlDeviceGetUUID, nvmlDevice_t, char *, unsigned int)
        (device, uuids[i], NAME_BYTES);
    }
    return count;
}

static void text_of(const CUuuid *uuid, char *text)
{
    char *end = text + sprintf(text, "GPU-");
    for (int i = 0; i < 16; i++)
        end += sprintf(end, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                       (unsigned int)(unsigned char)uuid->bytes[i]);
}

static int ask_view(char **wanted, int wanted_count)
{
    int count = 0, wrong = 0;
    must(DRIVER(cuInit, unsigned int)(0), "cuInit");
    must(DRIVER(cuDeviceGetCount, int *)(&count), "cuDeviceGetCount");
    for (int i = 0; i < count && i < wanted_count; i++) {
        CUuuid uuid;
        char text[NAME_BYTES];
        must(DRIVER(cuDeviceGetUuid, CUuuid *, CUdevice)(&uuid, i), "cuDeviceGetUuid");
        text_of(&uuid, text);
        wrong += strcasecmp(text, wanted[i]) != 0;
    }
    printf("%d shown, %d wanted, %d of them others\n", count, wanted_count, wrong);
    return count != wanted_count || wrong;
}

/* Only meaningful on the bare driver. */
static int ask_addresses(void)
{
    static const struct {
        const char *symbol, *base;
        int version;
        cuuint64_t flags;
    } rows[] = {
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)                    \
    {#symbol, #base, version, stream},
#define NVML_HOOK(symbol, when, parameters, arguments)
#define RUNTIME_HOOK(symbol, parameters, arguments)
#define DRIVER_CALL(symbol, parameters)
#define NVML_CALL(symbol, parameters)
#include "hooks.def"
    };
    int same = 0, others = 0, absent = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        void *given = NULL, *exported = dlsym(driver, rows[i].symbol);
        CUdriverProcAddressQueryResult status;
        must(DRIVER(cuGetProcAddress_v2, const char *, void **, int, cuuint64_t,
                    CUdriverProcAddressQueryResult *)(rows[i].base, &given, rows[i].version,
                                                      rows[i].flags, &status),
             "cuGetProcAddress_v2");
        if (!exported)
            absent++;
        else if (given == exported)
            same++;
        else if (++others)
            printf("%s is another by cuGetProcAddress; ", rows[i].symbol);
    }
    printf("%d agree, %d differ, %d this driver lacks\n", same, others, absent);
    return others > 0 || same == 0;
}

/* This process's part of a card by NVML, in bytes; 0 where NVML does not list it. */
static unsigned long long listed(const char *uuid)
{
    static nvmlProcessInfo_t infos[1024];
    unsigned int count = 1024;
    nvmlDevice_t device;
    if (NVML(nvmlDeviceGetHandleByUUID, const char *, nvmlDevice_t *)(uuid, &device) !=
            NVML_SUCCESS ||
        NVML(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDevice_t, unsigned int *,
             nvmlProcessInfo_t *)(device, &count, infos) != NVML_SUCCESS)
        return 0;
    for (unsigned int i = 0; i < count; i++) {
        if (infos[i].pid == (unsigned int)getpid())
            return infos[i].usedGpuMemory;
    }
    return 0;
}

static int ask_cap(unsigned long long cap_mib)
{
    static CUdeviceptr held[HELD_MAX];
    static const size_t sizes[] = {64 * MIB, 3 * MIB, 300 << 10, 5000};
    char uuid[NAME_BYTES];
    size_t count = 0, free_bytes, total, context;
    CUuuid bytes;
    CUresult rc = CUDA_SUCCESS;
    start_context();
    NVML(nvmlInit_v2, void)();
    must(DRIVER(cuDeviceGetUuid, CUuuid *, CUdevice)(&bytes, 0), "cuDeviceGetUuid");
    text_of(&bytes, uuid);
    must(DRIVER(cuMemGetInfo_v2, size_t *, size_t *)(&free_bytes, &total), "cuMemGetInfo");
    context = total - free_bytes;
    const unsigned long long context_listed = listed(uuid);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        do
            rc = DRIVER(cuMemAlloc_v2, CUdeviceptr *, size_t)(&held[count], sizes[i]);
        while (rc == CUDA_SUCCESS && ++count < HELD_MAX - 1);
    }
    const unsigned long long used = listed(uuid), cap = cap_mib * MIB;
    must(DRIVER(cuMemGetInfo_v2, size_t *, size_t *)(&free_bytes, &total), "cuMemGetInfo");
    printf("context %zu MiB (NVML: %llu MiB); full at %zu allocations, answer %d; NVML lists %.1f "
           "MiB of %llu "
           "MiB, cuMemGetInfo has %.1f MiB left of %zu MiB\n",
           context / MIB, context_listed / MIB, count, (int)rc, (double)used / (double)MIB, cap_mib,
           (double)free_bytes / (double)MIB, total / MIB);
    while (count > 0)
        must(DRIVER(cuMemFree_v2, CUdeviceptr)(held[--count]), "cuMemFree");
    return rc != CUDA_ERROR_OUT_OF_MEMORY || used > cap || total > cap;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int compare(const void *one, const void *other)
{
    const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* The median of some rounds. */
static void report(const char *name, uint64_t *spent)
{
    qsort(spent, AROUND, sizeof *spent, compare);
    printf("%s %llu\n", name, (unsigned long long)(spent[AROUND / 2] / ROUNDS));
}

#define TIME(name, ...)                                                                            \
    do {                                                                                           \
        uint64_t spent[AROUND];                                                                    \
        for (int around = 0; around < AROUND; around++) {                                          \
            const uint64_t before = now_ns();                                                      \
            for (int i = 0; i < ROUNDS; i++) {                                                     \
                __VA_ARGS__;                                                                       \
            }                                                                                      \
            spent[around] = now_ns() - before;                                                     \
        }                                                                                          \
        report(name, spent);                                                                       \
    } while (0)

static int ask_cost(void)
{
    CUdeviceptr address = 0, other = 0;
    CUmemGenericAllocationHandle handle;
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    size_t free_bytes, total;
    start_context();
    CUresult (*alloc)(CUdeviceptr *, size_t) = DRIVER(cuMemAlloc_v2, CUdeviceptr *, size_t);
    CUresult (*release)(CUdeviceptr) = DRIVER(cuMemFree_v2, CUdeviceptr);
    CUresult (*alloc_async)(CUdeviceptr *, size_t, CUstream) =
        DRIVER(cuMemAllocAsync, CUdeviceptr *, size_t, CUstream);
    CUresult (*free_async)(CUdeviceptr, CUstream) = DRIVER(cuMemFreeAsync, CUdeviceptr, CUstream);
    CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
                       unsigned long long) =
        DRIVER(cuMemCreate, CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
               unsigned long long);
    CUresult (*drop)(CUmemGenericAllocationHandle) =
        DRIVER(cuMemRelease, CUmemGenericAllocationHandle);
    CUresult (*info)(size_t *, size_t *) = DRIVER(cuMemGetInfo_v2, size_t *, size_t *);
    CUresult (*copy)(CUdeviceptr, CUdeviceptr, size_t) =
        DRIVER(cuMemcpyDtoD_v2, CUdeviceptr, CUdeviceptr, size_t);
    TIME("cuMemAlloc+cuMemFree,4KiB", alloc(&address, 4096); release(address));
    TIME("cuMemAlloc+cuMemFree,8MiB", alloc(&address, 8 * MIB); release(address));
    TIME("cuMemAllocAsync+cuMemFreeAsync,1MiB", alloc_async(&address, MIB, NULL);
         free_async(address, NULL));
    TIME("cuMemCreate+cuMemRelease,2MiB", create(&handle, 2 * MIB, &prop, 0); drop(handle));
    TIME("cuMemGetInfo", info(&free_bytes, &total));
    must(alloc(&address, MIB), "cuMemAlloc");
    must(alloc(&other, MIB), "cuMemAlloc");
    TIME("cuMemcpyDtoD,4KiB", copy(address, other, 4096));
    return 0;
}

int main(int argc, char **argv)
{
    static char uuids[LIST_MAX][NAME_BYTES];
    const char *what = argc > 1 ? argv[1] : "";
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (strcmp(what, "list") == 0) {
        const unsigned int count = list(uuids);
        for (unsigned int i = 0; i < count && i < LIST_MAX; i++)
            printf("%s\n", uuids[i]);
        return count == 0;
    }
    if (strcmp(what, "view") == 0)
        return ask_view(argv + 2, argc - 2);
    if (strcmp(what, "addresses") == 0)
        return ask_addresses();
    if (strcmp(what, "cap") == 0 && argc > 2)
        return ask_cap(strtoull(argv[2], NULL, 10));
    if (strcmp(what, "cost") == 0)
        return ask_cost();
    return 2;
}
