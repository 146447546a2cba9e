/* fork.c -- see fork.h. */
#include "fork.h"
#include "account.h"
#include "graphs.h"
#include "objects.h"
#include "once.h"

#include <string.h>

static void in_child(void)
{
    memory_forget();
    pool_forget();
    graphs_forget();
    vmm_forget();
    array_forget();
    sparse_forget();
    context_forget();
    attached_forget();
    green_forget();
    overhead_forget();
    module_forget();
    array_home_forget();
    account_forget();
}

static void watch(void)
{
    /* glibc has pthread_atfork only for static linking; other C libraries have only that. Looked up
     * here, since an undefined weak name costs every process of a machine a search. */
    int (*by_object)(void (*)(void), void (*)(void), void (*)(void), void *) = NULL;
    int (*plain)(void (*)(void), void (*)(void), void (*)(void)) = NULL;
    void *found = objects_search(objects_first(), objects_first_opened(), "__register_atfork");
    memcpy(&by_object, &found, sizeof found);
    if (by_object) {
        by_object(NULL, NULL, in_child, NULL);
        return;
    }
    found = objects_search(objects_first(), objects_first_opened(), "pthread_atfork");
    memcpy(&plain, &found, sizeof found);
    if (plain)
        plain(NULL, NULL, in_child);
}

/* Nobody goes on to take a lock before the handler is there that frees it in a child. */
void fork_watch(void)
{
    static struct once once;
    bool done;
    if (!once_begin(&once, &done))
        return;
    watch();
    once_done(&once);
}
