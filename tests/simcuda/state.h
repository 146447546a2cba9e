/* state.h -- how much of each card each process uses: the file of SIMCUDA_STATE, mapped by all of
 * them.
 *
 * Knows: processes and bytes. Must not know: what the bytes are for, beyond allocation or context.
 * A slot counts while its process (pid and start time) lives; nothing is repaired after kill -9.
 * Used by both libraries. Thread-safe; reading is valid in a forked child, taking isn't.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_STATE_H
#define GPUSHIM_TESTS_SIMCUDA_STATE_H

#include <stdint.h>

enum state_use { USE_ALLOCATION, USE_CONTEXT, USE_KINDS };

struct state_process {
    int pid;
    uint64_t bytes; /* of both kinds */
};

/* Maps the file and gives this process a slot. 0, or -1 where the file can't be used or is full. */
int state_join(void);

/* Takes bytes of a card for this process, at once and only if all processes together stay within
 * its capacity: 0, or -1 where they don't fit. */
int state_take(int gpu, uint64_t bytes, enum state_use use);
void state_give(int gpu, uint64_t bytes, enum state_use use);

/* A process with a context on a card is listed among those that use it, whatever that takes. */
void state_enter_context(int gpu);
void state_leave_context(int gpu);

/* Bytes of a card used for one purpose by a process; pid 0: by all. */
uint64_t state_bytes(int gpu, int pid, enum state_use use);
uint64_t state_free_bytes(int gpu);

/* The processes that use a card, up to max of them; returns how many there are. */
unsigned int state_processes(int gpu, struct state_process out[], unsigned int max);

#endif
