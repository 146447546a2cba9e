/* hook_sparse.c -- physical memory mapped into sparse arrays and arrays of deferred mapping.
 *
 * Knows: which tile holds which handle. Must not know: what handles are charged (hook_vmm.c). A
 * tile that is mapped holds its handle as any mapping does, until it is unmapped or mapped anew, or
 * its array goes. All of it is counted when cuMemMapArrayAsync returns, not when the stream gets
 * there.
 */
#include "fork.h"
#include "handles.h"
#include "hook.h"
#include "track.h"

/* Array -> number (kind and device, number_of), extent of its tiles (bytes, packed; 0: it is mapped
 * as a whole), context (owner). */
static struct track_table arrays;
/* Key of a tile (tile_key) -> handle (bytes), number of its array (owner). */
static struct track_table tiles;
static uint32_t last_number;

/* Numbers of arrays and tiles share 63 bits. Fields fit the largest arrays of today's cards
 * (131072 x 65536 texels in 64 x 64, 2048 layers, 16384 slices in 16s, 18 levels); what does not
 * fit cannot be remembered. */
enum {
    ACROSS_BITS = 11,
    DOWN_BITS = 11,
    SLICE_BITS = 11, /* layers or slices: no array has both */
    LEVEL_BITS = 5,
    TAIL_BITS = 1,
    TILE_BITS = ACROSS_BITS + DOWN_BITS + SLICE_BITS + LEVEL_BITS + TAIL_BITS,
    NUMBER_BITS = 62 - TILE_BITS
};
enum { EXTENT_BITS = 20, TAIL_UNIT = 65536 /* bytes of a tile; a mip tail is mapped in such */ };

struct tile {
    uint32_t across, down, slice, level, tail;
};

static bool fits(uint32_t value, int bits) { return value >> bits == 0; }

static bool tile_key(uint32_t number, const struct tile *tile, uint64_t *key)
{
    *key = number;
    *key = *key << TAIL_BITS | tile->tail;
    *key = *key << LEVEL_BITS | tile->level;
    *key = *key << SLICE_BITS | tile->slice;
    *key = *key << DOWN_BITS | tile->down;
    *key = *key << ACROSS_BITS | tile->across;
    return fits(tile->across, ACROSS_BITS) && fits(tile->down, DOWN_BITS) &&
           fits(tile->slice, SLICE_BITS) && fits(tile->level, LEVEL_BITS);
}

static uint64_t packed(const CUDA_ARRAY_SPARSE_PROPERTIES *properties)
{
    const uint64_t width = properties->tileExtent.width, height = properties->tileExtent.height,
                   depth = properties->tileExtent.depth;
    return (width ? width : 1) << (2 * EXTENT_BITS) | (height ? height : 1) << EXTENT_BITS |
           (depth ? depth : 1);
}

static uint32_t unpacked(uint64_t extents, int which)
{
    return (uint32_t)(extents >> (which * EXTENT_BITS)) & ((1U << EXTENT_BITS) - 1);
}

static uint32_t number_of(const struct track_entry *array)
{
    return (uint32_t)array->device << 16 | array->kind;
}

bool sparse_keep(uint64_t array, uint64_t owner, const CUDA_ARRAY_SPARSE_PROPERTIES *properties)
{
    const uint32_t number = __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
    const struct track_entry entry = {.key = array,
                                      .bytes = properties ? packed(properties) : 0,
                                      .owner = owner,
                                      .device = (uint16_t)(number >> 16),
                                      .kind = (uint16_t)number};
    return fits(number, NUMBER_BITS) && track_put(&arrays, &entry);
}

static bool find(const CUarrayMapInfo *info, struct track_entry *array)
{
    const uint64_t key = info->resourceType == CU_RESOURCE_TYPE_ARRAY
                             ? (uint64_t)(uintptr_t)info->resource.array
                             : (uint64_t)(uintptr_t)info->resource.mipmap;
    return track_find(&arrays, key, array);
}

/* What a tile held before is let go, whatever comes in its place. `handle` 0: nothing does. A tile
 * that cannot be remembered holds its memory for good: too much is charged, never too little. */
static void put_tile(uint32_t number, const struct tile *tile, CUmemGenericAllocationHandle handle)
{
    struct track_entry before, now = {.bytes = handle, .owner = number};
    const bool is_held = handle && handles_hold(handle, HANDLES_MAPPING);
    if (!tile_key(number, tile, &now.key))
        return;
    if (track_take(&tiles, now.key, &before))
        handles_drop(before.bytes, HANDLES_MAPPING);
    if (is_held)
        track_put(&tiles, &now);
}

/* The number of tiles up to the end of an extent. */
static uint64_t tiles_to(uint64_t from, uint64_t extent, uint64_t tile)
{
    return (from + extent + tile - 1) / tile;
}

