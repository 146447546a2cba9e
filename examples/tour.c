/* tour.c -- an ordinary CUDA program: looks at the GPUs, takes some memory, tries a few things.
 *
 *     tour [MIB [ORDINAL]]     how much memory to ask GPU 0 for, and which GPU to choose at the end
 *
 * Like any careful program it copes when memory is short: it asks for less, and goes on.
 */
#include <cuda_runtime_api.h>

#include <stdio.h>
#include <stdlib.h>

static const double GIB = 1024.0 * 1024.0 * 1024.0;

static int list_gpus(void)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
        printf("No GPU: %s\n", cudaGetErrorString(error));
        return 0;
    }
    printf("GPUs: %d\n", count);
    for (int i = 0; i < count; i++) {
        struct cudaDeviceProp gpu;
        if (cudaGetDeviceProperties(&gpu, i) != cudaSuccess)
            continue;
        const unsigned char *uuid = (const unsigned char *)gpu.uuid.bytes;
        printf("  %d  %-18.24s %6.1f GiB\n", i, gpu.name, (double)gpu.totalGlobalMem / GIB);
        printf("     %04x:%02x:%02x.0  GPU-%02x%02x%02x%02x-...\n", (unsigned)gpu.pciDomainID,
               (unsigned)gpu.pciBusID, (unsigned)gpu.pciDeviceID, uuid[0], uuid[1], uuid[2],
               uuid[3]);
    }
    return count;
}

/* Takes what it can get: half as much each time there is not enough. */
static void use_memory(size_t bytes)
{
    size_t available = 0, total = 0;
    void *memory = NULL;
    cudaError_t error = cudaMemGetInfo(&available, &total);
    printf("Memory of GPU 0\n");
    printf("  free %.1f of %.1f GiB\n", (double)available / GIB, (double)total / GIB);
    while (error == cudaSuccess && bytes) {
        printf("  cudaMalloc %.1f GiB: ", (double)bytes / GIB);
        error = cudaMalloc(&memory, bytes);
        printf("%s\n", error == cudaSuccess ? "ok" : cudaGetErrorString(error));
        if (error == cudaSuccess)
            break;
        if (error == cudaErrorMemoryAllocation) {
            cudaGetLastError();
            bytes /= 2;
            error = cudaSuccess;
        }
    }
    if (memory && cudaMemset(memory, 0, 1 << 20) == cudaSuccess && cudaFree(memory) == cudaSuccess)
        printf("  used it, freed it\n");
}

static void choose_gpu(int ordinal)
{
    printf("cudaSetDevice(%d)\n", ordinal);
    printf("  %s\n", cudaGetErrorString(cudaSetDevice(ordinal)));
    cudaGetLastError();
}

/* Lets the first pair of GPUs that can reach each other do so. */
static void link_gpus(int count)
{
    printf("Peer access\n");
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            int can = 0;
            if (i == j || cudaDeviceCanAccessPeer(&can, i, j) != cudaSuccess || !can)
                continue;
            cudaError_t error = cudaSetDevice(i);
            if (error == cudaSuccess)
                error = cudaDeviceEnablePeerAccess(j, 0);
            printf("  GPU %d to %d: %s\n", i, j,
                   error == cudaSuccess ? "on" : cudaGetErrorString(error));
            return;
        }
    }
    printf("  no GPU can reach another\n");
}

int main(int argc, char **argv)
{
    size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 1024;
    int ordinal = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    int count = list_gpus();
    if (count == 0)
        return 1;
    use_memory(mib << 20);
    choose_gpu(ordinal);
    link_gpus(count);
    printf("Done.\n");
    return 0;
}
