/* sparse.c -- see sparse.h; the calls on sparse arrays.
 *
 * A tile has TILE_BYTES. Levels that are smaller than a tile in any direction lie together in a mip
 * tail, one for each layer; an array without levels that is so small is all tail. An array of
 * deferred mapping is one piece.
 */
#include "sparse.h"

#include "api.h"
#include "devices.h"
#include "physical.h"
#include "streams.h"
#include "version.h"

#include <stdlib.h>

enum { TILE_BYTES = 65536, SINGLE_MIPTAIL = 1, TILE_POOL = 1 };

struct box {
    size_t width, height, depth;
};

struct sparse {
    int whole;       /* of deferred mapping */
    struct box tile; /* in texels */
    struct box level[ARRAY_LEVELS];
    unsigned int levels; /* of tiles; the others are in the tail */
    size_t layers;
    int single;               /* one tail for all layers */
    size_t tail_bytes;        /* of a layer, or of all */
    size_t pool_bytes;        /* that a mapping of the whole needs */
    size_t count;             /* of pieces */
    struct physical **pieces; /* what each is mapped to; NULL: nothing */
};

static size_t parts(size_t whole, size_t part) { return (whole + part - 1) / part; }

/* The shapes of a tile of 64 KiB, by the bytes of a texel or block: 1, 2, 4, 8, 16. */
static struct box tile_of(const struct texels *texels, int has_depth)
{
    static const struct box flat[] = {
        {256, 256, 1}, {256, 128, 1}, {128, 128, 1}, {128, 64, 1}, {64, 64, 1}};
    static const struct box deep[] = {
        {64, 32, 32}, {32, 32, 32}, {32, 32, 16}, {32, 16, 16}, {16, 16, 16}};
    int power = 0;

    while (((size_t)1 << power) < texels->plane[0].bytes)
        power++;
    struct box tile = has_depth ? deep[power] : flat[power];
    tile.width *= texels->plane[0].width;
    tile.height *= texels->plane[0].height;
    return tile;
}

static size_t tiles_of(const struct sparse *sparse, unsigned int level)
{
    const struct box *box = &sparse->level[level];

    return parts(box->width, sparse->tile.width) * parts(box->height, sparse->tile.height) *
           parts(box->depth, sparse->tile.depth);
}

static size_t tail_pieces(const struct sparse *sparse)
{
    return parts(sparse->tail_bytes, TILE_BYTES);
}

static void divide(struct sparse *sparse, const CUarray *level, unsigned int levels, int mipmapped)
{
    const struct array_3d *shape = &level[0]->description;
    int layered = (shape->flags & ARRAY_LAYERED) != 0;

    sparse->layers = layered ? shape->depth : 1;
    sparse->tile = tile_of(&level[0]->texels, shape->depth && !layered);
    for (unsigned int i = 0; i < levels; i++) {
        const struct array_3d *d = &level[i]->description;
        sparse->level[i] = (struct box){d->width, d->height, layered || !d->depth ? 1 : d->depth};
        if (sparse->levels == i && d->width >= sparse->tile.width &&
            d->height >= sparse->tile.height && sparse->level[i].depth >= sparse->tile.depth)
            sparse->levels++;
        else
            sparse->tail_bytes += level[i]->bytes / (mipmapped ? sparse->layers : 1);
    }
    sparse->tail_bytes = parts(sparse->tail_bytes, TILE_BYTES) * TILE_BYTES;
    sparse->single = !mipmapped && sparse->tail_bytes;
    for (unsigned int i = 0; i < sparse->levels; i++)
        sparse->count += tiles_of(sparse, i) * sparse->layers;
    sparse->count += tail_pieces(sparse) * (sparse->single ? 1 : sparse->layers);
}

struct sparse *sparse_new(const CUarray *level, unsigned int levels, size_t bytes, int mipmapped)
{
    const struct array_3d *shape = &level[0]->description;
    int whole = (shape->flags & ARRAY_DEFERRED_MAPPING) != 0;