static void put_level(const struct track_entry *array, const CUarrayMapInfo *info,
                      CUmemGenericAllocationHandle handle)
{
    const __typeof__(info->subresource.sparseLevel) *box = &info->subresource.sparseLevel;
    const uint32_t width = unpacked(array->bytes, 2), height = unpacked(array->bytes, 1),
                   depth = unpacked(array->bytes, 0);
    const uint64_t right = tiles_to(box->offsetX, box->extentWidth, width),
                   bottom = tiles_to(box->offsetY, box->extentHeight, height),
                   back = tiles_to(box->offsetZ, box->extentDepth, depth);
    for (uint32_t z = box->offsetZ / depth; z < back; z++) {
        for (uint32_t y = box->offsetY / height; y < bottom; y++) {
            for (uint32_t x = box->offsetX / width; x < right; x++) {
                const struct tile tile = {x, y, z + box->layer, box->level, 0};
                put_tile(number_of(array), &tile, handle);
            }
        }
    }
}

static void put_tail(const struct track_entry *array, const CUarrayMapInfo *info,
                     CUmemGenericAllocationHandle handle)
{
    const __typeof__(info->subresource.miptail) *tail = &info->subresource.miptail;
    const uint64_t end = tiles_to(tail->offset, tail->size, TAIL_UNIT);
    for (uint64_t i = tail->offset / TAIL_UNIT; i < end; i++) {
        const struct tile tile = {.across = (uint32_t)(i & ((1U << ACROSS_BITS) - 1)),
                                  .down = (uint32_t)(i >> ACROSS_BITS),
                                  .slice = tail->layer,
                                  .tail = 1};
        put_tile(number_of(array), &tile, handle);
    }
}

/* What the driver has done. */
static void apply(const CUarrayMapInfo *info)
{
    const CUmemGenericAllocationHandle handle =
        info->memOperationType == CU_MEM_OPERATION_TYPE_MAP ? info->memHandle.memHandle : 0;
    static const struct tile whole;
    struct track_entry array;
    if (!find(info, &array))
        return;
    if (!array.bytes)
        put_tile(number_of(&array), &whole, handle);
    else if (info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL)
        put_tail(&array, info, handle);
    else
        put_level(&array, info, handle);
}

static bool maps(const CUarrayMapInfo *info)
{
    return info->memOperationType == CU_MEM_OPERATION_TYPE_MAP;
}

/* Each handle is held before the driver maps it: its last reference may be released by another
 * thread meanwhile. */
static CUresult map(CUresult (*original)(CUarrayMapInfo *list, unsigned int count, CUstream stream),
                    CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    for (unsigned int i = 0; list && i < count; i++) {
        if (maps(&list[i]))
            handles_hold(list[i].memHandle.memHandle, HANDLES_MAPPING);
    }
    CUresult rc = original(list, count, stream);
    for (unsigned int i = 0; list && rc == CUDA_SUCCESS && i < count; i++)
        apply(&list[i]);
    for (unsigned int i = 0; list && i < count; i++) {
        if (maps(&list[i]))
            handles_drop(list[i].memHandle.memHandle, HANDLES_MAPPING);
    }
    return rc;
}

CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    HOOK_ENTER(cuMemMapArrayAsync, (list, count, stream));
    return map(real.cuMemMapArrayAsync, list, count, stream);
}

CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    HOOK_ENTER(cuMemMapArrayAsync_ptsz, (list, count, stream));
    return map(real.cuMemMapArrayAsync_ptsz, list, count, stream);
}

static bool drop(const struct track_entry *tile)
{
    handles_drop(tile->bytes, HANDLES_MAPPING);
    return false;
}

static void drop_tiles(const struct track_entry *array)
{
    const uint32_t number = number_of(array);
    track_set_aside(&tiles, track_owner(number), number);
    track_settle(&tiles, track_owner(number), number, drop);
}

/* The tiles stay where they are meanwhile: no other array ever has this one's number. */
bool sparse_take(uint64_t array, struct track_entry *entry)
{
    return track_take(&arrays, array, entry);
}

bool sparse_take_aside(uint64_t array, struct track_entry *entry)
{
    return track_take_aside(&arrays, array, entry);
}

void sparse_taken(const struct track_entry *entry, bool gone)
{
    if (gone)
        drop_tiles(entry);
    else
        track_put(&arrays, entry); /* there is room: it was there */
}

void sparse_owner_ends(uint64_t owner, uint32_t end)
{
    track_set_aside(&arrays, track_owner(owner), end);
}

static bool give_back(const struct track_entry *entry)
{
    drop_tiles(entry);
    return false;
}

void sparse_owner_ended(uint64_t owner, uint32_t end, bool gone)
{
    track_settle(&arrays, track_owner(owner), end, gone ? give_back : NULL);
}

void sparse_forget(void)
{
    track_forget(&arrays);
    track_forget(&tiles);
}
