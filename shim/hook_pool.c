/* hook_pool.c -- stream-ordered memory: a pool is charged by what it reserves.
 *
 * Knows: the driver's calls about pools. Must not know: the books of pools (pools.h), handles,
 * mappings. The driver grows and shrinks a pool's reserve by itself, at times we do not see; what
 * was read last is charged, and read again before a request is refused.
 */
#include "fork.h"
#include "hook.h"
#include "log.h"
#include "pools.h"
#include "view.h"

#include <sched.h>

static unsigned char default_known[ACCOUNT_DEVICES_MAX];

static uint64_t number_of(CUmemoryPool pool) { return (uint64_t)(uintptr_t)pool; }

static void learn_default(int device)
{
    CUmemoryPool pool;
    if (device < 0 || device >= ACCOUNT_DEVICES_MAX ||
        __atomic_load_n(&default_known[device], __ATOMIC_RELAXED) ||
        !real.cuDeviceGetDefaultMemPool ||
        real.cuDeviceGetDefaultMemPool(&pool, device) != CUDA_SUCCESS ||
        pools_learn(number_of(pool), device) == POOLS_NONE)
        return;
    __atomic_store_n(&default_known[device], 1, __ATOMIC_RELAXED);
}

static void learn_defaults(void)
{
    for (int i = 0; i < view_count(); i++)
        learn_default(i);
}

static bool attribute(CUmemoryPool pool, CUmemPool_attribute which, uint64_t *value)
{
    cuuint64_t read = 0;
    if (!real.cuMemPoolGetAttribute ||
        real.cuMemPoolGetAttribute(pool, which, &read) != CUDA_SUCCESS)
        return false;
    *value = read;
    return true;
}

/* Charges what the pool reserves now; where that cannot be read, the last figure stands. */
static void publish(int number, CUmemoryPool pool)
{
    const uint64_t ticket = pools_ticket();
    uint64_t reserved;
    if (attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved))
        pools_publish(number, ticket, reserved);
}

static void sweep(int device, bool trim)
{
    struct capture_pause pause;
    uint64_t handle;
    hook_pause_capture(&pause);
    for (int number = 0; (number = pools_pin(device, number, &handle)) != POOLS_NONE; number++) {
        CUmemoryPool pool = (CUmemoryPool)(uintptr_t)handle; /* NOLINT(performance-no-int-to-ptr) */
        if (trim && real.cuMemPoolTrimTo) {
            const uint64_t promised = pools_trim_begins(number);
            uint64_t used = 0;
            if (!promised || attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used))
                real.cuMemPoolTrimTo(pool, used + promised);
            pools_trim_ended(number);
        }
        publish(number, pool);
        pools_unpin(number);
    }
    hook_resume_capture(&pause);
}

void pool_refresh(int device) { sweep(device, false); }

bool pool_trim(int device)
{
    const uint64_t before = account_held(device);
    sweep(device, true);
    return account_held(device) < before;
}

static struct track_owners pools_on(int device)
{
    return (struct track_owners){pools_owner(device, 0), pools_owner(device, POOLS_MAX - 1)};
}

void pool_memory_ends(int device, uint32_t end) { memory_owners_end(pools_on(device), end); }

void pool_memory_ended(int device, uint32_t end, bool gone)
{
    memory_owners_ended(pools_on(device), end, gone);
}

void pool_forget(void)
{
    pools_forget();
    for (int i = 0; i < ACCOUNT_DEVICES_MAX; i++)
        default_known[i] = 0;
}

