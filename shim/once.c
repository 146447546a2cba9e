/* once.c -- see once.h. */
#include "once.h"

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t self(void) { return (uint64_t)getpid() << 32 | (uint64_t)syscall(SYS_gettid); }

/* Another thread is in: let it run, also where it has a lower priority than this one. */
static void wait_a_little(int *rounds)
{
    const struct timespec pause = {0, 50000};
    if (++*rounds < 64)
        sched_yield();
    else
        nanosleep(&pause, NULL);
}

bool once_begin(struct once *once, bool *done)
{
    *done = once_is_done(once);
    if (*done)
        return false;
    const uint64_t me = self();
    int rounds = 0;
    for (;;) {
        uint64_t state = ONCE_NEW;
        if (__atomic_compare_exchange_n(&once->state, &state, me, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_ACQUIRE))
            return true;
        *done = state == ONCE_DONE;
        if (*done || state == me)
            return false;
        if (state >> 32 != me >> 32 &&
            __atomic_compare_exchange_n(&once->state, &state, me, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return true; /* the runner stayed behind in the parent */
        wait_a_little(&rounds);
    }
}

void once_done(struct once *once) { __atomic_store_n(&once->state, ONCE_DONE, __ATOMIC_RELEASE); }

void once_undo(struct once *once) { __atomic_store_n(&once->state, ONCE_NEW, __ATOMIC_RELEASE); }

void short_lock_take(struct short_lock *lock)
{
    int rounds = 0;
    while (__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE))
        wait_a_little(&rounds);
}

void short_lock_drop(struct short_lock *lock)
{
    __atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}

void owner_lock_take(struct owner_lock *lock)
{
    const uint64_t me = self();
    int rounds = 0;
    uint64_t owner = 0;
    while (__atomic_load_n(&lock->owner, __ATOMIC_RELAXED) != me &&
           !__atomic_compare_exchange_n(&lock->owner, &owner, me, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
        owner = 0;
        wait_a_little(&rounds);
    }
    lock->depth++;
}

void owner_lock_drop(struct owner_lock *lock)
{
    if (--lock->depth == 0)
        __atomic_store_n(&lock->owner, 0, __ATOMIC_RELEASE);
}
