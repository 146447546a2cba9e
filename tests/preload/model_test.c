/* model_test.c -- long random sequences over every door to device memory that is counted, by
 * several threads, contexts, devices and pools, with failures of the driver's own calls in between.
 * After every step no card holds more than the cap; where all threads have met, what the shim says
 * is held equals what the simulated driver, the referee, has alive, contexts included; at the end
 * nothing but contexts is left.
 *
 *   model_test [STEPS [SEED]]    STEPS for each thread (default 3000); the seed is printed
 */
#include "cuda_abi.h"
#include "simcuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define CAP (256 * MIB)

enum { THREADS = 4, DEVICES = 2, HELD_MAX = 64, ROUNDS = 10, SPACE = 64 * 1024 * 1024 };
enum { TILE = 128, TILE_POOL = 1 };               /* of 4 bytes a texel */
static const int gpu_of_device[DEVICES] = {3, 1}; /* the policy's order */

static void *driver;

#define DECLARE(name, ...) static CUresult (*name)(__VA_ARGS__)
DECLARE(cuInit, unsigned int);
DECLARE(cuCtxCreate_v2, CUcontext *, unsigned int, CUdevice);
DECLARE(cuCtxDestroy_v2, CUcontext);
DECLARE(cuCtxSetCurrent, CUcontext);
DECLARE(cuCtxGetDevice, CUdevice *);
DECLARE(cuMemAlloc_v2, CUdeviceptr *, size_t);
DECLARE(cuMemAllocPitch_v2, CUdeviceptr *, size_t *, size_t, size_t, unsigned int);
DECLARE(cuMemAllocManaged, CUdeviceptr *, size_t, unsigned int);
DECLARE(cuMemFree_v2, CUdeviceptr);
DECLARE(cuMemAllocAsync, CUdeviceptr *, size_t, CUstream);
DECLARE(cuMemFreeAsync, CUdeviceptr, CUstream);
DECLARE(cuMemAllocAsync_ptsz, CUdeviceptr *, size_t, CUstream);
DECLARE(cuMemFreeAsync_ptsz, CUdeviceptr, CUstream);
DECLARE(cuMemAllocFromPoolAsync_ptsz, CUdeviceptr *, size_t, CUmemoryPool, CUstream);
DECLARE(cuStreamCreate, CUstream *, unsigned int);
DECLARE(cuStreamDestroy_v2, CUstream);
DECLARE(cuMemAllocFromPoolAsync, CUdeviceptr *, size_t, CUmemoryPool, CUstream);
DECLARE(cuMemPoolCreate, CUmemoryPool *, const CUmemPoolProps *);
DECLARE(cuMemPoolDestroy, CUmemoryPool);
DECLARE(cuMemPoolTrimTo, CUmemoryPool, size_t);
DECLARE(cuDeviceGetDefaultMemPool, CUmemoryPool *, CUdevice);
DECLARE(cuMemCreate, CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
        unsigned long long);
DECLARE(cuMemRelease, CUmemGenericAllocationHandle);
DECLARE(cuMemRetainAllocationHandle, CUmemGenericAllocationHandle *, void *);
DECLARE(cuMemExportToShareableHandle, void *, CUmemGenericAllocationHandle,
        CUmemAllocationHandleType, unsigned long long);
DECLARE(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle *, void *,
        CUmemAllocationHandleType);
