/* pools.c -- see pools.h. */
#include "pools.h"
#include "account.h"
#include "once.h"

#include <sched.h>
#include <string.h>

enum state { FREE, ALIVE, CLOSING, DESTROYED };

static struct pool {
    uint64_t handle;
    uint64_t reserved; /* bytes, as charged */
    uint64_t ticket;   /* of that reading */
    uint64_t live;     /* allocations */
    uint64_t promised; /* bytes of the reserve, to requests on their way */
    uint64_t served;   /* requests that a promise was made to, and that are over */
    uint16_t device;
    uint16_t pins;
    enum state state;
} pools[POOLS_MAX];
static int used; /* no pool has this number or a higher one */
static uint64_t last_ticket;
static struct short_lock lock;

/* Under the lock. */
static int find(uint64_t handle)
{
    for (int i = 0; i < used; i++) {
        if (pools[i].state == ALIVE && pools[i].handle == handle)
            return i;
    }
    return POOLS_NONE;
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
    account_correct(pool->device, pool->reserved, reserved);
    __atomic_store_n(&pool->reserved, reserved, __ATOMIC_RELAXED);
}

void pools_publish(int pool, uint64_t ticket, uint64_t reserved_bytes)
{
    short_lock_take(&lock);
    if (pools[pool].state == ALIVE && ticket > pools[pool].ticket) {
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
    uint64_t served = pools[pool].served;
    short_lock_drop(&lock);
    return served;
}

enum pools_promise pools_promise(int pool, uint64_t glance, uint64_t idle_bytes, uint64_t bytes)
{
    enum pools_promise answer = POOLS_TOO_LITTLE;
    short_lock_take(&lock);
    const uint64_t promised = pools[pool].promised;
    if (pools[pool].served != glance) {
        answer = POOLS_STALE;
    } else if (promised <= idle_bytes && bytes <= idle_bytes - promised) {
        pools[pool].promised += bytes;
        answer = POOLS_PROMISED;
    }
    short_lock_drop(&lock);
    return answer;
}

uint64_t pools_promised(int pool)
{
    short_lock_take(&lock);
    uint64_t promised = pools[pool].promised;
    short_lock_drop(&lock);
    return promised;
}

void pools_promise_kept(int pool, uint64_t bytes)
{
    short_lock_take(&lock);
    pools[pool].promised -= bytes;
    pools[pool].served++;
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
