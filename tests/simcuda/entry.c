/* entry.c -- see entry.h. */
#include "entry.h"

#include "capture.h"
#include "context.h"
#include "settings.h"
#include "simcuda.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static _Atomic uint64_t calls[API_COUNT];
static atomic_int initialised_pid;

static pthread_mutex_t lock;
static int depth; /* of the lock, written by its holder */

static void make_lock(void)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    depth = 0;
}

__attribute__((constructor)) static void prepare(void)
{
    make_lock();
    pthread_atfork(NULL, NULL, make_lock); /* another thread may hold it at the fork */
}

static CUresult readiness(int when)
{
    int pid = atomic_load(&initialised_pid), need = when & READINESS;

    if (need != ALWAYS && pid != 0 && pid != getpid())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (need >= AFTER_INIT && pid == 0)
        return CUDA_ERROR_NOT_INITIALIZED;
    return CUDA_SUCCESS;
}

static CUresult readiness_locked(int when)
{
    CUresult result = CUDA_SUCCESS;

    if ((when & READINESS) == IN_CONTEXT)
        result = context_check_current();
    if (result == CUDA_SUCCESS && (when & UNSAFE))
        result = capture_check_unsafe();
    return result;
}

CUresult entry_begin(enum api_index index, int when)
{
    uint64_t n = atomic_fetch_add(&calls[index], 1) + 1;

    if (settings_has_failures()) {
        int code = settings_failure(api_rows[index].symbol, n);
        if (code)
            return (CUresult)code;
    }
    CUresult result = readiness(when);
    if (result != CUDA_SUCCESS)
        return result;
    entry_lock();
    result = readiness_locked(when);
    if (result != CUDA_SUCCESS)
        entry_end();
    return result;
}

void entry_lock(void)
{
    pthread_mutex_lock(&lock);
    depth++;
}

void entry_end(void)
{
    depth--;
    pthread_mutex_unlock(&lock);
}

int entry_release(void)
{
    int held = depth;

    for (int i = 0; i < held; i++)
        entry_end();
    return held;
}

void entry_regain(int held)
{
    for (int i = 0; i < held; i++)
        entry_lock();
}

void entry_initialised(void) { atomic_store(&initialised_pid, getpid()); }

__attribute__((visibility("default"))) uint64_t simcuda_calls(const char *symbol)
{
    for (int i = 0; i < API_COUNT; i++)
        if (strcmp(api_rows[i].symbol, symbol) == 0)
            return atomic_load(&calls[i]);
    return 0;
}
