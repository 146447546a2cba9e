/* ranges.h -- every address that the driver handed out or knows, with what it is.
 *
 * Knows: intervals. Must not know: how memory is made or charged. Under the driver's lock.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_RANGES_H
#define GPUSHIM_TESTS_SIMCUDA_RANGES_H

#include "abi_more.h"

struct device;
struct physical;

enum range_kind {
    RANGE_DEVICE,     /* cuMemAlloc, cuMemAllocPitch */
    RANGE_MANAGED,    /* cuMemAllocManaged, managed variables */
    RANGE_HOST,       /* cuMemHostAlloc */
    RANGE_REGISTERED, /* cuMemHostRegister */
    RANGE_POOL,       /* cuMemAllocAsync */
    RANGE_MAPPING,    /* cuMemMap */
    RANGE_GRAPH,      /* a graph's allocation node */
    RANGE_IMPORTED,   /* another process's, by cuIpcOpenMemHandle or a pool pointer */
    RANGE_GLOBAL      /* a module's variable */
};

struct range {
    CUdeviceptr base;
    size_t bytes;   /* as asked for */
    size_t charged; /* on the device, as an allocation or within its pool */
    enum range_kind kind;
    struct device *device; /* NULL: host memory of no device */
    CUcontext context;     /* that it ends with; NULL: with none */
    unsigned long long id;
    unsigned int flags;            /* of cuMemHostAlloc, cuMemHostRegister, cuMemAllocManaged */
    CUmemoryPool pool;             /* POOL */
    struct physical *physical;     /* MAPPING */
    size_t offset;                 /* MAPPING, IMPORTED: of the memory behind */
    size_t mapped;                 /* IMPORTED: bytes to unmap from base - offset */
    int freeable;                  /* IMPORTED: cuMemFree takes it */
    uint64_t readable, writable;   /* MAPPING: by which devices (mapping.c) */
    int closed;                    /* MAPPING without access: not to be touched */
    int dormant;                   /* GRAPH: reserved address, no memory at present */
    struct range *next, *previous; /* of the same context, pool or of none */
};

/* Enters a copy of the range, with an id, in the list *list. */
struct range *range_add(struct range range, struct range **list);
void range_remove(struct range *range, struct range **list);
/* The range that an address lies in; NULL: none. */
struct range *range_at(CUdeviceptr address);
/* The range that begins at an address; NULL: none. */
struct range *range_from(CUdeviceptr address);

/* A host pointer as an address and back. */
CUdeviceptr range_address(const void *pointer);
void *range_pointer(CUdeviceptr address);

#endif
