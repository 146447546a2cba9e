/* arrays.c -- see arrays.h.
 *
 * Rows are padded to GRANULE_PITCH, the whole is rounded like any allocation. Layers and cube faces
 * count as depth, and do not shrink from level to level.
 */
#include "arrays.h"

#include "api.h"
#include "backing.h"
#include "context.h"
#include "devices.h"
#include "granule.h"
#include "handles.h"
#include "memory.h"
#include "sparse.h"
#include "version.h"

static size_t larger(size_t one, size_t other) { return one > other ? one : other; }

static size_t parts(size_t whole, size_t part) { return (whole + part - 1) / part; }

static void lay_out(struct CUarray_st *array, const struct array_3d *description)
{
    array->description = *description;
    format_texels(description->format, description->channels, &array->texels);
    for (int i = 0; i < array->texels.planes; i++) {
        size_t columns = parts(description->width, array->texels.plane[i].width),
               rows = parts(larger(description->height, 1), array->texels.plane[i].height),
               pitch = granule_up(columns * array->texels.plane[i].bytes, GRANULE_PITCH);
        if (i == 0)
            array->pitch = pitch;
        array->slice += pitch * rows;
    }
    array->bytes = array->slice * larger(description->depth, 1);
}

static int is_layered(const struct array_3d *description)
{
    return (description->flags & (ARRAY_LAYERED | ARRAY_CUBEMAP)) != 0;
}

static int within(const struct array_3d *description, size_t width, size_t height, size_t depth)
{
    return description->width >= 1 && description->width <= width &&
           description->height <= height && description->depth <= depth;
}

/* The largest extents: attributes.def. */
static int extents_fit(const struct array_3d *d)
{
    if (d->flags & ARRAY_CUBEMAP)
        return within(d, 32768, 32768, 2046) && d->width == d->height &&
               (d->flags & ARRAY_LAYERED ? d->depth && d->depth % 6 == 0 : d->depth == 6);
    if (d->flags & ARRAY_LAYERED)
        return within(d, 32768, 32768, 2048) && d->depth;
    if (d->depth)
        return within(d, 16384, 16384, 16384) && d->height;
    return d->height ? within(d, 131072, 65536, 0) : within(d, 131072, 0, 0);
}

