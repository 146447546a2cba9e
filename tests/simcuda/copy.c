/* copy.c -- see copy.h. */
#include "copy.h"

#include "arrays.h"
#include "backing.h"
#include "ranges.h"

#include <string.h>

struct side {
    char *base;
    size_t pitch, slice; /* bytes from row to row, from plane to plane */
};

/* Is all of [address, address + bytes) memory of the driver that may be touched? */
static int reachable(CUdeviceptr address, size_t bytes)
{
    while (bytes) {
        const struct range *range = range_at(address);
        if (!range || range->closed)
            return 0;
        size_t here = (size_t)(range->base + range->bytes - address);
        if (here >= bytes)
            return 1;
        address += here;
        bytes -= here;
    }
    return 1;
}

static size_t extent(const struct copy_3d *copy, size_t pitch, size_t slice)
{
    return (copy->depth - 1) * slice + (copy->height - 1) * pitch + copy->width_bytes;
}

static CUresult linear_side(const struct copy_3d *copy, int type, const void *host,
                            CUdeviceptr device, struct side *side)
{
    CUdeviceptr address = type == MEMORY_TYPE_HOST ? range_address(host) : device;

    if (type != MEMORY_TYPE_HOST && (type == MEMORY_TYPE_DEVICE || range_at(address)) &&
        !reachable(address, extent(copy, side->pitch, side->slice)))
        return CUDA_ERROR_INVALID_VALUE;
    side->base = range_pointer(address);
    return side->base ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult array_side(const struct copy_3d *copy, CUarray array, size_t x, size_t y, size_t z,
                           struct side *side)
{
    if (!array_known(array))
        return CUDA_ERROR_INVALID_HANDLE;
    side->base = array_memory(array, &side->pitch, &side->slice);
    if (z * side->slice + y * side->pitch + x + extent(copy, side->pitch, side->slice) >
        array_bytes(array))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult source(const struct copy_3d *copy, struct side *side)
{
    CUresult result;

    side->pitch = copy->src_pitch ? copy->src_pitch : copy->width_bytes;
    side->slice = side->pitch * (copy->src_height ? copy->src_height : copy->height);
    if (copy->src_type == MEMORY_TYPE_ARRAY)
        result = array_side(copy, copy->src_array, copy->src_x, copy->src_y, copy->src_z, side);
    else
        result = linear_side(copy, copy->src_type, copy->src_host,
                             copy->src_device + copy->src_z * side->slice +
                                 copy->src_y * side->pitch + copy->src_x,
                             side);
    if (result == CUDA_SUCCESS &&
        (copy->src_type == MEMORY_TYPE_ARRAY || copy->src_type == MEMORY_TYPE_HOST))
        side->base += copy->src_z * side->slice + copy->src_y * side->pitch + copy->src_x;
    return result;
}

static CUresult destination(const struct copy_3d *copy, struct side *side)
{
    CUresult result;

    side->pitch = copy->dst_pitch ? copy->dst_pitch : copy->width_bytes;
    side->slice = side->pitch * (copy->dst_height ? copy->dst_height : copy->height);
    if (copy->dst_type == MEMORY_TYPE_ARRAY)
        result = array_side(copy, copy->dst_array, copy->dst_x, copy->dst_y, copy->dst_z, side);
    else
        result = linear_side(copy, copy->dst_type, copy->dst_host,
                             copy->dst_device + copy->dst_z * side->slice +
                                 copy->dst_y * side->pitch + copy->dst_x,
                             side);
    if (result == CUDA_SUCCESS &&
        (copy->dst_type == MEMORY_TYPE_ARRAY || copy->dst_type == MEMORY_TYPE_HOST))
        side->base += copy->dst_z * side->slice + copy->dst_y * side->pitch + copy->dst_x;
    return result;
}

CUresult copy_run(const struct copy_3d *copy)
{
    struct side from = {0}, to = {0};

    if (copy->width_bytes == 0 || copy->height == 0 || copy->depth == 0)
        return CUDA_SUCCESS;
    CUresult result = source(copy, &from);
    if (result == CUDA_SUCCESS)
        result = destination(copy, &to);
    if (result != CUDA_SUCCESS)
        return result;
    for (size_t z = 0; z < copy->depth; z++)
        for (size_t y = 0; y < copy->height; y++)
            memmove(to.base + z * to.slice + y * to.pitch,
                    from.base + z * from.slice + y * from.pitch, copy->width_bytes);
    return CUDA_SUCCESS;
}

static void set_row(char *row, const struct memset_node *set)
{
    if (set->value == 0)
        backing_zero(row, set->width * set->element_bytes);
    else if (set->element_bytes == 1)
        memset(row, (int)set->value, set->width);
    else
        for (size_t i = 0; i < set->width; i++)
            memcpy(row + i * set->element_bytes, &set->value, set->element_bytes);
}

CUresult copy_set(const struct memset_node *set)
{
    size_t row = set->width * set->element_bytes;

    if (row == 0 || set->height == 0)
        return CUDA_SUCCESS;
    if (set->height > 1 && set->pitch < row)
        return CUDA_ERROR_INVALID_VALUE;
    if (!reachable(set->dst, (set->height - 1) * set->pitch + row))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t y = 0; y < set->height; y++)
        set_row((char *)range_pointer(set->dst) + y * set->pitch, set);
    return CUDA_SUCCESS;
}
