/* fork.c -- see fork.h. */
#include "fork.h"
#include "account.h"

/* glibc has pthread_atfork only for static linking; other C libraries have only pthread_atfork. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void *object) __attribute__((weak));
extern int pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
    __attribute__((weak));

static void in_child(void)
{
    memory_forget();
    pool_forget();
    vmm_forget();
    account_forget();
}

void fork_watch(void)
{
    static int watching;
    if (__atomic_exchange_n(&watching, 1, __ATOMIC_ACQ_REL))
        return;
    if (__register_atfork)
        __register_atfork(0, 0, in_child, 0);
    else if (pthread_atfork)
        pthread_atfork(0, 0, in_child);
}