static CUresult check(const struct array_3d *description)
{
    struct texels texels;
    unsigned int flags = description->flags;

    if (!extents_fit(description) ||
        !format_texels(description->format, description->channels, &texels) ||
        (flags & ARRAY_SPARSE && version_reported() < 11010) ||
        (flags & ARRAY_DEFERRED_MAPPING && version_reported() < 11060))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static int without_memory(unsigned int flags)
{
    return (flags & (ARRAY_SPARSE | ARRAY_DEFERRED_MAPPING)) != 0;
}

/* Takes memory for `bytes`; *charged says how much of the card. */
static CUresult take(CUcontext context, size_t bytes, char **memory, size_t *charged)
{
    size_t rounded = granule_of(bytes);
    CUresult result = rounded ? memory_charge(context->device, rounded) : CUDA_ERROR_OUT_OF_MEMORY;

    if (result != CUDA_SUCCESS)
        return result;
    *memory = backing_take(rounded);
    if (!*memory) {
        memory_refund(context->device, rounded);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *charged = rounded;
    return CUDA_SUCCESS;
}

static void give(CUcontext context, char *memory, size_t charged)
{
    if (charged) {
        backing_give(memory, charged);
        memory_refund(context->device, charged);
    }
}

CUresult sim_cuArray3DCreate_v2(CUarray *out, const struct array_3d *description)
{
    CUcontext context = context_current();

    if (!out || !description || check(description) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    CUarray array = handle_new(HANDLE_ARRAY, sizeof *array, context);
    lay_out(array, description);
    CUresult result = CUDA_SUCCESS;
    if (!without_memory(description->flags))
        result = take(context, array->bytes, &array->memory, &array->charged);
    else if (!(array->sparse = sparse_new(&array, 1, array->bytes, 0)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        handle_delete(array);
    else
        *out = array;
    return result;
}

CUresult sim_cuArrayCreate_v2(CUarray *out, const struct array_2d *description)
{
    if (!description)
        return CUDA_ERROR_INVALID_VALUE;
    struct array_3d deep = {.width = description->width,
                            .height = description->height,
                            .format = description->format,
                            .channels = description->channels};
    return sim_cuArray3DCreate_v2(out, &deep);
}

/* The entries of CUDA 3.1 and before: extents of 32 bits. */
CUresult sim_cuArrayCreate(CUarray *out, const CUDA_ARRAY_DESCRIPTOR_v1 *description)
{
    if (!description)
        return CUDA_ERROR_INVALID_VALUE;
    struct array_3d deep = {.width = description->Width,
                            .height = description->Height,
                            .format = (int)description->Format,
                            .channels = description->NumChannels};
    return sim_cuArray3DCreate_v2(out, &deep);
}

CUresult sim_cuArray3DCreate(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *description)
{
    if (!description)
        return CUDA_ERROR_INVALID_VALUE;
    struct array_3d deep = {.width = description->Width,
                            .height = description->Height,
                            .depth = description->Depth,
                            .format = (int)description->Format,
                            .channels = description->NumChannels,
                            .flags = description->Flags};
    return sim_cuArray3DCreate_v2(out, &deep);
}

/* A level goes with its mipmapped array. */
CUresult sim_cuArrayDestroy(CUarray array)
{
    if (!array_known(array) || array->mipmap)
        return CUDA_ERROR_INVALID_HANDLE;
    sparse_end(array->sparse);
    give(array->handle.context, array->memory, array->charged);
    handle_delete(array);
    return CUDA_SUCCESS;
}

CUresult sim_cuArray3DGetDescriptor_v2(struct array_3d *out, CUarray array)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!array_known(array))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = array->description;
    return CUDA_SUCCESS;
}

CUresult sim_cuArrayGetDescriptor_v2(struct array_2d *out, CUarray array)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!array_known(array))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (struct array_2d){array->description.width, array->description.height,
                             array->description.format, array->description.channels};
    return CUDA_SUCCESS;
}

/* The size alone: how it is rounded is the matter of whoever allocates it. */
static CUresult requirements(struct array_requirements *out, size_t bytes, unsigned int flags,
                             CUdevice ordinal)
{
    if (version_reported() < 11060)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!out || !(flags & ARRAY_DEFERRED_MAPPING))
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_of(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = (struct array_requirements){.size = bytes, .alignment = GRANULE_SMALL};
    return CUDA_SUCCESS;
}

CUresult sim_cuArrayGetMemoryRequirements(struct array_requirements *out, CUarray array,
                                          CUdevice ordinal)
{
    if (!array_known(array))
        return CUDA_ERROR_INVALID_HANDLE;
    return requirements(out, array->bytes, array->mipmap ? 0 : array->description.flags, ordinal);
}

static void make_level(CUmipmappedArray mipmap, unsigned int number)
{
    const struct array_3d *whole = &mipmap->description;
    struct array_3d smaller = *whole;
    CUarray level = handle_new(HANDLE_ARRAY, sizeof *level, mipmap->handle.context);

    smaller.width = larger(whole->width >> number, 1);
    smaller.height = whole->height ? larger(whole->height >> number, 1) : 0;
    if (whole->depth && !is_layered(whole))
        smaller.depth = larger(whole->depth >> number, 1);
    lay_out(level, &smaller);
    level->mipmap = mipmap;
    mipmap->level[number] = level;
    mipmap->bytes += level->bytes;
}

/* At most 1 + floor(log2(the largest extent)), at least one. */
static unsigned int clamp_levels(const struct array_3d *description, unsigned int levels)
{
    size_t largest = larger(larger(description->width, description->height), description->depth);
    unsigned int most = 1;

    while (largest >>= 1)
        most++;
    return levels == 0 ? 1 : levels < most ? levels : most;
}

CUresult sim_cuMipmappedArrayCreate(CUmipmappedArray *out, const struct array_3d *description,
                                    unsigned int levels)
{
    CUcontext context = context_current();
    CUresult result = CUDA_SUCCESS;

    if (!out || !description || check(description) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    CUmipmappedArray mipmap = handle_new(HANDLE_MIPMAPPED_ARRAY, sizeof *mipmap, context);
    mipmap->description = *description;
    mipmap->levels = clamp_levels(description, levels);
    for (unsigned int i = 0; i < mipmap->levels; i++)
        make_level(mipmap, i);
    if (!without_memory(description->flags))
        result = take(context, mipmap->bytes, &mipmap->memory, &mipmap->charged);
    else if (!(mipmap->sparse = sparse_new(mipmap->level, mipmap->levels, mipmap->bytes, 1)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS) {
        sim_cuMipmappedArrayDestroy(mipmap);
        return result;
    }
    char *memory = mipmap->memory;
    for (unsigned int i = 0; memory && i < mipmap->levels; i++) {
        mipmap->level[i]->memory = memory;
        memory += mipmap->level[i]->bytes;
    }
    *out = mipmap;
    return CUDA_SUCCESS;
}

CUresult sim_cuMipmappedArrayGetLevel(CUarray *out, CUmipmappedArray mipmap, unsigned int number)
{
    if (!mipmap_known(mipmap))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out || number >= mipmap->levels)
        return CUDA_ERROR_INVALID_VALUE;
    *out = mipmap->level[number];
    return CUDA_SUCCESS;
}

CUresult sim_cuMipmappedArrayDestroy(CUmipmappedArray mipmap)
{
    if (!mipmap_known(mipmap))
        return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned int i = 0; i < mipmap->levels; i++)
        handle_delete(mipmap->level[i]);
    sparse_end(mipmap->sparse);
    give(mipmap->handle.context, mipmap->memory, mipmap->charged);
    handle_delete(mipmap);
    return CUDA_SUCCESS;
}

CUresult sim_cuMipmappedArrayGetMemoryRequirements(struct array_requirements *out,
                                                   CUmipmappedArray mipmap, CUdevice ordinal)
{
    if (!mipmap_known(mipmap))
        return CUDA_ERROR_INVALID_HANDLE;
    return requirements(out, mipmap->bytes, mipmap->description.flags, ordinal);
}

int array_known(CUarray array) { return handle_is(array, HANDLE_ARRAY); }

int mipmap_known(CUmipmappedArray mipmap) { return handle_is(mipmap, HANDLE_MIPMAPPED_ARRAY); }

char *array_memory(CUarray array, size_t *pitch, size_t *slice)
{
    *pitch = array->pitch;
    *slice = array->slice;
    return array->memory;
}

size_t array_bytes(CUarray array) { return array->memory ? array->bytes : 0; }

void arrays_empty(CUcontext context)
{
    void *object;

    while ((object = handle_any(HANDLE_MIPMAPPED_ARRAY, context)))
        sim_cuMipmappedArrayDestroy(object);
    while ((object = handle_any(HANDLE_ARRAY, context)))
        sim_cuArrayDestroy(object);
}