DECLARE(cuMemAddressReserve, CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
DECLARE(cuMemAddressFree, CUdeviceptr, size_t);
DECLARE(cuMemMap, CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
DECLARE(cuMemUnmap, CUdeviceptr, size_t);
DECLARE(cuMemGetInfo_v2, size_t *, size_t *);
DECLARE(cuArrayCreate_v2, CUarray *, const CUDA_ARRAY_DESCRIPTOR *);
DECLARE(cuArray3DCreate_v2, CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *);
DECLARE(cuArrayDestroy, CUarray);
DECLARE(cuMipmappedArrayCreate, CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned int);
DECLARE(cuMipmappedArrayDestroy, CUmipmappedArray);
DECLARE(cuMemMapArrayAsync, CUarrayMapInfo *, unsigned int, CUstream);
DECLARE(cuGraphCreate, CUgraph *, unsigned int);
DECLARE(cuGraphDestroy, CUgraph);
DECLARE(cuGraphAddMemAllocNode, CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
        CUDA_MEM_ALLOC_NODE_PARAMS *);
DECLARE(cuGraphAddMemFreeNode, CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUdeviceptr);
DECLARE(cuGraphInstantiateWithFlags, CUgraphExec *, CUgraph, unsigned long long);
DECLARE(cuGraphLaunch, CUgraphExec, CUstream);
DECLARE(cuGraphUpload, CUgraphExec, CUstream);
DECLARE(cuGraphExecDestroy, CUgraphExec);
DECLARE(cuDeviceGraphMemTrim, CUdevice);
static uint64_t (*live_bytes)(int gpu, int pid);
static uint64_t (*context_bytes)(int gpu, int pid);

static void resolve(void)
{
    void *found;
#define RESOLVE(name) (found = dlsym(driver, #name), memcpy(&name, &found, sizeof found))
    RESOLVE(cuInit), RESOLVE(cuCtxCreate_v2), RESOLVE(cuCtxDestroy_v2), RESOLVE(cuCtxSetCurrent);
    RESOLVE(cuCtxGetDevice), RESOLVE(cuMemAlloc_v2), RESOLVE(cuMemAllocPitch_v2),
        RESOLVE(cuMemAllocManaged);
    RESOLVE(cuMemFree_v2), RESOLVE(cuMemAllocAsync), RESOLVE(cuMemFreeAsync),
        RESOLVE(cuMemAllocFromPoolAsync);
    RESOLVE(cuMemAllocAsync_ptsz), RESOLVE(cuMemFreeAsync_ptsz);
    RESOLVE(cuMemAllocFromPoolAsync_ptsz), RESOLVE(cuStreamCreate), RESOLVE(cuStreamDestroy_v2);
    RESOLVE(cuMemPoolCreate), RESOLVE(cuMemPoolDestroy), RESOLVE(cuMemPoolTrimTo);
    RESOLVE(cuDeviceGetDefaultMemPool), RESOLVE(cuMemCreate), RESOLVE(cuMemRelease);
    RESOLVE(cuMemRetainAllocationHandle), RESOLVE(cuMemAddressReserve), RESOLVE(cuMemAddressFree);
    RESOLVE(cuMemExportToShareableHandle), RESOLVE(cuMemImportFromShareableHandle);
    RESOLVE(cuMemMap), RESOLVE(cuMemUnmap), RESOLVE(cuMemGetInfo_v2);
    RESOLVE(cuArrayCreate_v2), RESOLVE(cuArray3DCreate_v2), RESOLVE(cuArrayDestroy);
    RESOLVE(cuMipmappedArrayCreate), RESOLVE(cuMipmappedArrayDestroy);
    RESOLVE(cuMemMapArrayAsync);
    RESOLVE(cuGraphCreate), RESOLVE(cuGraphDestroy), RESOLVE(cuGraphAddMemAllocNode);
    RESOLVE(cuGraphAddMemFreeNode), RESOLVE(cuGraphInstantiateWithFlags), RESOLVE(cuGraphLaunch);
    RESOLVE(cuGraphUpload), RESOLVE(cuGraphExecDestroy), RESOLVE(cuDeviceGraphMemTrim);
    found = dlsym(driver, "simcuda_live_bytes");
    memcpy(&live_bytes, &found, sizeof found);
    found = dlsym(driver, "simcuda_context_bytes");
    memcpy(&context_bytes, &found, sizeof found);
}

/* What a thread holds. */
enum kind { NOTHING, LINEAR, STREAM_ORDERED, HANDLE, ARRAY, MIPMAP };
struct held {
    enum kind kind;
    int device;          /* of its context; of a HANDLE, its own */
    CUdeviceptr address; /* of a mapping, for a HANDLE that is mapped */
    size_t bytes;
    CUmemGenericAllocationHandle handle, import; /* the import is of the same memory; 0: none */
    int references;
    bool mapped;
    bool imported_map; /* it is the import that is mapped */
    bool tiled;        /* into the tile of its number of the thread's sparse array */
    bool pooled;       /* from the thread's own pool */
    CUarray array;
    CUmipmappedArray mipmap;
};
/* An executable graph that allocates on some device or two, and perhaps frees. */
enum { GRAPHS = 6, PIECES = 3 };
struct graph {
    CUgraphExec exec;
    CUdeviceptr addresses[PIECES];
    bool frees;
};
struct thread {
    uint64_t random;
    int number;
    CUcontext contexts[DEVICES];
    CUarray sparse[DEVICES];
    int device;
    CUmemoryPool pool;
    struct held held[HELD_MAX];
    struct graph graphs[GRAPHS];
    CUdeviceptr space;
    long granted, refused;
};

static pthread_barrier_t barrier;
static long steps = 3000;
static int failures;

static unsigned int roll(struct thread *thread, unsigned int sides)
{
    thread->random = thread->random * 6364136223846793005U + 1442695040888963407U;
    return (unsigned int)(thread->random >> 33) % sides;
}

static void wrong(const struct thread *thread, const char *what, unsigned long long got,
                  unsigned long long right)
{
    printf("thread %d: %s: %llu, not %llu\n", thread->number, what, got, right);
    __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
}

static size_t some_bytes(struct thread *thread)
{
    switch (roll(thread, 4)) {
    case 0:
        return 1 + roll(thread, 4096);
    case 1:
        return 1 + roll(thread, 2 * MIB);
    case 2:
        return MIB + roll(thread, 16 * MIB);
    default:
        return 1 + roll(thread, 100 * MIB);
    }
}

static void note(struct thread *thread, struct held *held, CUresult rc, enum kind kind)
{
    if (rc == CUDA_SUCCESS) {
        held->kind = kind;
        thread->granted++;
    } else {
        thread->refused++;
    }
}

static const CUarray_format formats[] = {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_HALF,
                                         CU_AD_FORMAT_FLOAT};

static CUresult make_array(struct thread *thread, CUarray *array)
{
    const CUDA_ARRAY_DESCRIPTOR shape = {1 + roll(thread, 3000), roll(thread, 2000),
                                         formats[roll(thread, 3)], 1U << roll(thread, 3)};
    return cuArrayCreate_v2(array, &shape);
}

static CUresult make_mipmap(struct thread *thread, CUmipmappedArray *mipmap)
{
    const CUDA_ARRAY3D_DESCRIPTOR shape = {
        1 + roll(thread, 300), 1 + roll(thread, 300),
        1 + roll(thread, 40),  formats[roll(thread, 3)],
        1U << roll(thread, 3), roll(thread, 2) ? CUDA_ARRAY3D_LAYERED : 0};
    return cuMipmappedArrayCreate(mipmap, &shape, roll(thread, 9));
}

/* On one of the default streams, or on one that is over before the memory is freed; by the entry
 * point of either kind. */
static CUresult take_in_stream(struct thread *thread, struct held *held, CUmemoryPool pool)
{
    CUstream stream = NULL, made = NULL;
    const bool per_thread = roll(thread, 2);
    switch (roll(thread, 4)) {
    case 0:
        stream = CU_STREAM_LEGACY;
        break;
    case 1:
        stream = CU_STREAM_PER_THREAD;
        break;
    case 2:
        if (cuStreamCreate(&made, 1) == CUDA_SUCCESS)
            stream = made;
        break;
    default:
        break;
    }
    CUresult rc = pool ? (per_thread ? cuMemAllocFromPoolAsync_ptsz : cuMemAllocFromPoolAsync)(
                             &held->address, held->bytes, pool, stream)
                       : (per_thread ? cuMemAllocAsync_ptsz : cuMemAllocAsync)(&held->address,
                                                                               held->bytes, stream);
    if (made)
        cuStreamDestroy_v2(made);
    return rc;
}

static CUresult give_in_stream(struct thread *thread, CUdeviceptr address)
{
    return (roll(thread, 2) ? cuMemFreeAsync_ptsz : cuMemFreeAsync)(address, NULL);
}

static void take(struct thread *thread, struct held *held)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                .allocFlags = {.usage = TILE_POOL}};
    size_t pitch;
    *held = (struct held){.bytes = some_bytes(thread), .device = thread->device};
    switch (roll(thread, 8)) {
    case 0:
        note(thread, held, cuMemAlloc_v2(&held->address, held->bytes), LINEAR);
        break;
    case 1:
        note(thread, held,
             cuMemAllocPitch_v2(&held->address, &pitch, 1 + roll(thread, 5000),
                                1 + roll(thread, 5000), 4),
             LINEAR);
        break;
    case 2:
        note(thread, held, cuMemAllocManaged(&held->address, held->bytes, CU_MEM_ATTACH_GLOBAL),
             LINEAR);
        break;
    case 3:
        note(thread, held, take_in_stream(thread, held, NULL), STREAM_ORDERED);
        break;
    case 4:
        held->pooled = true;
        note(thread, held, take_in_stream(thread, held, thread->pool), STREAM_ORDERED);
        break;
    case 5:
        note(thread, held, make_array(thread, &held->array), ARRAY);
        break;
    case 6:
        note(thread, held, make_mipmap(thread, &held->mipmap), MIPMAP);
        break;
    default:
        prop.requestedHandleTypes =
            roll(thread, 2) ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
        held->device = prop.location.id = (int)roll(thread, DEVICES);
        held->bytes = (1 + roll(thread, 8)) * 2 * MIB;
        held->references = 1;
        note(thread, held, cuMemCreate(&held->handle, held->bytes, &prop, 0), HANDLE);
    }
}