    if (!whole && (!shape->height || shape->flags & ARRAY_CUBEMAP || level[0]->texels.planes != 1))
        return NULL;
    struct sparse *sparse = calloc(1, sizeof *sparse);
    if (!sparse)
        abort();
    sparse->whole = whole;
    sparse->pool_bytes = bytes;
    sparse->count = 1;
    if (!whole) {
        sparse->count = 0;
        divide(sparse, level, levels, mipmapped);
    }
    sparse->pieces = calloc(sparse->count, sizeof *sparse->pieces);
    if (!sparse->pieces)
        abort();
    return sparse;
}

static void put(struct physical **piece, struct physical *now)
{
    struct physical *before = *piece;

    *piece = now;
    if (now)
        now->mappings++;
    if (before) {
        before->mappings--;
        physical_drop(before);
    }
}

void sparse_end(struct sparse *sparse)
{
    if (!sparse)
        return;
    for (size_t i = 0; i < sparse->count; i++)
        put(&sparse->pieces[i], NULL);
    free(sparse->pieces);
    free(sparse);
}

static CUresult properties(CUDA_ARRAY_SPARSE_PROPERTIES *out, const struct sparse *sparse)
{
    if (version_reported() < 11010)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!out || !sparse || sparse->whole)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUDA_ARRAY_SPARSE_PROPERTIES){.tileExtent = {(unsigned int)sparse->tile.width,
                                                         (unsigned int)sparse->tile.height,
                                                         (unsigned int)sparse->tile.depth},
                                          .miptailFirstLevel = sparse->levels,
                                          .miptailSize = sparse->tail_bytes,
                                          .flags = sparse->single ? SINGLE_MIPTAIL : 0};
    return CUDA_SUCCESS;
}

CUresult sim_cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUarray array)
{
    if (!array_known(array))
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = properties(out, array->sparse);
    if (result == CUDA_SUCCESS)
        out->miptailFirstLevel = 0;
    return result;
}