/* The device that a stream belongs to. */
static CUresult find_device(CUstream stream, int *device)
{
    CUcontext context = NULL;
    if (stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD ||
        !real.cuStreamGetCtx || !real.cuCtxPushCurrent_v2)
        return hook_find_device(device);
    *device = NO_DEVICE;
    CUresult rc = real.cuStreamGetCtx(stream, &context);
    if (rc != CUDA_SUCCESS)
        return hook_says_nothing_there(rc) ? CUDA_SUCCESS : rc;
    if ((uint64_t)(uintptr_t)context == hook_current_context())
        return hook_find_device(device);
    return hook_context_device(context, device);
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

/* A pool that finds no place in the books could not be counted. */
static CUresult refuse_more(const char *call)
{
    struct text_line line;
    if (hook_start_refusal(&line, "pools", call, NO_DEVICE, NO_DEVICE)) {
        text_add(&line, " refused, out of memory: memory is capped, and no more than ");
        text_add_number(&line, POOLS_MAX);
        text_add(&line, " memory pools of a process can be counted; destroy some");
        log_write(POLICY_LOG_WARN, &line);
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The pool that will serve the request, by its handle and number; POOLS_NONE where it is not
 * counted. An error of the driver's is the caller's: what cannot be asked cannot be counted. */
static CUresult find_pool(const struct request *request, CUmemoryPool *pool, int *number)
{
    *pool = request->pool;
    *number = POOLS_NONE;
    if (request->pool) {
        learn_defaults();
        *number = pools_find(number_of(*pool));
    } else {
        int device;
        CUresult rc = find_device(request->stream, &device);
        if (rc != CUDA_SUCCESS || device == NO_DEVICE || !account_is_capped(device))
            return rc;
        if (real.cuDeviceGetMemPool)
            rc = real.cuDeviceGetMemPool(pool, device);
        if (rc != CUDA_SUCCESS)
            return rc;
        *number = pools_learn(number_of(*pool), device);
        if (*number == POOLS_NONE)
            return refuse_more(request->call);
    }
    if (*number != POOLS_NONE &&
        (!account_is_capped(pools_device(*number)) || pools_is_ignored(*number)))
        *number = POOLS_NONE;
    return CUDA_SUCCESS;
}

/* Plans a request: `*charge` 0 where it is promised idle reserve, else the bytes to charge for a
 * growth that has begun. True where that may be too much because of others that are on their way.
 */
static bool plan(int number, CUmemoryPool pool, const struct pools_request *planned,
                 uint64_t *charge)
{
    enum { TRIES = 4 };
    enum pools_promise answer = POOLS_STALE;
    *charge = 0;
    for (int i = 0; i < TRIES && answer == POOLS_STALE; i++) {
        const uint64_t glance = pools_glance(number);
        uint64_t used, reserved;
        if (!attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) ||
            !attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved))
            break;
        answer = pools_promise(number, glance, used < reserved ? reserved - used : 0, planned);
    }
    if (answer == POOLS_PROMISED)
        return false;
    *charge = pools_growth_begins(number, planned);
    return answer != POOLS_TOO_LITTLE || *charge > planned->chunks;
}

/* Charges what a request may let its pool grow by. Near the cap it waits a moment for others in the
 * same pool, which may be all that it does not fit beside. */
static CUresult charge_growth(const struct request *request, int number, CUmemoryPool pool,
                              const struct pools_request *planned, struct charge *charge)
{
    enum { PATIENCE = 100 };
    struct capture_pause pause;
    *charge = (struct charge){.device = pools_device(number)};
    for (int i = 0;; i++) {
        hook_pause_capture(&pause);
        const bool contended = plan(number, pool, planned, &charge->bytes);
        hook_resume_capture(&pause);
        if (charge->bytes == 0 || (contended && account_charge(charge->device, charge->bytes)))
            return CUDA_SUCCESS;
        if (!contended || i == PATIENCE)
            break;
        pools_growth_ended(number, 0);
        sched_yield();
    }
    CUresult rc = hook_charge(charge, charge->device, request->call, charge->bytes);
    if (rc != CUDA_SUCCESS)
        pools_growth_ended(number, 0);
    return rc;
}

static CUresult keep(const struct request *request, int number, int device)
{
    const struct charge nothing = {.device = device}; /* the pool is charged */
    pools_took(number);
    CUresult rc = memory_keep(&nothing, CUDA_SUCCESS, *request->dptr, pools_owner(device, number),
                              MEMORY_POOLED);
    if (rc != CUDA_SUCCESS)
        pools_gave(number);
    return rc;
}

static CUresult allocate(const struct request *request)
{
    struct charge charge;
    struct capture_pause pause;
    CUmemoryPool pool;
    CUresult refusal;
    int number;
    /* a captured allocation takes memory when its graph is launched, not now */
    if (!request->dptr || !request->bytes ||
        hook_is_capturing(request->stream, request->per_thread))
        return ask_driver(request);
    if (!view_ready(&refusal))
        return refusal == CUDA_SUCCESS ? ask_driver(request) : refusal;
    hook_pause_capture(&pause);
    CUresult rc = find_pool(request, &pool, &number);
    hook_resume_capture(&pause);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (number == POOLS_NONE)
        return ask_driver(request);
    const uint64_t bytes = account_granule(request->bytes);
    const struct pools_request planned = {bytes, account_chunks(bytes)};
    rc = charge_growth(request, number, pool, &planned, &charge);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = ask_driver(request);
    hook_pause_capture(&pause);
    publish(number, pool);
    if (charge.bytes == 0)
        pools_promise_kept(number, &planned);
    else if (pools_growth_ended(number, charge.bytes))
        hook_refund(&charge);
    /* The reserve grew by more than was foreseen. What cannot be freed is the caller's. */
    if (rc == CUDA_SUCCESS && account_held(charge.device) > account_cap(charge.device) &&
        free_again(request) == CUDA_SUCCESS) {
        hook_trim(charge.device);
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    }
    hook_resume_capture(&pause);
    return rc == CUDA_SUCCESS ? keep(request, number, charge.device) : rc;
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
    struct memory_leaving leaving;
    memory_leaves(&leaving, dptr);
    CUresult rc = original(dptr, stream);
    memory_left(&leaving, rc);
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

/* Where a pool is, and whether it counts. */
struct home {
    int device; /* or NO_DEVICE */
    bool counts;
};

/* Managed memory without a place of its own is on the first device. */
static CUresult home_of(const char *call, CUmemAllocationType type, const CUmemLocation *location,
                        struct home *home)
{
    CUresult rc;
    *home = (struct home){NO_DEVICE, true};
    if (!view_ready(&rc) && rc != CUDA_SUCCESS)
        return rc;
    if (type == CU_MEM_ALLOCATION_TYPE_MANAGED)
        rc = managed_rule(call, &home->counts);
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE) {
        home->device = location->id;
    } else if (type == CU_MEM_ALLOCATION_TYPE_MANAGED &&
               location->type == CU_MEM_LOCATION_TYPE_INVALID) {
        home->device = 0;
    }
    return rc;
}

/* False where there is no place in the books. The driver's own pools have theirs before all others.
 */
static bool entered(CUmemoryPool pool, const struct home *home,
                    int (*enter)(uint64_t handle, int device))
{
    if (home->device == NO_DEVICE || !account_is_capped(home->device))
        return true;
    learn_defaults();
    const int number = enter(number_of(pool), home->device);
    if (number != POOLS_NONE && !home->counts)
        pools_ignore(number);
    return number != POOLS_NONE || !home->counts;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    struct home home;
    HOOK_ENTER(cuMemPoolCreate, (pool, props));
    if (!pool || !props)
        return real.cuMemPoolCreate(pool, props);
    CUresult rc = home_of("cuMemPoolCreate", props->allocType, &props->location, &home);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuMemPoolCreate(pool, props);
    if (rc == CUDA_SUCCESS && !entered(*pool, &home, pools_enter)) {
        real.cuMemPoolDestroy(*pool);
        rc = refuse_more("cuMemPoolCreate");
    }
    return rc;
}

/* The driver's own pools of managed memory are made nowhere: they are met here first. Those of
 * device memory are known (find_pool). */
static CUresult
meet(CUresult (*original)(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type),
     const char *call, CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    struct home home;
    if (!pool || !location || type != CU_MEM_ALLOCATION_TYPE_MANAGED)
        return original(pool, location, type);
    CUresult rc = home_of(call, type, location, &home);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = original(pool, location, type);
    return rc != CUDA_SUCCESS || entered(*pool, &home, pools_learn) ? rc : refuse_more(call);
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location,
                                CUmemAllocationType type)
{
    HOOK_ENTER(cuMemGetDefaultMemPool, (pool, location, type));
    return meet(real.cuMemGetDefaultMemPool, "cuMemGetDefaultMemPool", pool, location, type);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    HOOK_ENTER(cuMemGetMemPool, (pool, location, type));
    return meet(real.cuMemGetMemPool, "cuMemGetMemPool", pool, location, type);
}

/* What is alive in a destroyed pool lives on, and with it the memory that it lies in. */
CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    HOOK_ENTER(cuMemPoolDestroy, (pool));
    const int number = pools_close(number_of(pool));
    if (number == POOLS_NONE)
        return real.cuMemPoolDestroy(pool);
    struct capture_pause pause;
    hook_pause_capture(&pause);
    if (real.cuMemPoolTrimTo)
        real.cuMemPoolTrimTo(pool, 0);
    uint64_t reserved = pools_reserved(number);
    (void)attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
    hook_resume_capture(&pause);
    CUresult rc = real.cuMemPoolDestroy(pool);
    pools_closed(number, rc == CUDA_SUCCESS, reserved);
    return rc;
}
