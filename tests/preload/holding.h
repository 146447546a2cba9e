/* holding.h -- for the tests of who keeps memory alive: what is alive by the referee, what is held
 * by the shim, and calls that fail once.
 *
 * A program runs without the shim and under it, and must see the same; as `faults`, every driver
 * call in turn fails once, with 999, in a process of its own.
 */
#ifndef GPUSHIM_TESTS_HOLDING_H
#define GPUSHIM_TESTS_HOLDING_H

#include "client.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GPU = 3, PART = 2 << 20 };
#define CAP (256 * MIB)

static bool shim, tolerant; /* tolerant: of calls that fail once */

static inline uint64_t live(void) { return cuda.live_bytes(GPU, SIMCUDA_THIS_PROCESS); }

static inline uint64_t held(void)
{
    size_t available, total;
    while (cuda.cuMemGetInfo_v2(&available, &total) != CUDA_SUCCESS)
        assert_true(tolerant);
    return shim ? total - available : live();
}

/* What is alive, and by how much more the shim may count. */
static inline void check(size_t alive, size_t slack)
{
    assert_int_equal(live(), alive);
    if (tolerant)
        assert_true(held() >= alive);
    else
        assert_int_equal(held(), alive + (shim ? slack : 0));
}

/* A call that may fail once, with the error that SIMCUDA_FAIL names. */
static inline bool failed_once(CUresult rc)
{
    if (rc == CUDA_SUCCESS)
        return false;
    assert_true(tolerant);
    assert_int_equal(rc, 999);
    return true;
}
#define must(call)                                                                                 \
    do {                                                                                           \
    } while (failed_once(call))

#define refuses(code, call)                                                                        \
    do {                                                                                           \
        CUresult answer = (call);                                                                  \
        if (tolerant && answer == 999)                                                             \
            answer = (call);                                                                       \
        assert_int_equal(answer, code);                                                            \
    } while (0)

/* Runs `run` once for each of the first calls of each function, which fails. */
static inline int run_faults(int (*run)(void), const char *const *calls, size_t count)
{
    enum { TIMES = 6 };
    int failures = 0;
    tolerant = true;
    for (size_t i = 0; i < count; i++) {
        for (int n = 1; n <= TIMES; n++) {
            char setting[96];
            int status;
            snprintf(setting, sizeof setting, "%s:%d:999", calls[i], n);
            fflush(NULL);
            pid_t pid = fork();
            if (pid == 0) {
                setenv("SIMCUDA_FAIL", setting, 1);
                _exit(run() != 0);
            }
            if (waitpid(pid, &status, 0) != pid || status != 0) {
                printf("with SIMCUDA_FAIL=%s: failed\n", setting);
                failures++;
            }
        }
    }
    return failures != 0;
}

#endif
