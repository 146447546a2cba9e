/* formats.c -- see formats.h. */
#include "formats.h"

#include "cuda_abi.h"

static int any(unsigned int channels) { return channels == 1 || channels == 2 || channels == 4; }

static struct texels blocks(size_t width, size_t height, size_t bytes)
{
    return (struct texels){.planes = 1, .plane = {{width, height, bytes}}};
}

/* Planes of colour beside one of luminance; `x` by `y` of its texels share one of theirs. */
static struct texels video(int planes, size_t bytes, size_t x, size_t y)
{
    size_t colour = planes == 2 ? 2 * bytes : bytes;

    return (struct texels){planes, {{1, 1, bytes}, {x, y, colour}, {x, y, colour}}};
}

/* The formats of a channel or more, by the bytes of one. */
static size_t channel_bytes(int format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

/* UNORM_INT8X1 and its like: 8 bits then 16, each of 1, 2 and 4 channels, unsigned then signed. */
static int normalised(int format, unsigned int channels, struct texels *texels)
{
    static const unsigned int counts[] = {1, 2, 4};
    int index = format - CU_AD_FORMAT_UNORM_INT8X1;

    *texels = blocks(1, 1, (index / 3 % 2 ? 2U : 1U) * channels);
    return channels == counts[index % 3];
}

static int compressed(int format, unsigned int channels, struct texels *texels)
{
    static const struct {
        size_t bytes;
        unsigned int channels;
    } rows[] = {{8, 4}, {8, 4},  {16, 4}, {16, 4}, {16, 4}, {16, 4}, {8, 1},
                {8, 1}, {16, 2}, {16, 2}, {16, 3}, {16, 3}, {16, 4}, {16, 4}};
    int index = format - CU_AD_FORMAT_BC1_UNORM;

    *texels = blocks(4, 4, rows[index].bytes);
    return channels == rows[index].channels;
}

static int packed(int format, unsigned int channels, struct texels *texels)
{
    switch (format) {
    case CU_AD_FORMAT_YUY2:
        *texels = blocks(1, 1, 2);
        return channels == 2;
    case CU_AD_FORMAT_Y210:
    case CU_AD_FORMAT_Y216:
        *texels = blocks(1, 1, 4);
        return channels == 2;
    case CU_AD_FORMAT_UINT8_PACKED_422: /* two texels in four bytes */
        *texels = blocks(2, 1, 4);
        return channels == 4;
    case CU_AD_FORMAT_UNORM_INT_101010_2:
    case CU_AD_FORMAT_AYUV:
    case CU_AD_FORMAT_Y410:
    case CU_AD_FORMAT_UINT8_PACKED_444:
        *texels = blocks(1, 1, 4);
        return channels == 4;
    case CU_AD_FORMAT_Y416:
        *texels = blocks(1, 1, 8);
        return channels == 4;
    default:
        return 0;
    }
}

static int planar(int format, struct texels *texels)
{
    switch (format) {
    case CU_AD_FORMAT_NV12:
    case CU_AD_FORMAT_UINT8_SEMIPLANAR_420:
        *texels = video(2, 1, 2, 2);
        return 1;
    case CU_AD_FORMAT_P010:
    case CU_AD_FORMAT_P016:
    case CU_AD_FORMAT_UINT16_SEMIPLANAR_420:
        *texels = video(2, 2, 2, 2);
        return 1;
    case CU_AD_FORMAT_NV16:
    case CU_AD_FORMAT_UINT8_SEMIPLANAR_422:
        *texels = video(2, 1, 2, 1);
        return 1;
    case CU_AD_FORMAT_P210:
    case CU_AD_FORMAT_P216:
    case CU_AD_FORMAT_UINT16_SEMIPLANAR_422:
        *texels = video(2, 2, 2, 1);
        return 1;
    case CU_AD_FORMAT_YUV444_8bit_SemiPlanar:
    case CU_AD_FORMAT_UINT8_SEMIPLANAR_444:
        *texels = video(2, 1, 1, 1);
        return 1;
    case CU_AD_FORMAT_YUV444_16bit_SemiPlanar:
    case CU_AD_FORMAT_UINT16_SEMIPLANAR_444:
        *texels = video(2, 2, 1, 1);
        return 1;
    case CU_AD_FORMAT_Y444_PLANAR8:
    case CU_AD_FORMAT_UINT8_PLANAR_444:
        *texels = video(3, 1, 1, 1);
        return 1;
    case CU_AD_FORMAT_Y444_PLANAR10:
    case CU_AD_FORMAT_UINT16_PLANAR_444:
        *texels = video(3, 2, 1, 1);
        return 1;
    case CU_AD_FORMAT_UINT8_PLANAR_420:
        *texels = video(3, 1, 2, 2);
        return 1;
    case CU_AD_FORMAT_UINT16_PLANAR_420:
        *texels = video(3, 2, 2, 2);
        return 1;
    case CU_AD_FORMAT_UINT8_PLANAR_422:
        *texels = video(3, 1, 2, 1);
        return 1;
    case CU_AD_FORMAT_UINT16_PLANAR_422:
        *texels = video(3, 2, 2, 1);
        return 1;
    default:
        return 0;
    }
}

int format_texels(int format, unsigned int channels, struct texels *texels)
{
    if (channel_bytes(format)) {
        *texels = blocks(1, 1, channel_bytes(format) * channels);
        return any(channels);
    }
    if (format >= CU_AD_FORMAT_UNORM_INT8X1 && format <= CU_AD_FORMAT_SNORM_INT16X4)
        return normalised(format, channels, texels);
    if (format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_BC7_UNORM_SRGB)
        return compressed(format, channels, texels);
    if (planar(format, texels))
        return channels == 3;
    return packed(format, channels, texels);
}
