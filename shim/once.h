/* once.h -- do a thing once, whichever thread comes first, without pthread_once (which not every C
 * library keeps in libc) and without a lock that a fork could leave held for ever.
 *
 * Knows: threads and processes. Must not know: what is done.
 */
#ifndef GPUSHIM_SHIM_ONCE_H
#define GPUSHIM_SHIM_ONCE_H

#include <stdbool.h>
#include <stdint.h>

enum { ONCE_NEW = 0, ONCE_DONE = 1 };

/* All zero is "not yet done". One word, so that no fork falls between a claim and its claimant. */
struct once {
    uint64_t state; /* or the process and thread that runs it */
};

/* True: the caller is to do the thing and then call once_done() or, to leave it undone so that the
 * next caller tries again, once_undo(). False: it is done; or it is this very thread that is doing
 * it (a call that came back to us through another library): `done` tells which. Others wait. Where
 * the doing thread is gone because this process was forked, the caller takes over. */
bool once_begin(struct once *once, bool *done);
void once_done(struct once *once);
void once_undo(struct once *once);

static inline bool once_is_done(const struct once *once)
{
    return __atomic_load_n(&once->state, __ATOMIC_ACQUIRE) == ONCE_DONE;
}

/* A mutex of the same manners for short sections that never call out of our own code: yields while
 * another thread is in. All zero is free. Not for signal handlers. After a fork the child resets it
 * (a section of a thread that the child does not have will never end). */
struct short_lock {
    int held;
};

void short_lock_take(struct short_lock *lock);
void short_lock_drop(struct short_lock *lock);

/* A lock that its own thread may take again, for the one place where a call into the driver is made
 * under it: the life and death of a device's primary context, which the driver serialises too. */
struct owner_lock {
    uint64_t owner;
    int depth;
};

void owner_lock_take(struct owner_lock *lock);
void owner_lock_drop(struct owner_lock *lock);

#endif
