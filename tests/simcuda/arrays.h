/* arrays.h -- arrays and mipmapped arrays: sizes are the driver's choice, not width times height.
 *
 * Must not know: copies, what is mapped into sparse ones (sparse.h). Under the driver's lock.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_ARRAYS_H
#define GPUSHIM_TESTS_SIMCUDA_ARRAYS_H

#include "abi_more.h"
#include "formats.h"
#include "handles.h"

enum { ARRAY_LEVELS = 32 };

struct CUarray_st {
    struct handle handle;
    struct array_3d description;
    struct texels texels;
    char *memory;
    size_t pitch, slice; /* bytes of the first plane's rows, and of a layer or slice */
    size_t bytes;
    size_t charged;          /* 0: a level of a mipmapped array, or it takes no memory itself */
    CUmipmappedArray mipmap; /* whose level it is */
    struct sparse *sparse;   /* NULL: it takes memory itself */
};

struct CUmipmappedArray_st {
    struct handle handle;
    struct array_3d description;
    unsigned int levels;
    CUarray level[ARRAY_LEVELS];
    size_t bytes;
    char *memory;
    size_t charged;
    struct sparse *sparse;
};

int array_known(CUarray array);
int mipmap_known(CUmipmappedArray mipmap);
/* Its memory, with the bytes from row to row and from plane to plane. */
char *array_memory(CUarray array, size_t *pitch, size_t *slice);
size_t array_bytes(CUarray array);
/* Ends all arrays of a context. */
void arrays_empty(CUcontext context);

#endif
