/* referee.c -- the questions of simcuda.h on memory; simcuda_calls is in entry.c. */
#include "simcuda.h"

#include "state.h"

#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static uint64_t bytes_of(int gpu, int pid, enum state_use use)
{
    return state_bytes(gpu, pid == SIMCUDA_THIS_PROCESS ? getpid() : pid, use);
}

EXPORT uint64_t simcuda_live_bytes(int gpu, int pid) { return bytes_of(gpu, pid, USE_ALLOCATION); }

EXPORT uint64_t simcuda_context_bytes(int gpu, int pid) { return bytes_of(gpu, pid, USE_CONTEXT); }
