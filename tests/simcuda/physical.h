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
    unsigned int holders; /* handles, external memory */
    struct team *team;    /* a multicast object's (multicast.c); NULL: memory */
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
/* A handle, with one reference, that stands for a team; NULL: no memory for it. */
struct physical *physical_of_team(struct team *team, size_t bytes);

/* The memory behind an exported descriptor, this process's or another's, not yet held. */
CUresult store_of_file(int fd, struct store **store);
void store_drop(struct store *store);

/* multicast.c: may the object be mapped, that is, are all devices in? And its end. */
int team_is_complete(const struct team *team);
void team_end(struct team *team);

#endif
