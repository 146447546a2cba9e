/* hook_pool.c -- stream-ordered memory: a pool is charged by what it reserves.
 *
 * Knows: pools and their devices, reserves and tickets. Must not know: handles and mappings.
 * The driver grows and shrinks a pool's reserve by itself, at times we do not see; what was read
 * last is charged, and read again before a request is refused.
 */
#include "fork.h"
#include "hook.h"
#include "log.h"
#include "once.h"
#include "track.h"
#include "view.h"

static const uint64_t CHUNK = (uint64_t)32
                              << 20; /* by which a pool grows (assumed; see account.h) */

/* Pool handle -> device, reserve as charged (bytes), ticket of that reading (owner). Entries are
 * changed under the lock, which is never held across a call into the driver. */
static struct track_table pools;
static struct short_lock lock;
static uint64_t last_ticket;
static unsigned char default_known[ACCOUNT_DEVICES_MAX];

static uint64_t key_of(CUmemoryPool pool) { return (uint64_t)(uintptr_t)pool; }

static CUmemoryPool pool_of(uint64_t key)
{
    return (CUmemoryPool)(uintptr_t)
        key; /* NOLINT(performance-no-int-to-ptr): a handle, kept as a number */
}

/* The device of a pool that is counted, or NO_DEVICE (host memory, or another process's). */
static int device_of(CUmemoryPool pool)
{
    struct track_entry entry;
    int device = NO_DEVICE;
    short_lock_take(&lock);
    if (track_take(&pools, key_of(pool), &entry)) {
        device = entry.device;
        track_put(&pools, &entry);
    }
    short_lock_drop(&lock);
    return device;
}

static void learn(CUmemoryPool pool, int device)
{
    struct track_entry entry = {.key = key_of(pool), .device = (uint16_t)device}, known;
    short_lock_take(&lock);
    if (track_take(&pools, entry.key, &known))
        entry = known;
    track_put(&pools, &entry);
    short_lock_drop(&lock);
}

static void learn_default(int device)
{
    CUmemoryPool pool;
    if (device < 0 || device >= ACCOUNT_DEVICES_MAX ||
        __atomic_load_n(&default_known[device], __ATOMIC_RELAXED) ||
        !real.cuDeviceGetDefaultMemPool ||
        real.cuDeviceGetDefaultMemPool(&pool, device) != CUDA_SUCCESS)
        return;
    learn(pool, device);
    __atomic_store_n(&default_known[device], 1, __ATOMIC_RELAXED);
}

static uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which)
{
    cuuint64_t value = 0;
    if (!real.cuMemPoolGetAttribute ||
        real.cuMemPoolGetAttribute(pool, which, &value) != CUDA_SUCCESS)
        return 0;
    return value;
}

/* Charges what the pool reserves now, unless a later reading has done so already. */
static void publish(CUmemoryPool pool)
{
    struct track_entry entry;
    const uint64_t ticket = __atomic_add_fetch(&last_ticket, 1, __ATOMIC_RELAXED);
    const uint64_t reserved = attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    short_lock_take(&lock);
    if (track_take(&pools, key_of(pool), &entry)) {
        if (ticket > entry.owner) {
            account_correct(entry.device, entry.bytes, reserved);
            entry.bytes = reserved;
            entry.owner = ticket;
        }
        track_put(&pools, &entry);
    }
    short_lock_drop(&lock);
}

struct sweep {
    int device;
    bool trim;
};

static void sweep_one(const struct track_entry *entry, void *context)
{
    const struct sweep *sweep = context;
    if (entry->device != sweep->device)
        return;
    if (sweep->trim && real.cuMemPoolTrimTo)
        real.cuMemPoolTrimTo(pool_of(entry->key), 0);
    publish(pool_of(entry->key));
}

static void sweep_pools(int device, bool trim)
{
    struct capture_pause pause;
    struct sweep sweep = {device, trim};
    hook_pause_capture(&pause);
    track_each(&pools, sweep_one, &sweep);
    hook_resume_capture(&pause);
}

