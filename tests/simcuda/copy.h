/* copy.h -- moving and setting bytes between host memory, device memory and arrays.
 *
 * Knows: ranges and arrays. Must not know: streams. Under the driver's lock.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_COPY_H
#define GPUSHIM_TESTS_SIMCUDA_COPY_H

#include "abi_more.h"

/* Every copy is one of three dimensions. A UNIFIED address that the driver doesn't know is host
 * memory. */
CUresult copy_run(const struct copy_3d *copy);
CUresult copy_set(const struct memset_node *set);

#endif
