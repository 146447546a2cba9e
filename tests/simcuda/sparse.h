/* sparse.h -- what is mapped into arrays that take no memory themselves, tile by tile.
 *
 * Knows: tiles, mip tails, physical memory's count of mappings. Must not know: how arrays are made.
 * Under the driver's lock.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_SPARSE_H
#define GPUSHIM_TESTS_SIMCUDA_SPARSE_H

#include "arrays.h"

struct sparse;

/* For an array of so many levels, its own shape in level[0] (of SPARSE or DEFERRED_MAPPING); with
 * `mipmapped` 0 it is no mipmapped array. NULL: not for such a shape. */
struct sparse *sparse_new(const CUarray *level, unsigned int levels, size_t bytes, int mipmapped);
/* Lets go what is mapped; NULL: nothing. */
void sparse_end(struct sparse *sparse);

#endif
