/* entry.h -- what happens at the door of every exported function, before the function itself.
 *
 * Knows: the lock of the whole simulated driver, the call counters, SIMCUDA_FAIL, what a call
 * needs. Must not know: what any function does.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_ENTRY_H
#define GPUSHIM_TESTS_SIMCUDA_ENTRY_H

#include "api.h"

/* Column `when` of api.def. In the child of a process that had initialised the driver everything
 * but ALWAYS answers CUDA_ERROR_NOT_INITIALIZED (simulated-driver.md, section 8). */
enum {
    ALWAYS = 0,      /* look-ups */
    BEFORE_INIT = 1, /* valid before cuInit */
    AFTER_INIT = 2,  /* CUDA_ERROR_NOT_INITIALIZED before cuInit has succeeded */
    IN_CONTEXT = 3,  /* the same, then CUDA_ERROR_INVALID_CONTEXT without a live current context */
    UNSAFE = 8,      /* flag: forbidden to this thread while a capture runs (capture.h) */
    READINESS = 7    /* mask */
};

/* Counts the call and decides whether it goes on. CUDA_SUCCESS: it does, with the driver's lock
 * held until entry_end. Anything else is the call's result, with the lock not held. */
CUresult entry_begin(enum api_index index, int when);
void entry_end(void);
/* The lock alone, for the private tables' functions; entry_end lets it go. */
void entry_lock(void);

/* The lock is recursive. Around a call to the program's own functions let go of it altogether. */
int entry_release(void); /* returns the depth to give to entry_regain */
void entry_regain(int depth);

/* Called by cuInit when it has succeeded: from now on this process is the initialised one. */
void entry_initialised(void);

#endif
