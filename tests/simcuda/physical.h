/* physical.h -- physical memory behind cuMemCreate's handles.
 *
 * Knows: handles, references, mappings' counts and the files behind. Must not know: addresses
 * (mapping.c). Memory goes back to the card when the references and the mappings of all its handles
 * are gone. Under the driver's lock.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_PHYSICAL_H
#define GPUSHIM_TESTS_SIMCUDA_PHYSICAL_H

#include "abi_more.h"
#include "handles.h"

#include <sys/types.h>

struct store {             /* the memory itself */
    struct device *device; /* NULL: host memory */
    size_t bytes;
    int fd; /* the file, and where in it */
    off_t offset;
    int own_file;
    int charged; /* 0: another process pays, or host memory */
    CUmemAllocationProp prop;
    unsigned int holders; /* handles */
};

struct physical { /* a handle; its address is the handle's value */
    struct handle handle;
    unsigned int references; /* of the program: create or import, and retain */
    unsigned int mappings;
    struct store *store;
};

/* The handle behind a value that the program holds references to; NULL: none. */
struct physical *physical_of(CUmemGenericAllocationHandle value);
CUmemGenericAllocationHandle physical_value(struct physical *physical);
/* Call after taking off a reference or a mapping. */
void physical_drop(struct physical *physical);

#endif
