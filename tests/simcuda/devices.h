/* devices.h -- the cards that CUDA sees in this process, in its order.
 *
 * Knows: ordinals. Must not know: other processes. Valid after cuInit, under the driver's lock.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_DEVICES_H
#define GPUSHIM_TESTS_SIMCUDA_DEVICES_H

#include "abi_more.h"
#include "context.h"
#include "machine.h"

struct device {
    CUdevice ordinal;
    const struct gpu *gpu;
    struct CUctx_st primary; /* the handle exists before the context does */
    unsigned int primary_references;
    unsigned int primary_flags;
    CUmemoryPool default_pool, current_pool, graph_pool; /* made on demand (pools.c) */
    CUmemoryPool default_managed_pool, current_managed_pool;
};

int device_count(void);
/* NULL where the ordinal is not one. */
struct device *device_of(CUdevice ordinal);
/* The card that a device is, or is a MIG device of. */
const struct gpu *device_card(const struct device *device);
/* How many contexts live on a device. */
int device_live_contexts(const struct device *device);

#endif
