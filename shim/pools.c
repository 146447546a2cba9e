/* pools.c -- see pools.h. */
#include "pools.h"
#include "account.h"
#include "once.h"

#include <sched.h>
#include <string.h>

enum state { FREE, ALIVE, CLOSING, DESTROYED };

static struct pool {
    uint64_t handle;
    uint64_t reserved;             /* bytes, as charged */
    uint64_t ticket;               /* of that reading */
    uint64_t live;                 /* allocations */
    struct pools_request promised; /* to requests on their way */
    uint64_t cover;   /* charged for growths that are over, until the promises are kept */
    uint64_t changes; /* requests and trims that are over: older idle figures are stale */
    uint16_t device;
    uint16_t pins;
    uint16_t trims, growths; /* on their way */
    enum state state;
    bool ignored;
} pools[POOLS_MAX];
static int used; /* no pool has this number or a higher one */
static uint64_t last_ticket;
static struct short_lock lock;

/* Under the lock. Of two pools of one handle, the one that is being destroyed is the older. */
static int find(uint64_t handle)
{
    int found = POOLS_NONE;
    for (int i = 0; i < used; i++) {
        if (pools[i].handle == handle &&
            (pools[i].state == ALIVE || (pools[i].state == CLOSING && found == POOLS_NONE)))
            found = i;
    }
    return found;
}

static int enter(uint64_t handle, int device)
{
    int i = 0;
    while (i < used && pools[i].state != FREE)
        i++;
    if (i == POOLS_MAX)
        return POOLS_NONE;
    if (i == used)
        used++;
    pools[i] = (struct pool){.handle = handle, .device = (uint16_t)device, .state = ALIVE};
    return i;
}

int pools_enter(uint64_t handle, int device)
{
    short_lock_take(&lock);
    int pool = enter(handle, device);
    short_lock_drop(&lock);
    return pool;
}

int pools_learn(uint64_t handle, int device)
{
    short_lock_take(&lock);
    int pool = find(handle);
    if (pool == POOLS_NONE)
        pool = enter(handle, device);
    short_lock_drop(&lock);
    return pool;
}

int pools_find(uint64_t handle)
{
    short_lock_take(&lock);
    int pool = find(handle);
    short_lock_drop(&lock);
    return pool;
}

void pools_ignore(int pool) { __atomic_store_n(&pools[pool].ignored, true, __ATOMIC_RELAXED); }

bool pools_is_ignored(int pool) { return __atomic_load_n(&pools[pool].ignored, __ATOMIC_RELAXED); }

int pools_device(int pool) { return pools[pool].device; }

uint64_t pools_reserved(int pool)
{
    return __atomic_load_n(&pools[pool].reserved, __ATOMIC_RELAXED);
}

int pools_pin(int device, int from, uint64_t *handle)
{
    int found = POOLS_NONE;
    short_lock_take(&lock);
    for (int i = from; i < used && found == POOLS_NONE; i++) {
        if (pools[i].state == ALIVE && pools[i].device == device) {
            pools[i].pins++;
            *handle = pools[i].handle;
            found = i;
        }
    }
    short_lock_drop(&lock);
    return found;
}

void pools_unpin(int pool)
{
    short_lock_take(&lock);
    pools[pool].pins--;
    short_lock_drop(&lock);
}

uint64_t pools_ticket(void) { return __atomic_add_fetch(&last_ticket, 1, __ATOMIC_RELAXED); }

static void charge(struct pool *pool, uint64_t reserved)
{
    if (pool->ignored)
        account_ignore(pool->device, reserved - pool->reserved);
    else
        account_correct(pool->device, pool->reserved, reserved);
    __atomic_store_n(&pool->reserved, reserved, __ATOMIC_RELAXED);
}

void pools_publish(int pool, uint64_t ticket, uint64_t reserved_bytes)
{
    short_lock_take(&lock);
    if ((pools[pool].state == ALIVE || pools[pool].state == CLOSING) &&
        ticket > pools[pool].ticket) {
        charge(&pools[pool], reserved_bytes);
        pools[pool].ticket = ticket;
    }
    short_lock_drop(&lock);
}

