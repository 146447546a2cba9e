/* pools.h -- the memory pools of this process: whose device, what is charged for each, what is
 * alive.
 *
 * Knows: handles as numbers. Must not know: the driver's calls.
 * A pool is charged by what it reserved when last read. It stays in the books after its destruction
 * until the last of its allocations is freed, since the driver keeps its memory so long.
 * Thread-safe; the lock is never held across a call out of here.
 */
#ifndef GPUSHIM_SHIM_POOLS_H
#define GPUSHIM_SHIM_POOLS_H

#include <stdbool.h>
#include <stdint.h>

enum { POOLS_MAX = 1024, POOLS_NONE = -1 };

/* A pool's number as the owner of its allocations: those of a device stand side by side, and no
 * handle of a context is so small. */
static inline uint64_t pools_owner(int device, int pool)
{
    return 1 + (uint64_t)device * POOLS_MAX + (uint64_t)pool;
}
static inline int pools_of_owner(uint64_t owner) { return (int)((owner - 1) % POOLS_MAX); }

/* Enters a pool that has just been made, or one that may be known already: its number, or
 * POOLS_NONE where there is no room. */
int pools_enter(uint64_t handle, int device);
int pools_learn(uint64_t handle, int device);
/* Of a pool that a rule lets pass: what it reserves is known, and not charged. */
void pools_ignore(int pool);
bool pools_is_ignored(int pool);
/* The number of a pool that is counted, or POOLS_NONE (host memory, another process's). */
int pools_find(uint64_t handle);
int pools_device(int pool);
uint64_t pools_reserved(int pool); /* bytes, as charged */

/* The first pool of a device from number `from` on, whose handle stays valid until pools_unpin():
 * pools_close() waits for that. POOLS_NONE: no more. Between the two, only one short call of the
 * driver. */
int pools_pin(int device, int from, uint64_t *handle);
void pools_unpin(int pool);

/* A reading of a pool's reserve begins with a ticket; of two, the one that began later counts. */
uint64_t pools_ticket(void);
void pools_publish(int pool, uint64_t ticket, uint64_t reserved_bytes);

/* A request is either promised a part of the pool's idle reserve, or lets the pool grow, by at most
 * `chunks` bytes. One that may let it grow can be served from the idle reserve after all, and then
 * one with a promise lets it grow in its place. So no promise is made while a growth is on its way
 * (POOLS_BUSY), and a growth is charged for the promises before it too, until they are kept.
 * `glance` is what pools_glance() gave before the idle bytes were asked for: where a request or a
 * trim has ended since, the figure is stale, and the answer is POOLS_STALE. */
enum pools_promise { POOLS_PROMISED, POOLS_TOO_LITTLE, POOLS_BUSY, POOLS_STALE };
struct pools_request {
    uint64_t bytes, chunks;
};
uint64_t pools_glance(int pool);
enum pools_promise pools_promise(int pool, uint64_t glance, uint64_t idle_bytes,
                                 const struct pools_request *request);
/* After the request has been served or has failed. */
void pools_promise_kept(int pool, const struct pools_request *request);
/* The bytes to be charged for a growth. After the request: true if the caller is to give them back,
 * false if that happens later. `charged` 0: they could not be charged. */
uint64_t pools_growth_begins(int pool, const struct pools_request *request);
bool pools_growth_ended(int pool, uint64_t charged);

/* Between these two no promise is made (the answer is POOLS_TOO_LITTLE), so that a trim can leave
 * what was promised before: the bytes that the first returns. */
uint64_t pools_trim_begins(int pool);
void pools_trim_ended(int pool);
/* One allocation of a pool more, or less. The last of a destroyed pool gives its charge back. */
void pools_took(int pool);
void pools_gave(int pool);

/* The two halves of a destruction: we ask nothing about the pool any more; and how it went. The
 * driver may refuse it, so until then the pool is found by its handle all the same. */
int pools_close(uint64_t handle);
void pools_closed(int pool, bool gone, uint64_t reserved_bytes);

void pools_forget(void);

#endif