void pool_refresh(int device) { sweep_pools(device, false); }

bool pool_trim(int device)
{
    const uint64_t before = account_held(device);
    sweep_pools(device, true);
    return account_held(device) < before;
}

void pool_forget(void)
{
    track_forget(&pools);
    lock = (struct short_lock){0};
    for (int i = 0; i < ACCOUNT_DEVICES_MAX; i++)
        default_known[i] = 0;
}

/* The device that a stream belongs to. */
static int device_of_stream(CUstream stream)
{
    CUcontext context = NULL, popped;
    if (stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD ||
        !real.cuStreamGetCtx || real.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS ||
        (uint64_t)(uintptr_t)context == hook_current_context())
        return hook_current_device();
    if (!real.cuCtxPushCurrent_v2 || real.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
        return NO_DEVICE;
    int device = hook_current_device();
    real.cuCtxPopCurrent_v2(&popped);
    return device;
}

/* One request, whatever the entry point: `pool` NULL asks the current pool of the stream's device.
 */
struct request {
    const char *call;
    CUdeviceptr *dptr;
    size_t bytes;
    CUmemoryPool pool;
    CUstream stream;
    bool per_thread; /* of the _ptsz entry point: NULL is the per-thread default stream */
};

static CUresult ask_driver(const struct request *request)
{
    if (request->pool)
        return (request->per_thread ? real.cuMemAllocFromPoolAsync_ptsz
                                    : real.cuMemAllocFromPoolAsync)(request->dptr, request->bytes,
                                                                    request->pool, request->stream);
    return (request->per_thread ? real.cuMemAllocAsync_ptsz : real.cuMemAllocAsync)(
        request->dptr, request->bytes, request->stream);
}

static CUresult free_again(const struct request *request)
{
    CUresult (*free_async)(CUdeviceptr, CUstream) =
        request->per_thread ? real.cuMemFreeAsync_ptsz : real.cuMemFreeAsync;
    return free_async ? free_async(*request->dptr, request->stream)
                      : real.cuMemFree_v2(*request->dptr);
}

/* A captured allocation takes memory when its graph is launched, not now. */
static bool is_capturing(const struct request *request)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult (*ask)(CUstream, CUstreamCaptureStatus *) =
        request->per_thread ? real.cuStreamIsCapturing_ptsz : real.cuStreamIsCapturing;
    return ask && ask(request->stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* The pool and device that will serve the request; false where it is not counted. */
static bool find_pool(const struct request *request, CUmemoryPool *pool, int *device)
{
    *pool = request->pool;
    if (request->pool) {
        for (int i = 0; i < view_count(); i++)
            learn_default(i);
        *device = device_of(*pool);
    } else {
        *device = device_of_stream(request->stream);
        if (*device == NO_DEVICE || !real.cuDeviceGetMemPool ||
            real.cuDeviceGetMemPool(pool, *device) != CUDA_SUCCESS)
            return false;
        learn(*pool, *device);
    }
    return *device != NO_DEVICE && account_is_capped(*device);
}

static uint64_t growth(CUmemoryPool pool, uint64_t bytes)
{
    const uint64_t reserved = attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    const uint64_t used = attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    if (used <= reserved && bytes <= reserved - used)
        return 0;
    if (bytes > UINT64_MAX - CHUNK)
        return bytes;
    return (bytes + CHUNK - 1) / CHUNK * CHUNK;
}

static CUresult allocate(const struct request *request)
{
    struct charge charge;
    struct capture_pause pause;
    CUmemoryPool pool;
    CUresult refusal;
    int device;
    if (!request->dptr || !request->bytes || is_capturing(request))
        return ask_driver(request);
    if (!view_ready(&refusal))
        return refusal == CUDA_SUCCESS ? ask_driver(request) : refusal;
    hook_pause_capture(&pause);
    bool counted = find_pool(request, &pool, &device);
    uint64_t precharge = counted ? growth(pool, account_granule(request->bytes)) : 0;
    hook_resume_capture(&pause);
    if (!counted)
        return ask_driver(request);
    charge = (struct charge){device, 0};
    CUresult rc = precharge ? hook_charge(&charge, device, request->call, precharge) : CUDA_SUCCESS;
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = ask_driver(request);
    hook_pause_capture(&pause);
    publish(pool);
    hook_refund(&charge);
    if (rc == CUDA_SUCCESS && account_held(device) > account_cap(device)) {
        free_again(request); /* the reserve grew by more than was foreseen */
        pool_trim(device);
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    }
    hook_resume_capture(&pause);
    charge.bytes = account_granule(request->bytes);
    return memory_keep(&charge, rc, *request->dptr, key_of(pool), MEMORY_POOLED);
}

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytes, CUstream stream)
{
    HOOK_ENTER(cuMemAllocAsync, (dptr, bytes, stream));
    const struct request request = {"cuMemAllocAsync", dptr, bytes, NULL, stream, false};
    return allocate(&request);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytes, CUstream stream)
{
    HOOK_ENTER(cuMemAllocAsync_ptsz, (dptr, bytes, stream));
    const struct request request = {"cuMemAllocAsync", dptr, bytes, NULL, stream, true};
    return allocate(&request);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool,
                                 CUstream stream)
{
    HOOK_ENTER(cuMemAllocFromPoolAsync, (dptr, bytes, pool, stream));
    const struct request request = {"cuMemAllocFromPoolAsync", dptr, bytes, pool, stream, false};
    return pool ? allocate(&request) : real.cuMemAllocFromPoolAsync(dptr, bytes, pool, stream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool,
                                      CUstream stream)
{
    HOOK_ENTER(cuMemAllocFromPoolAsync_ptsz, (dptr, bytes, pool, stream));
    const struct request request = {"cuMemAllocFromPoolAsync", dptr, bytes, pool, stream, true};
    return pool ? allocate(&request) : real.cuMemAllocFromPoolAsync_ptsz(dptr, bytes, pool, stream);
}

static CUresult free_async(CUresult (*original)(CUdeviceptr dptr, CUstream stream),
                           CUdeviceptr dptr, CUstream stream)
{
    struct track_entry entry;
    bool ours = memory_take(dptr, &entry);
    CUresult rc = original(dptr, stream);
    if (ours)
        memory_taken(&entry, rc == CUDA_SUCCESS);
    return rc;
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream stream)
{
    HOOK_ENTER(cuMemFreeAsync, (dptr, stream));
    return free_async(real.cuMemFreeAsync, dptr, stream);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream stream)
{
    HOOK_ENTER(cuMemFreeAsync_ptsz, (dptr, stream));
    return free_async(real.cuMemFreeAsync_ptsz, dptr, stream);
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    HOOK_ENTER(cuMemPoolCreate, (pool, props));
    CUresult rc = real.cuMemPoolCreate(pool, props);
    if (rc == CUDA_SUCCESS && pool && props &&
        props->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
        account_is_capped(props->location.id))
        learn(*pool, props->location.id);
    return rc;
}

/* What is alive in a destroyed pool lives on until it is freed; the idle rest goes. */
CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    struct track_entry entry;
    HOOK_ENTER(cuMemPoolDestroy, (pool));
    short_lock_take(&lock);
    bool ours = track_take(&pools, key_of(pool), &entry);
    short_lock_drop(&lock);
    if (!ours)
        return real.cuMemPoolDestroy(pool);
    memory_owner_ends(entry.key);
    CUresult rc = real.cuMemPoolDestroy(pool);
    memory_owner_ended(entry.key, rc == CUDA_SUCCESS);
    if (rc == CUDA_SUCCESS) {
        account_refund(entry.device, entry.bytes);
    } else {
        short_lock_take(&lock);
        track_put(&pools, &entry);
        short_lock_drop(&lock);
    }
    return rc;
}