/* Into a tile of the thread's sparse array, or out of it. */
static void turn_tile(struct thread *thread, struct held *held)
{
    const unsigned int number = (unsigned int)(held - thread->held);
    CUarrayMapInfo info = {.resource.array = thread->sparse[held->device],
                           .subresource.sparseLevel = {.offsetX = number * TILE,
                                                       .extentWidth = TILE,
                                                       .extentHeight = TILE,
                                                       .extentDepth = 1},
                           .memOperationType = held->tiled ? CU_MEM_OPERATION_TYPE_UNMAP
                                                           : CU_MEM_OPERATION_TYPE_MAP,
                           .memHandle.memHandle = held->tiled ? 0 : held->handle,
                           .deviceBitMask = 1U << held->device};
    if ((!held->tiled && held->references == 0) || !thread->contexts[held->device])
        return;
    cuCtxSetCurrent(thread->contexts[held->device]);
    if (cuMemMapArrayAsync(&info, 1, NULL) == CUDA_SUCCESS)
        held->tiled = !held->tiled;
    cuCtxSetCurrent(thread->contexts[thread->device]);
}

/* Exports a handle and imports it again, or lets the import go. */
static void turn_import(struct held *held)
{
    const CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    int fd;
    if (held->import) {
        if (cuMemRelease(held->import) == CUDA_SUCCESS)
            held->import = 0;
    } else if (held->references > 0 &&
               cuMemExportToShareableHandle(&fd, held->handle, type, 0) == CUDA_SUCCESS) {
        if (cuMemImportFromShareableHandle(&held->import, (void *)(intptr_t)fd, type) !=
            CUDA_SUCCESS)
            held->import = 0;
        close(fd);
    }
}

