/* copy.h -- cross_device_copy = deny: on which GPUs the ends of a copy lie, and the refusal.
 *
 * Knows: what the driver says of an address, where arrays were made. Must not know: which calls
 * copy. For hook_copy*.c and those whose calls copy besides (graphs, managed memory).
 *
 * What a call says of its ends (host, device) is not believed: each address is asked about. Both
 * ends on one GPU, or either in host memory: the copy goes on. Managed memory is no end of a copy,
 * since no call tells where its pages are. A copy that cannot be judged because the driver fails is
 * answered with the driver's error.
 *
 * The checks are called where the rule holds (WHEN_COPIES). CUDA_SUCCESS: forward; else what the
 * hook must answer. `call` is a literal, for the message. They call the driver, and neither break a
 * stream capture nor change the current context. Thread-safe.
 */
#ifndef GPUSHIM_SHIM_COPY_H
#define GPUSHIM_SHIM_COPY_H

#include "cuda_abi.h"

#include <stdbool.h>
#include <stdint.h>

/* One end of a copy: memory, or an array; and the context that the call names for it. */
struct copy_end {
    uint64_t address, bytes; /* of memory; 0 bytes: none, or nothing is copied */
    const void *array;
    CUcontext context;
};

CUresult copy_check(const char *call, const struct copy_end *to, const struct copy_end *from);
/* Managed memory's own GPU is the one that it was allocated on; `device` is where it is to go. */
CUresult copy_check_move(const char *call, uint64_t address, uint64_t bytes, int device);
/* NULL is the driver's to refuse (hook_copy_rows.c). */
CUresult copy_check_3d(const char *call, const CUDA_MEMCPY3D *copy);
/* The same for a node that runs in a context; NULL: the current one (hook_copy_node.c). */
CUresult copy_check_node(const char *call, const CUDA_MEMCPY3D *copy, CUcontext context);

/* The GPU of an array, or of a mipmapped array: where it was made. The current context's for one
 * whose making was not seen (of a graphics resource or of external memory); NO_DEVICE without a
 * context. Otherwise what the hook must answer (hook_array_home.c). */
CUresult array_home(const void *array, int *device);
/* For those that make and destroy arrays: the GPU of one that is made now (NO_DEVICE where no rule
 * wants to know); keeps it, or, NO_DEVICE, nothing; takes it out, before the driver destroys the
 * array, since the handle may be given out again at once. */
CUresult array_home_now(int *device);
void array_home_keep(const void *array, int device);
int array_home_take(const void *array);

#endif
