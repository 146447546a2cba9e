/* arrays.h -- arrays and mipmapped arrays: sizes are the driver's choice, not width times height.
 *
 * Must not know: copies. Under the driver's lock.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_ARRAYS_H
#define GPUSHIM_TESTS_SIMCUDA_ARRAYS_H

#include "abi_more.h"

int array_known(CUarray array);
/* Its memory, with the bytes from row to row and from plane to plane. */
char *array_memory(CUarray array, size_t *pitch, size_t *slice);
size_t array_bytes(CUarray array);
/* Ends all arrays of a context. */
void arrays_empty(CUcontext context);

#endif
