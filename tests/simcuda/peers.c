/* peers.c -- which devices reach each other's memory, and the contexts that were allowed to. */
#include "api.h"
#include "context.h"
#include "devices.h"

static int reachable(CUdevice one, CUdevice other)
{
    return machine_peers(device_of(one)->gpu, device_of(other)->gpu);
}

CUresult sim_cuDeviceCanAccessPeer(int *can, CUdevice one, CUdevice other)
{
    if (!can)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_of(one) || !device_of(other))
        return CUDA_ERROR_INVALID_DEVICE;
    *can = reachable(one, other);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice one, CUdevice other)
{
    if (!value || attribute < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
        attribute > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_of(one) || !device_of(other) || one == other)
        return CUDA_ERROR_INVALID_DEVICE;
    *value = (attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
              attribute == CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED) &&
             reachable(one, other);
    return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities, const int *operations,
                                              unsigned int count, CUdevice one, CUdevice other)
{
    if (!capabilities || !operations)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_of(one) || !device_of(other) || one == other)
        return CUDA_ERROR_INVALID_DEVICE;
    for (unsigned int i = 0; i < count; i++)
        capabilities[i] = reachable(one, other) ? 0x3u : 0; /* signed and unsigned 32-bit */
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    CUcontext current = context_current();
    CUresult result = context_check(peer);

    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (peer == current || peer->device == current->device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!machine_peers(peer->device->gpu, current->device->gpu))
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    uint64_t bit = (uint64_t)1 << peer->device->ordinal;
    if (current->peers & bit)
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    current->peers |= bit;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxDisablePeerAccess(CUcontext peer)
{
    CUcontext current = context_current();

    if (context_check(peer) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_CONTEXT;
    uint64_t bit = (uint64_t)1 << peer->device->ordinal;
    if (!(current->peers & bit))
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    current->peers &= ~bit;
    return CUDA_SUCCESS;
}
