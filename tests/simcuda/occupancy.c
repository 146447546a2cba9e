/* occupancy.c -- how much of a multiprocessor a function fills: plausible answers, since no code is
 * known. */
#include "api.h"
#include "context.h"
#include "devices.h"

enum { BLOCK_THREADS = 1024, MULTIPROCESSOR_THREADS = 2048, BLOCK_SHARED_BYTES = 49152 };

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
                                                                  int threads, size_t shared_bytes,
                                                                  unsigned int flags)
{
    (void)function, (void)shared_bytes, (void)flags;
    if (!blocks || threads <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    *blocks = threads > BLOCK_THREADS ? 0 : MULTIPROCESSOR_THREADS / threads;
    return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                         int threads, size_t shared_bytes)
{
    return sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads,
                                                                    shared_bytes, 0);
}

CUresult sim_cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
                                                       void *shared_of_block, size_t shared_bytes,
                                                       int limit, unsigned int flags)
{
    (void)function, (void)shared_of_block, (void)shared_bytes, (void)flags;
    if (!grid || !block)
        return CUDA_ERROR_INVALID_VALUE;
    *block = limit > 0 && limit < BLOCK_THREADS ? limit : BLOCK_THREADS;
    *grid = context_current_device()->gpu->multiprocessors * (MULTIPROCESSOR_THREADS / *block);
    return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                              void *shared_of_block, size_t shared_bytes, int limit)
{
    return sim_cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, shared_of_block,
                                                         shared_bytes, limit, 0);
}

CUresult sim_cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction function, int blocks,
                                                     int threads)
{
    (void)function, (void)threads;
    if (!bytes || blocks <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = (size_t)(BLOCK_SHARED_BYTES / blocks);
    return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxActiveClusters(int *clusters, CUfunction function, const void *config)
{
    (void)function, (void)config;
    if (!clusters)
        return CUDA_ERROR_INVALID_VALUE;
    *clusters = 1;
    return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxPotentialClusterSize(int *size, CUfunction function, const void *config)
{
    return sim_cuOccupancyMaxActiveClusters(size, function, config);
}