/* Under the lock: a destroyed pool without allocations is no more. */
static void end_if_over(struct pool *pool)
{
    if (pool->state != DESTROYED || pool->live > 0)
        return;
    charge(pool, 0);
    pool->state = FREE;
}

uint64_t pools_glance(int pool)
{
    short_lock_take(&lock);
    uint64_t changes = pools[pool].changes;
    short_lock_drop(&lock);
    return changes;
}

enum pools_promise pools_promise(int pool, uint64_t glance, uint64_t idle_bytes,
                                 const struct pools_request *request)
{
    enum pools_promise answer = POOLS_TOO_LITTLE;
    short_lock_take(&lock);
    struct pools_request *promised = &pools[pool].promised;
    if (pools[pool].changes != glance) {
        answer = POOLS_STALE;
    } else if (pools[pool].trims > 0 || pools[pool].growths > 0) {
        answer = POOLS_BUSY;
    } else if (promised->bytes <= idle_bytes && request->bytes <= idle_bytes - promised->bytes) {
        promised->bytes += request->bytes;
        promised->chunks += request->chunks;
        answer = POOLS_PROMISED;
    }
    short_lock_drop(&lock);
    return answer;
}

void pools_promise_kept(int pool, const struct pools_request *request)
{
    short_lock_take(&lock);
    struct pool *of = &pools[pool];
    of->promised.bytes -= request->bytes;
    of->promised.chunks -= request->chunks;
    of->changes++;
    if (of->promised.bytes == 0) {
        account_refund(of->device, of->cover);
        of->cover = 0;
    }
    short_lock_drop(&lock);
}

uint64_t pools_growth_begins(int pool, const struct pools_request *request)
{
    short_lock_take(&lock);
    pools[pool].growths++;
    const uint64_t promised = pools[pool].promised.chunks;
    short_lock_drop(&lock);
    return promised > request->chunks ? promised : request->chunks;
}

bool pools_growth_ended(int pool, uint64_t charged)
{
    short_lock_take(&lock);
    struct pool *of = &pools[pool];
    of->growths--;
    of->changes++;
    const bool over = of->promised.bytes == 0;
    if (!over)
        of->cover += charged;
    short_lock_drop(&lock);
    return over;
}

uint64_t pools_trim_begins(int pool)
{
    short_lock_take(&lock);
    pools[pool].trims++;
    uint64_t promised = pools[pool].promised.bytes;
    short_lock_drop(&lock);
    return promised;
}

void pools_trim_ended(int pool)
{
    short_lock_take(&lock);
    pools[pool].trims--;
    pools[pool].changes++;
    short_lock_drop(&lock);
}

void pools_took(int pool)
{
    short_lock_take(&lock);
    pools[pool].live++;
    short_lock_drop(&lock);
}

void pools_gave(int pool)
{
    short_lock_take(&lock);
    if (pools[pool].live > 0)
        pools[pool].live--;
    end_if_over(&pools[pool]);
    short_lock_drop(&lock);
}

int pools_close(uint64_t handle)
{
    short_lock_take(&lock);
    int pool = find(handle);
    if (pool != POOLS_NONE && pools[pool].state == CLOSING)
        pool = POOLS_NONE; /* another thread is at it */
    if (pool != POOLS_NONE)
        pools[pool].state = CLOSING;
    while (pool != POOLS_NONE && pools[pool].pins > 0) {
        short_lock_drop(&lock);
        sched_yield();
        short_lock_take(&lock);
    }
    short_lock_drop(&lock);
    return pool;
}

void pools_closed(int pool, bool gone, uint64_t reserved_bytes)
{
    short_lock_take(&lock);
    pools[pool].state = gone ? DESTROYED : ALIVE;
    if (gone) {
        charge(&pools[pool], reserved_bytes);
        end_if_over(&pools[pool]);
    }
    short_lock_drop(&lock);
}

void pools_forget(void)
{
    lock = (struct short_lock){0};
    memset(pools, 0, sizeof pools);
    used = 0;
}