static bool space_is_taken(const struct thread *thread)
{
    for (int i = 0; i < HELD_MAX; i++) {
        if (thread->held[i].mapped)
            return true;
    }
    return false;
}

/* One thing done to a handle: map, unmap, retain, release, share, in whatever order comes. */
static void turn(struct thread *thread, struct held *held)
{
    const CUdeviceptr at = thread->space;
    CUmemGenericAllocationHandle again;
    switch (roll(thread, 6)) {
    case 0:
        if (space_is_taken(thread))
            return;
        held->imported_map = held->import && (held->references == 0 || roll(thread, 2));
        again = held->imported_map ? held->import : held->handle;
        if ((held->imported_map || held->references > 0) &&
            cuMemMap(at, held->bytes, 0, again, 0) == CUDA_SUCCESS)
            held->mapped = true;
        break;
    case 1:
        if (held->mapped && cuMemUnmap(at, held->bytes) == CUDA_SUCCESS)
            held->mapped = false;
        break;
    case 2:
        if (held->mapped && !held->imported_map &&
            cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at) == CUDA_SUCCESS)
            held->references++;
        break;
    case 3:
        turn_tile(thread, held);
        break;
    case 4:
        turn_import(held);
        break;
    default:
        if (held->references > 0 && cuMemRelease(held->handle) == CUDA_SUCCESS)
            held->references--;
    }
    if (held->references == 0 && !held->mapped && !held->tiled && !held->import)
        held->kind = NOTHING;
}

