/* arrays.c -- see arrays.h.
 *
 * Rows are padded to GRANULE_PITCH, the whole is rounded like any allocation. Layers and cube faces
 * count as depth. Sparse and deferred arrays take no memory. Formats: CUarray_format of CUDA 13.0.
 */
#include "arrays.h"

#include "api.h"
#include "backing.h"
#include "context.h"
#include "devices.h"
#include "granule.h"
#include "handles.h"
#include "memory.h"

enum { MOST_LEVELS = 32 };

struct CUarray_st {
    struct handle handle;
    struct array_3d description;
    char *memory;
    size_t pitch, rows, bytes;
    size_t charged; /* 0: a level of a mipmapped array, or deferred */
};

struct CUmipmappedArray_st {
    struct handle handle;
    unsigned int levels;
    CUarray level[MOST_LEVELS];
    unsigned int flags;
    size_t bytes;
    char *memory;
    size_t charged;
};

static size_t larger(size_t one, size_t other) { return one > other ? one : other; }

/* Bits of one channel; block-compressed formats are counted by their bits per texel. */
static size_t format_bits(int format)
{
    switch (format) {
    case 0x01: /* unsigned and signed 8 bits, then normalised ones */
    case 0x08:
    case 0xc0:
    case 0xc3:
        return 8;
    case 0x02:
    case 0x09:
    case 0x10:
    case 0xc6:
    case 0xc9:
        return 16;
    case 0x91: /* BC1 and BC4 */
    case 0x92:
    case 0x97:
    case 0x98:
        return 4;
    default:
        return format >= 0x93 && format <= 0x9e ? 8 : 32;
    }
}

static void lay_out(struct CUarray_st *array, const struct array_3d *description)
{
    size_t texel = format_bits(description->format) * larger(description->channels, 1);

    array->description = *description;
    array->pitch = granule_up((description->width * texel + 7) / 8, GRANULE_PITCH);
    array->rows = larger(description->height, 1);
    array->bytes = array->pitch * array->rows * larger(description->depth, 1);
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

    if (!out || !description || description->width == 0 || description->channels == 0 ||
        description->channels > 4 || description->channels == 3)
        return CUDA_ERROR_INVALID_VALUE;
    CUarray array = handle_new(HANDLE_ARRAY, sizeof *array, context);
    lay_out(array, description);
    CUresult result = CUDA_SUCCESS;
    if (!without_memory(description->flags))
        result = take(context, array->bytes, &array->memory, &array->charged);
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

CUresult sim_cuArrayDestroy(CUarray array)
{
    if (!array_known(array))
        return CUDA_ERROR_INVALID_HANDLE;
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

static CUresult requirements(struct array_requirements *out, size_t bytes, unsigned int flags,
                             CUdevice ordinal)
{
    if (!out || !(flags & ARRAY_DEFERRED_MAPPING))
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_of(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = (struct array_requirements){.size = granule_of(bytes), .alignment = GRANULE_SMALL};
    return CUDA_SUCCESS;
}

CUresult sim_cuArrayGetMemoryRequirements(struct array_requirements *out, CUarray array,
                                          CUdevice ordinal)
{
    if (!array_known(array))
        return CUDA_ERROR_INVALID_HANDLE;
    return requirements(out, array->bytes, array->description.flags, ordinal);
}

static void make_level(CUmipmappedArray mipmap, unsigned int number,
                       const struct array_3d *description)
{
    struct array_3d smaller = *description;
    CUarray level = handle_new(HANDLE_ARRAY, sizeof *level, mipmap->handle.context);

    smaller.width = larger(description->width >> number, 1);
    smaller.height = description->height ? larger(description->height >> number, 1) : 0;
    if (description->depth && !(description->flags & (ARRAY_LAYERED | ARRAY_CUBEMAP)))
        smaller.depth = larger(description->depth >> number, 1);
    lay_out(level, &smaller);
    mipmap->level[number] = level;
    mipmap->bytes += level->bytes;
}

CUresult sim_cuMipmappedArrayCreate(CUmipmappedArray *out, const struct array_3d *description,
                                    unsigned int levels)
{
    CUcontext context = context_current();
    CUresult result = CUDA_SUCCESS;

    if (!out || !description || description->width == 0 || levels == 0 || levels > MOST_LEVELS)
        return CUDA_ERROR_INVALID_VALUE;
    CUmipmappedArray mipmap = handle_new(HANDLE_MIPMAPPED_ARRAY, sizeof *mipmap, context);
    mipmap->flags = description->flags;
    mipmap->levels = levels;
    for (unsigned int i = 0; i < levels; i++)
        make_level(mipmap, i, description);
    if (!without_memory(description->flags))
        result = take(context, mipmap->bytes, &mipmap->memory, &mipmap->charged);
    if (result != CUDA_SUCCESS) {
        sim_cuMipmappedArrayDestroy(mipmap);
        return result;
    }
    char *memory = mipmap->memory;
    for (unsigned int i = 0; memory && i < levels; i++) {
        mipmap->level[i]->memory = memory;
        memory += mipmap->level[i]->bytes;
    }
    *out = mipmap;
    return CUDA_SUCCESS;
}

CUresult sim_cuMipmappedArrayGetLevel(CUarray *out, CUmipmappedArray mipmap, unsigned int number)
{
    if (!handle_is(mipmap, HANDLE_MIPMAPPED_ARRAY))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out || number >= mipmap->levels)
        return CUDA_ERROR_INVALID_VALUE;
    *out = mipmap->level[number];
    return CUDA_SUCCESS;
}

CUresult sim_cuMipmappedArrayDestroy(CUmipmappedArray mipmap)
{
    if (!handle_is(mipmap, HANDLE_MIPMAPPED_ARRAY))
        return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned int i = 0; i < mipmap->levels; i++)
        handle_delete(mipmap->level[i]);
    give(mipmap->handle.context, mipmap->memory, mipmap->charged);
    handle_delete(mipmap);
    return CUDA_SUCCESS;
}

CUresult sim_cuMipmappedArrayGetMemoryRequirements(struct array_requirements *out,
                                                   CUmipmappedArray mipmap, CUdevice ordinal)
{
    if (!handle_is(mipmap, HANDLE_MIPMAPPED_ARRAY))
        return CUDA_ERROR_INVALID_HANDLE;
    return requirements(out, mipmap->bytes, mipmap->flags, ordinal);
}

int array_known(CUarray array) { return handle_is(array, HANDLE_ARRAY); }

char *array_memory(CUarray array, size_t *pitch, size_t *slice)
{
    *pitch = array->pitch;
    *slice = array->pitch * array->rows;
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
