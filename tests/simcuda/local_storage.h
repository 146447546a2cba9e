/* local_storage.h -- values that runtimes hang on a context, by key (CONTEXT_LOCAL_STORAGE table).
 *
 * Knows: keys and values. Must not know: what they mean. Under the driver's lock.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_LOCAL_STORAGE_H
#define GPUSHIM_TESTS_SIMCUDA_LOCAL_STORAGE_H

#include "abi_more.h"

typedef void local_destructor(CUcontext context, void *key, void *value);

/* Context NULL: the current one, 201 without. Getting an absent key: 400. */
CUresult local_storage_put(CUcontext context, void *key, void *value, local_destructor *destructor);
CUresult local_storage_delete(CUcontext context, void *key);
CUresult local_storage_get(void **value, CUcontext context, void *key);
/* Runs the destructors and forgets the values. */
void local_storage_empty(CUcontext context);

#endif
