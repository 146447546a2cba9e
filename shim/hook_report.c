/* hook_report.c -- how much memory CUDA says there is: never more than the cap leaves.
 *
 * Knows: the four entry points that tell. Must not know: how what is held came about.
 */
#include "hook.h"
#include "view.h"

/* The driver's figures in, the process's out. */
static void limit_on(int device, uint64_t *free, uint64_t *total)
{
    CUresult refusal;
    if (!view_ready(&refusal) || device == NO_DEVICE || !account_is_capped(device))
        return;
    hook_refresh(device);
    account_limit(device, free, total);
}

static uint64_t limit_total(uint64_t total, CUdevice device)
{
    CUresult refusal;
    if (view_ready(&refusal) && account_cap(device) < total)
        total = account_cap(device);
    return total;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    int device;
    HOOK_ENTER(cuMemGetInfo_v2, (free, total));
    CUresult rc = hook_find_device(&device);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuMemGetInfo_v2(free, total);
    if (rc == CUDA_SUCCESS && free && total) {
        uint64_t free_bytes = *free, total_bytes = *total;
        limit_on(device, &free_bytes, &total_bytes);
        *free = free_bytes;
        *total = total_bytes;
    }
    return rc;
}

CUresult cuMemGetInfo(unsigned int *free, unsigned int *total)
{
    int device;
    HOOK_ENTER(cuMemGetInfo, (free, total));
    CUresult rc = hook_find_device(&device);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuMemGetInfo(free, total);
    if (rc == CUDA_SUCCESS && free && total) {
        uint64_t free_bytes = *free, total_bytes = *total;
        limit_on(device, &free_bytes, &total_bytes);
        *free = (unsigned int)free_bytes;
        *total = (unsigned int)total_bytes;
    }
    return rc;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    HOOK_ENTER(cuDeviceTotalMem_v2, (bytes, device));
    CUresult rc = real.cuDeviceTotalMem_v2(bytes, device);
    if (rc == CUDA_SUCCESS && bytes)
        *bytes = limit_total(*bytes, device);
    return rc;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
    HOOK_ENTER(cuDeviceTotalMem, (bytes, device));
    CUresult rc = real.cuDeviceTotalMem(bytes, device);
    if (rc == CUDA_SUCCESS && bytes)
        *bytes = (unsigned int)limit_total(*bytes, device);
    return rc;
}