enum { TRIES_MAX = 10000 };

/* A call that the driver fails is simply made again; one that fails for ever is a fault. */
static bool again(const struct thread *thread, int *tries, const char *what, CUresult rc)
{
    if (rc == CUDA_SUCCESS)
        return false;
    if (++*tries < TRIES_MAX)
        return true;
    wrong(thread, what, (unsigned long long)rc, 0);
    fflush(stdout);
    _exit(1);
}

static void give(struct thread *thread, struct held *held)
{
    int tries = 0;
    switch (held->kind) {
    case LINEAR:
        while (again(thread, &tries, "cuMemFree", cuMemFree_v2(held->address)))
            continue;
        held->kind = NOTHING;
        break;
    case STREAM_ORDERED:
        while (again(thread, &tries, "freeing stream-ordered memory",
                     roll(thread, 2) ? give_in_stream(thread, held->address)
                                     : cuMemFree_v2(held->address)))
            continue;
        held->kind = NOTHING;
        break;
    case HANDLE:
        turn(thread, held);
        break;
    case ARRAY:
        while (again(thread, &tries, "cuArrayDestroy", cuArrayDestroy(held->array)))
            continue;
        held->kind = NOTHING;
        break;
    case MIPMAP:
        while (
            again(thread, &tries, "cuMipmappedArrayDestroy", cuMipmappedArrayDestroy(held->mipmap)))
            continue;
        held->kind = NOTHING;
        break;
    default:
        break;
    }
}

static void give_all(struct thread *thread)
{
    for (int i = 0; i < HELD_MAX; i++) {
        while (thread->held[i].kind != NOTHING)
            give(thread, &thread->held[i]);
    }
}

static void make_graph(struct thread *thread, struct graph *graph)
{
    CUgraphNode node, after[PIECES], last;
    CUgraph made;
    int tries = 0;
    *graph = (struct graph){.frees = roll(thread, 2)};
    cuGraphCreate(&made, 0);
    for (int i = 0; i < PIECES; i++) {
        CUDA_MEM_ALLOC_NODE_PARAMS params = {
            .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                          .location = {CU_MEM_LOCATION_TYPE_DEVICE, (int)roll(thread, DEVICES)}},
            .bytesize = some_bytes(thread)};
        cuGraphAddMemAllocNode(&after[i], made, i ? &after[i - 1] : NULL, i > 0, &params);
        graph->addresses[i] = params.dptr;
    }
    last = after[PIECES - 1];
    for (int i = 0; graph->frees && i < PIECES; i++)
        cuGraphAddMemFreeNode(&node, made, &last, 1, graph->addresses[i]);
    while (again(thread, &tries, "cuGraphInstantiate",
                 cuGraphInstantiateWithFlags(&graph->exec, made, 0)))
        continue;
    cuGraphDestroy(made);
}

static void launch_graph(struct thread *thread, struct graph *graph)
{
    CUresult rc =
        roll(thread, 4) ? cuGraphLaunch(graph->exec, NULL) : cuGraphUpload(graph->exec, NULL);
    if (rc == CUDA_SUCCESS)
        thread->granted++;
    else
        thread->refused++;
}

/* Memory that is not alive, since the graph was only uploaded, is the driver's to refuse. */
static void free_graph_memory(struct thread *thread, const struct graph *graph)
{
    for (int i = 0; !graph->frees && i < PIECES; i++) {
        while ((roll(thread, 2) ? cuMemFree_v2(graph->addresses[i])
                                : cuMemFreeAsync(graph->addresses[i], NULL)) == CUDA_ERROR_UNKNOWN)
            continue;
    }
}

static void destroy_graph(const struct thread *thread, struct graph *graph)
{
    int tries = 0;
    if (!graph->exec)
        return;
    while (again(thread, &tries, "cuGraphExecDestroy", cuGraphExecDestroy(graph->exec)))
        continue;
    graph->exec = NULL;
}

/* Something done to one of the thread's graphs, or to the graph memory of a device. */
static void turn_graph(struct thread *thread)
{
    struct graph *graph = &thread->graphs[roll(thread, GRAPHS)];
    if (!graph->exec) {
        make_graph(thread, graph);
        return;
    }
    switch (roll(thread, 8)) {
    case 0:
        free_graph_memory(thread, graph);
        destroy_graph(thread, graph);
        break;
    case 1:
        cuDeviceGraphMemTrim((int)roll(thread, DEVICES));
        break;
    case 2:
    case 3:
        free_graph_memory(thread, graph);
        break;
    default:
        launch_graph(thread, graph);
    }
}

