/* pools.h -- memory pools: they take chunks of the card, hand out parts, and keep what is idle
 * until told or allowed.
 *
 * Knows: reserved and used. Must not know: graphs, or which call asks. Under the driver's lock.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_POOLS_H
#define GPUSHIM_TESTS_SIMCUDA_POOLS_H

#include "ranges.h"

struct CUmemPoolHandle_st {
    struct device *device; /* NULL: host memory, which takes nothing of a card */
    CUmemPoolProps props;
    cuuint64_t reserved, used, reserved_high, used_high, threshold;
    size_t chunk;         /* it grows by multiples of this power of two */
    int reuse[3];         /* the three REUSE_* attributes */
    uint64_t peers;       /* a bit for each device that was given access */
    struct range *memory; /* live allocations */
    int own;              /* made by the driver: not to be destroyed */
    int imported;         /* another process's: serves imported pointers only */
    int doomed;           /* destroyed while it has live allocations */
    CUmemoryPool next;
};

int pool_known(CUmemoryPool pool);
CUmemoryPool pool_new(struct device *device, const CUmemPoolProps *props);
CUmemoryPool pool_of_device(struct device *device); /* the default one */
CUmemoryPool pool_of_graphs(struct device *device);
CUmemoryPool pool_of_managed(struct device *device); /* the default one of managed memory */

/* Takes bytes out of a pool, which grows where its idle reserve doesn't do: 0 or 2. And puts them
 * back. */
CUresult pool_take(CUmemoryPool pool, size_t bytes);
void pool_return(CUmemoryPool pool, size_t bytes);
/* Makes the pool's idle reserve at least so many bytes: 0 or 2. */
CUresult pool_reserve(CUmemoryPool pool, size_t bytes);
/* Ends an allocation of a pool. */
void pool_free(struct range *range);
/* Destroys a pool, now or when its last allocation ends. */
void pool_doom(CUmemoryPool pool);
/* Gives idle chunks back to the card, as long as `keep` bytes stay reserved. */
void pool_trim(CUmemoryPool pool, cuuint64_t keep);

/* All pools of a device, graphs' included: everything idle goes back. */
void pools_trim_all(struct device *device);
/* The program has synchronised: what is idle beyond each pool's threshold goes back. */
void pools_synchronized(struct device *device);
/* The device's last context is gone, and with it what its pools hold. */
void pools_empty(struct device *device);

#endif