CUresult sim_cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out,
                                                 CUmipmappedArray mipmap)
{
    return mipmap_known(mipmap) ? properties(out, mipmap->sparse) : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult sparse_of(const CUarrayMapInfo *info, struct sparse **out)
{
    *out = NULL;
    if (info->resourceType == CU_RESOURCE_TYPE_ARRAY) {
        if (!array_known(info->resource.array))
            return CUDA_ERROR_INVALID_HANDLE;
        *out = info->resource.array->sparse;
    } else if (info->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) {
        if (!mipmap_known(info->resource.mipmap))
            return CUDA_ERROR_INVALID_HANDLE;
        *out = info->resource.mipmap->sparse;
    }
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Is [from, from + extent) made of whole tiles of a level so large? */
static int aligned(size_t from, size_t extent, size_t tile, size_t level)
{
    return extent && from % tile == 0 && from + extent <= level &&
           (extent % tile == 0 || from + extent == level);
}

static int is_tail(const CUarrayMapInfo *info)
{
    return info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
}

/* The pieces that are meant, as a box of tiles: the number of the first, and how far apart rows and
 * slices are. */
struct pieces {
    size_t first, row, slice;
    struct box box;
};

static int tail_of(const struct sparse *sparse, const CUarrayMapInfo *info, struct pieces *out)
{
    unsigned long long offset = info->subresource.miptail.offset,
                       size = info->subresource.miptail.size;
    size_t layer = info->subresource.miptail.layer;

    if (layer >= (sparse->single ? 1 : sparse->layers) || offset % TILE_BYTES ||
        size % TILE_BYTES || size == 0 || offset > sparse->tail_bytes ||
        size > sparse->tail_bytes - offset)
        return 0;
    *out = (struct pieces){.first = layer * tail_pieces(sparse) + offset / TILE_BYTES,
                           .box = {size / TILE_BYTES, 1, 1}};
    for (unsigned int i = 0; i < sparse->levels; i++)
        out->first += tiles_of(sparse, i) * sparse->layers;
    return 1;
}

static int level_of(const struct sparse *sparse, const CUarrayMapInfo *info, struct pieces *out)
{
    const __typeof__(info->subresource.sparseLevel) *at = &info->subresource.sparseLevel;
    const struct box *tile = &sparse->tile, *level = &sparse->level[at->level % ARRAY_LEVELS];

    if (at->level >= sparse->levels || at->layer >= sparse->layers ||
        !aligned(at->offsetX, at->extentWidth, tile->width, level->width) ||
        !aligned(at->offsetY, at->extentHeight, tile->height, level->height) ||
        !aligned(at->offsetZ, at->extentDepth, tile->depth, level->depth))
        return 0;
    *out = (struct pieces){.row = parts(level->width, tile->width),
                           .box = {parts(at->extentWidth, tile->width),
                                   parts(at->extentHeight, tile->height),
                                   parts(at->extentDepth, tile->depth)}};
    out->slice = out->row * parts(level->height, tile->height);
    for (unsigned int i = 0; i < at->level; i++)
        out->first += tiles_of(sparse, i) * sparse->layers;
    out->first += at->layer * tiles_of(sparse, at->level) + at->offsetZ / tile->depth * out->slice +
                  at->offsetY / tile->height * out->row + at->offsetX / tile->width;
    return 1;
}

static int pieces_of(const struct sparse *sparse, const CUarrayMapInfo *info, struct pieces *out)
{
    if (sparse->whole) {
        *out = (struct pieces){.box = {1, 1, 1}};
        return 1;
    }
    return is_tail(info) ? tail_of(sparse, info, out) : level_of(sparse, info, out);
}

static int memory_suits(const struct sparse *sparse, const CUarrayMapInfo *info,
                        const struct pieces *pieces, const struct device *device)
{
    struct physical *physical = physical_of(info->memHandle.memHandle);
    const struct box *box = &pieces->box;
    size_t bytes =
        sparse->whole ? sparse->pool_bytes : box->width * box->height * box->depth * TILE_BYTES;

    if (info->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP)
        return info->memHandle.memHandle == 0;
    return info->memOperationType == CU_MEM_OPERATION_TYPE_MAP && physical &&
           info->memHandleType == CU_MEM_HANDLE_TYPE_GENERIC &&
           (sparse->whole || physical->store->prop.allocFlags.usage & TILE_POOL) &&
           physical->store->device == device && info->offset % TILE_BYTES == 0 &&
           info->offset <= physical->store->bytes && bytes <= physical->store->bytes - info->offset;
}

/* With `map` 0 only judges. */
static CUresult operate(const CUarrayMapInfo *info, const struct device *device, int map)
{
    struct sparse *sparse;
    struct pieces pieces;
    CUresult result = sparse_of(info, &sparse);

    if (result != CUDA_SUCCESS)
        return result;
    if (info->flags || info->reserved[0] || info->reserved[1] ||
        info->deviceBitMask != 1U << device->ordinal || !pieces_of(sparse, info, &pieces) ||
        !memory_suits(sparse, info, &pieces, device))
        return CUDA_ERROR_INVALID_VALUE;
    struct physical *physical = physical_of(info->memHandle.memHandle);
    for (size_t z = 0; map && z < pieces.box.depth; z++)
        for (size_t y = 0; y < pieces.box.height; y++)
            for (size_t x = 0; x < pieces.box.width; x++)
                put(&sparse->pieces[pieces.first + z * pieces.slice + y * pieces.row + x],
                    physical);
    return CUDA_SUCCESS;
}

CUresult sim_cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    CUresult result = stream_check(stream);

    if (version_reported() < 11010)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS && (!list || count == 0))
        result = CUDA_ERROR_INVALID_VALUE;
    for (int map = 0; map < 2; map++) /* all is judged before anything is changed */
        for (unsigned int i = 0; result == CUDA_SUCCESS && i < count; i++)
            result = operate(&list[i], stream_device(stream), map);
    return result;
}
