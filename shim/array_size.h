/* array_size.h -- what a CUDA array takes at most, where the driver does not tell.
 *
 * Knows: formats, levels, layers, and how texels may lie in memory. Must not know: the driver,
 * caps, the granule of allocations. Pure functions.
 */
#ifndef GPUSHIM_SHIM_ARRAY_SIZE_H
#define GPUSHIM_SHIM_ARRAY_SIZE_H

#include "cuda_abi.h"

/* Bytes, an upper estimate; saturates at UINT64_MAX. `levels` of a mipmapped array, clamped as the
 * driver clamps them; 1 for any other array. A format that is not known counts as the largest. 0
 * for a shape without width, which the driver refuses. */
uint64_t array_size_most(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels);

#endif
