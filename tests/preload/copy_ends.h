/* copy_ends.h -- two GPUs with memory to copy between, and every door of copy_doors.def as a
 * function.
 *
 * Knows: the driver's calls. Must not know: the rule, or what must become of a copy.
 */
#ifndef GPUSHIM_TESTS_COPY_ENDS_H
#define GPUSHIM_TESTS_COPY_ENDS_H

#include "client.h"
#include "hooks.h"

enum {
    BYTES = 16, /* that each door copies */
    ROWS = 2,   /* in how many rows or planes, where a door has such */
    ENDS_GRANULE = 2 << 20
};

struct end {
    CUdeviceptr memory; /* of the GPU, or the host's; below 4 GiB, for the doors of 32 bits */
    CUdeviceptr managed;
    CUarray array; /* NULL for the host */
    CUcontext context;
    int device; /* -1: the host */
};

/* Devices 0 and 1, other memory of device 1, and pinned host memory that was registered with device
 * 0. */
extern struct end gpus[2], neighbour, host;

enum traits {
    OLD = 1,      /* 32 bits: the simulated driver answers only that it has none */
    TO_ARRAY = 2, /* the end is an array */
    FROM_ARRAY = 4,
    NAMES_CONTEXTS = 8, /* has no form for host memory */
    MANAGED = 16        /* no bytes are copied */
};
struct door {
    const char *symbol, *base;
    unsigned int traits;
    CUresult (*go)(const struct end *to, const struct end *from);
};
/* NULL for a symbol that copy_doors.def does not have. */
const struct door *door_of(const char *symbol);

/* The driver as a program sees it: every hook of hooks.def, by dlsym. */
extern struct hook_driver driver;

/* Initialises, makes the ends; device 0's context is current. For cmocka's group setup. */
int ends_start(void **state);
/* Maps so many bytes of a device's memory at an address that is reserved; whole granules. */
void ends_map(CUdeviceptr address, size_t bytes, int device);

/* Fills an end, or the array of it, with one byte; and the byte that it is full of, -1: of none. */
void end_fill(const struct end *end, int array, unsigned char byte);
int end_holds(const struct end *end, int array);

const CUDA_MEMCPY3D *rows_3d(const struct end *to, const struct end *from);
const CUDA_MEMCPY3D_PEER *rows_3d_peer(const struct end *to, const struct end *from);
CUDA_MEMCPY3D_BATCH_OP *batch_3d(const struct end *to, const struct end *from);

#endif
