/* graph_memory.h -- memory that graphs allocate: an address from the node's creation on, bytes of
 * the card from the launch or upload on, reserved per device until trimmed.
 *
 * Must not know: graphs' structure. Under the driver's lock.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_GRAPH_MEMORY_H
#define GPUSHIM_TESTS_SIMCUDA_GRAPH_MEMORY_H

#include "abi_more.h"

struct device;
struct graph_memory;

/* Reserves an address for the node's lifetime, writes it to params->dptr, and hands out one
 * reference. */
CUresult graph_memory_reserve(CUDA_MEM_ALLOC_NODE_PARAMS *params, struct graph_memory **memory);
/* Can a later node of the same graph have the address of this memory, which is freed by then? */
int graph_memory_serves(const struct graph_memory *memory,
                        const CUDA_MEM_ALLOC_NODE_PARAMS *params);
CUdeviceptr graph_memory_address(const struct graph_memory *memory);
void graph_memory_hold(struct graph_memory *memory);
void graph_memory_drop(struct graph_memory *memory);

/* Bytes that the memory will take of this device when its allocation happens; 0 on others. */
size_t graph_memory_bytes(const struct graph_memory *memory, const struct device *device);
int graph_memory_is_live(const struct graph_memory *memory);
/* Is this the address of a graph's memory, alive or not? */
int graph_memory_known(CUdeviceptr address);
/* The allocation happens: 0, 2, or 1 where the last one is still alive. */
CUresult graph_memory_start(struct graph_memory *memory);
/* It ends, if it is alive. */
void graph_memory_stop(struct graph_memory *memory);
/* The same by address: 1 where there is no live graph allocation. Pool memory may be freed so, too.
 */
CUresult graph_memory_free(CUdeviceptr address);
/* The device's last context is gone: all of it ends. */
void graph_memory_empty(struct device *device);

#endif