static void destroy_graphs(struct thread *thread)
{
    for (int i = 0; i < GRAPHS; i++) {
        if (thread->graphs[i].exec)
            free_graph_memory(thread, &thread->graphs[i]);
        destroy_graph(thread, &thread->graphs[i]);
    }
}

static void new_pool(struct thread *thread)
{
    int tries = 0;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, thread->number % DEVICES}};
    while (again(thread, &tries, "cuMemPoolCreate", cuMemPoolCreate(&thread->pool, &props)))
        continue;
}

/* A context of the thread's, with a sparse array of as many tiles as the thread can hold. False
 * where there is no room for one under the cap. */
static bool new_context(struct thread *thread, int device)
{
    const CUDA_ARRAY3D_DESCRIPTOR shape = {HELD_MAX * TILE,    TILE, 0,
                                           CU_AD_FORMAT_FLOAT, 1,    CUDA_ARRAY3D_SPARSE};
    int tries = 0;
    if (cuCtxCreate_v2(&thread->contexts[device], 0, device) != CUDA_SUCCESS)
        return false;
    while (again(thread, &tries, "cuArray3DCreate",
                 cuArray3DCreate_v2(&thread->sparse[device], &shape)))
        continue;
    return true;
}

/* Goes to a device: with a new context, if the old one was destroyed; elsewhere, if there is no
 * room for one. */
static void go_to(struct thread *thread, int device)
{
    if (!thread->contexts[device] && !new_context(thread, device))
        device = DEVICES - 1 - device;
    thread->device = device;
    cuCtxSetCurrent(thread->contexts[device]);
}

/* What goes with the thread's context on a device. */
static bool goes_with(const struct held *held, int device)
{
    return held->device == device &&
           (held->kind == LINEAR || held->kind == ARRAY || held->kind == MIPMAP ||
            (held->kind == HANDLE && held->references == 0 && !held->mapped && !held->import));
}

/* Destroys a context with all that is in it, or a pool with live memory from it. */
static void upheaval(struct thread *thread)
{
    int tries = 0;
    if (roll(thread, 2) || !thread->contexts[DEVICES - 1 - thread->device]) {
        while (again(thread, &tries, "cuMemPoolDestroy", cuMemPoolDestroy(thread->pool)))
            continue;
        new_pool(thread);
        return;
    }
    for (int i = 0; i < HELD_MAX;
         i++) { /* stream-ordered memory belongs to pools and would be left behind */
        while (thread->held[i].kind == STREAM_ORDERED)
            give(thread, &thread->held[i]);
        if (goes_with(&thread->held[i], thread->device))
            thread->held[i].kind = NOTHING;
        if (thread->held[i].device == thread->device)
            thread->held[i].tiled = false;
    }
    while (again(thread, &tries, "cuCtxDestroy", cuCtxDestroy_v2(thread->contexts[thread->device])))
        continue;
    thread->contexts[thread->device] = NULL;
    go_to(thread, thread->device);
}

static void check_caps(const struct thread *thread)
{
    for (int i = 0; i < DEVICES; i++) {
        uint64_t live = live_bytes(gpu_of_device[i], SIMCUDA_THIS_PROCESS);
        if (live > CAP)
            wrong(thread, "over the cap", live, CAP);
    }
}

/* All threads stand still: the books must agree to the byte. */
static void check_books(struct thread *thread, bool end)
{
    for (int i = 0; i < DEVICES; i++) {
        size_t free_bytes = 0, total = 0;
        CUcontext passing;
        /* The making and the end of a context are when contexts are measured; it may be refused. */
        bool made = cuCtxCreate_v2(&passing, 0, i) == CUDA_SUCCESS;
        if (!made && !thread->contexts[i])
            continue;
        if (!made)
            cuCtxSetCurrent(thread->contexts[i]);
        cuMemGetInfo_v2(&free_bytes, &total);
        uint64_t live = live_bytes(gpu_of_device[i], SIMCUDA_THIS_PROCESS);
        uint64_t right = live + context_bytes(gpu_of_device[i], SIMCUDA_THIS_PROCESS);
        if (right > CAP) /* the end of a context over the cap was made to fail: it is there */
            right = CAP;
        if (total - free_bytes != right)
            wrong(thread, "held according to the shim", total - free_bytes, right);
        if (made)
            cuCtxDestroy_v2(passing);
        if (end && live != 0)
            wrong(thread, "alive at the end", live, 0);
    }
    cuCtxSetCurrent(thread->contexts[thread->device]);
}

