/* usage.h -- what NVML says of a device's memory, and of this process's part in it.
 *
 * Knows: NVML's process lists. Must not know: what is counted, caps. Asks between an nvmlInit and
 * an nvmlShutdown of its own, so that the program's reference count stays what it is. Thread-safe,
 * takes no lock, no malloc. Milliseconds where the program has not initialised NVML itself.
 */
#ifndef GPUSHIM_SHIM_USAGE_H
#define GPUSHIM_SHIM_USAGE_H

#include <stdbool.h>
#include <stdint.h>

struct usage {
    bool known;    /* NVML answered; else the rest means nothing */
    bool listed;   /* among the device's compute processes, by our process id */
    uint64_t own;  /* bytes of this process, contexts and modules included; 0 where not listed */
    uint64_t card; /* bytes in use on the device, by everyone */
};

/* `uuid` as NVML writes it. */
void usage_ask(const char *uuid, struct usage *usage);

#endif
