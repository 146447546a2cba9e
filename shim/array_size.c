/* array_size.c -- see array_size.h.
 *
 * Cards keep texels in blocks, as the open-source drivers for them show: 64 bytes wide, 8 rows
 * high, doubled in height up to 128 rows and in depth up to 32 slices as far as the array reaches,
 * and smaller in smaller levels. NVIDIA's driver may choose otherwise (smaller blocks; rows padded
 * as in pitched memory, to 512 bytes), so the estimate takes the worst of each. Not measured on a
 * card.
 */
#include "array_size.h"

#include <stdbool.h>

enum { ROW_BYTES = 512, BLOCK_ROWS_MIN = 8, BLOCK_ROWS_MAX = 128, BLOCK_SLICES_MAX = 32 };
enum { TEXEL_BYTES_MAX = 16 };

struct format {
    CUarray_format value;
    bool by_channel;        /* bytes are for one channel */
    uint8_t bytes, block;   /* so many for each block x block texels */
    uint8_t colours;        /* further planes: */
    uint8_t colour_bytes;   /* so many for each */
    uint8_t across, upward; /* across x upward texels */
};

#define CHANNELS(bytes) true, bytes, 1, 0, 0, 1, 1
#define PACKED(bytes) false, bytes, 1, 0, 0, 1, 1
#define BLOCKS(bytes) false, bytes, 4, 0, 0, 1, 1
#define SEMIPLANAR(bytes, x, y) false, bytes, 1, 1, 2 * (bytes), x, y
#define PLANAR(bytes, x, y) false, bytes, 1, 2, bytes, x, y
static const struct format formats[] = {
#define FORMAT(since, name, value, planes) {name, planes},
#include "array_formats.def"
#undef FORMAT
};

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t plus(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

static uint64_t parts(uint64_t whole, uint64_t part) { return whole / part + (whole % part != 0); }

static uint64_t padded(uint64_t value, uint64_t to) { return times(parts(value, to), to); }

/* The smallest block, doubled from `least`, that holds the whole extent; `most` where none does. */
static uint64_t block_of(uint64_t extent, uint64_t least, uint64_t most)
{
    while (least < extent && least < most)
        least *= 2;
    return least;
}

static struct format format_of(const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (formats[i].value == shape->Format)
            return formats[i];
    }
    return (struct format){shape->Format, PACKED(TEXEL_BYTES_MAX)};
}

/* Of columns x rows x slices, each of `bytes` bytes: padded to whole blocks. */
static uint64_t plane_bytes(uint64_t columns, uint64_t rows, uint64_t slices, uint64_t bytes)
{
    return times(times(padded(times(columns, bytes), ROW_BYTES),
                       padded(rows, block_of(rows, BLOCK_ROWS_MIN, BLOCK_ROWS_MAX))),
                 padded(slices, block_of(slices, 1, BLOCK_SLICES_MAX)));
}

static uint64_t level_of(uint64_t extent, unsigned int level)
{
    const uint64_t smaller = extent >> level;
    return smaller ? smaller : 1;
}

static uint64_t level_bytes(const CUDA_ARRAY3D_DESCRIPTOR *shape, const struct format *format,
                            uint64_t slices, unsigned int level)
{
    const uint64_t channels = format->by_channel && shape->NumChannels ? shape->NumChannels : 1;
    const uint64_t width = level_of(shape->Width, level), height = level_of(shape->Height, level),
                   depth = level_of(slices, level);
    return plus(plane_bytes(parts(width, format->block), parts(height, format->block), depth,
                            format->bytes * channels),
                times(format->colours,
                      plane_bytes(parts(width, format->across), parts(height, format->upward),
                                  depth, format->colour_bytes)));
}

/* 1 + floor(log2(largest extent)): "CUDA Driver API", cuMipmappedArrayCreate. */
static unsigned int levels_max(const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    uint64_t extents = (uint64_t)shape->Width | shape->Height | shape->Depth;
    unsigned int levels = 1;
    while (extents >>= 1)
        levels++;
    return levels;
}

uint64_t array_size_most(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels)
{
    const struct format format = format_of(shape);
    const bool layered = (shape->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    const uint64_t slices = layered ? 1 : shape->Depth;
    const unsigned int most = levels_max(shape);
    uint64_t bytes = 0;
    if (!shape->Width)
        return 0;
    for (unsigned int level = 0; level == 0 || (level < levels && level < most); level++)
        bytes = plus(bytes, level_bytes(shape, &format, slices, level));
    /* A layer begins where a largest block may begin. */
    if (layered && levels > 1)
        bytes = padded(bytes, ROW_BYTES * block_of(shape->Height, BLOCK_ROWS_MIN, BLOCK_ROWS_MAX));
    return times(bytes, layered && shape->Depth ? shape->Depth : 1);
}