static void step(struct thread *thread)
{
    struct held *held = &thread->held[roll(thread, HELD_MAX)];
    unsigned int die = roll(thread, 200);
    if (die == 0) {
        upheaval(thread);
    } else if (die < 10) {
        go_to(thread, (int)roll(thread, DEVICES));
    } else if (die < 40) {
        turn_graph(thread);
    } else if (held->kind == NOTHING) {
        take(thread, held);
    } else {
        give(thread, held);
    }
    check_caps(thread);
}

/* While memory of one's own is imported, the books may keep what was exported and is gone. */
static void drop_imports(struct thread *thread)
{
    int tries = 0;
    for (int i = 0; i < HELD_MAX; i++) {
        struct held *held = &thread->held[i];
        if (held->kind != HANDLE)
            continue;
        while (held->mapped && held->imported_map &&
               again(thread, &tries, "cuMemUnmap", cuMemUnmap(thread->space, held->bytes)))
            continue;
        if (held->imported_map)
            held->mapped = false;
        while (held->import && again(thread, &tries, "cuMemRelease", cuMemRelease(held->import)))
            continue;
        held->import = 0;
        if (held->references == 0 && !held->mapped && !held->tiled)
            held->kind = NOTHING;
    }
}

static void trim(const struct thread *thread)
{
    CUmemoryPool pool;
    int tries = 0;
    for (int i = 0; i < DEVICES; i++) {
        if (cuDeviceGetDefaultMemPool(&pool, i) == CUDA_SUCCESS)
            while (again(thread, &tries, "cuMemPoolTrimTo", cuMemPoolTrimTo(pool, 0)))
                continue;
        while (again(thread, &tries, "cuDeviceGraphMemTrim", cuDeviceGraphMemTrim(i)))
            continue;
    }
}

static void *run(void *argument)
{
    struct thread *thread = argument;
    int tries = 0;
    for (int i = 0; i < DEVICES; i++)
        go_to(thread, i);
    go_to(thread, thread->device);
    pthread_barrier_wait(&barrier);
    cuMemAddressReserve(&thread->space, SPACE, 0, 0, 0);
    new_pool(thread);
    for (int round = 0; round < ROUNDS; round++) {
        for (long i = 0; i < steps / ROUNDS; i++)
            step(thread);
        drop_imports(thread);
        pthread_barrier_wait(&barrier);
        if (thread->number == 0)
            check_books(thread, false);
        pthread_barrier_wait(&barrier);
    }
    give_all(thread);
    destroy_graphs(thread);
    while (again(thread, &tries, "cuMemPoolDestroy", cuMemPoolDestroy(thread->pool)))
        continue;
    pthread_barrier_wait(&barrier);
    if (thread->number == 0) {
        trim(thread);
        check_books(thread, true);
    }
    pthread_barrier_wait(&barrier);
    return NULL;
}

int main(int argc, char **argv)
{
    static struct thread threads[THREADS];
    pthread_t ids[THREADS];
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
    long granted = 0, refused = 0;
    steps = argc > 1 ? atol(argv[1]) : steps;
    printf("seed %llu, %ld steps in each of %d threads\n", (unsigned long long)seed, steps,
           THREADS);
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver)
        return 2;
    resolve();
    if (cuInit(0) != CUDA_SUCCESS)
        return 2;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        threads[i].number = i;
        threads[i].random = seed * 31 + (uint64_t)i;
        pthread_create(&ids[i], NULL, run, &threads[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        granted += threads[i].granted;
        refused += threads[i].refused;
    }
    printf("%ld allocations granted, %ld refused, %d faults\n", granted, refused, failures);
    if (granted == 0 || refused == 0)
        printf("nothing was put to the test\n");
    return failures || !granted || !refused;
}
