/* driver.h -- the real libcuda and libnvidia-ml: a private handle on each, the originals, and which
 * of our hooks stands for an address of theirs.
 *
 * Knows: where originals come from. Must not know: what hooks do with them, or the policy.
 * Thread-safe; usable as the first call of a process. The handles are never closed.
 */
#ifndef GPUSHIM_SHIM_DRIVER_H
#define GPUSHIM_SHIM_DRIVER_H

#include "hooks.h"

#include <stdbool.h>

/* True when the library is open and its slots in `real` or `real_nvml` are filled. With `load`
 * false only a library that the process has already loaded is taken. Within its own opening (a call
 * that comes back through the library's constructors) the answer is false. Preserves errno; leaves
 * dlerror as the C library leaves it. */
bool driver_open(bool load);
bool nvml_open(bool load);

/* The row whose original is at this address, or -1. A driver may export one function under two
 * names; the answer is then the first of them in hooks.def. */
int driver_row_at(const void *address);
/* dlsym on the private handle of the row's library: NULL, with dlerror naming the symbol, if
 * absent. */
void *driver_look_up(int row);

#endif
