/* array_size_test.c -- what arrays take at most: right answers worked out by hand from rows of 512
 * bytes and blocks of 8 to 128 rows and 1 to 32 slices. */
#include "array_size.h"
#include "cmocka_all.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

enum {
    LAYERS = CUDA_ARRAY3D_LAYERED,
    CUBE = CUDA_ARRAY3D_CUBEMAP,
    CUBES = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP,
    OTHER_FLAGS = 0x2 | 0x8 | 0x20 | 0x100 /* surface, gather, colour attachment, video */
};

struct row {
    CUDA_ARRAY3D_DESCRIPTOR shape; /* width, height, depth, format, channels, flags */
    unsigned int levels;
    uint64_t bytes;
};

static void check(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t got = array_size_most(&rows[i].shape, rows[i].levels);
        if (got != rows[i].bytes)
            fail_msg("row %zu: %llu, not %llu", i, (unsigned long long)got,
                     (unsigned long long)rows[i].bytes);
    }
}
#define CHECK_ALL(rows) check(rows, sizeof(rows) / sizeof(rows)[0])

static void test_dimensions(void **state)
{
    (void)state;
    static const struct row rows[] = {
        /* one: a block is 8 rows high all the same */
        {{1, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, 1, 8 * 512},
        {{2048, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0}, 1, 8 * 8 * KIB},
        {{129, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0}, 1, 8 * 1024}, /* 516 bytes */
        /* two */
        {{1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, 0}, 1, 16 * MIB},
        {{100, 20, 0, CU_AD_FORMAT_FLOAT, 4, 0}, 1, 2048 * 32}, /* 1600 bytes, 32 rows */
        {{64, 128, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, 1, 512 * 128},
        {{64, 129, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, 1, 512 * 256},
        {{1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, OTHER_FLAGS}, 1, 16 * MIB},
        /* three */
        {{128, 128, 32, CU_AD_FORMAT_FLOAT, 1, 0}, 1, 512 * 128 * 32},
        {{128, 128, 33, CU_AD_FORMAT_FLOAT, 1, 0}, 1, 512 * 128 * 64},
        {{128, 128, 3, CU_AD_FORMAT_FLOAT, 1, 0}, 1, 512 * 128 * 4},
        {{128, 8, 1, CU_AD_FORMAT_FLOAT, 1, 0}, 1, 512 * 8},
        /* layers are not slices: nothing is padded */
        {{128, 8, 33, CU_AD_FORMAT_FLOAT, 1, LAYERS}, 1, 512 * 8 * 33},
        {{128, 0, 3, CU_AD_FORMAT_FLOAT, 1, LAYERS}, 1, 512 * 8 * 3},
        {{128, 128, 6, CU_AD_FORMAT_FLOAT, 1, CUBE}, 1, 512 * 128 * 6},
        {{128, 128, 18, CU_AD_FORMAT_FLOAT, 1, CUBES}, 1, 512 * 128 * 18},
    };
    CHECK_ALL(rows);
}

static void test_formats(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {{512, 8, 0, CU_AD_FORMAT_SIGNED_INT8, 1, 0}, 1, 512 * 8},
        {{512, 8, 0, CU_AD_FORMAT_UNSIGNED_INT16, 2, 0}, 1, 2048 * 8},
        {{512, 8, 0, CU_AD_FORMAT_HALF, 4, 0}, 1, 4096 * 8},
        {{512, 8, 0, CU_AD_FORMAT_SIGNED_INT32, 4, 0}, 1, 8192 * 8},
        /* these carry their channels */
        {{512, 8, 0, CU_AD_FORMAT_UNORM_INT8X1, 1, 0}, 1, 512 * 8},
        {{512, 8, 0, CU_AD_FORMAT_SNORM_INT8X4, 4, 0}, 1, 2048 * 8},
        {{512, 8, 0, CU_AD_FORMAT_UNORM_INT16X2, 2, 0}, 1, 2048 * 8},
        {{512, 8, 0, CU_AD_FORMAT_SNORM_INT16X4, 4, 0}, 1, 4096 * 8},
        {{512, 8, 0, CU_AD_FORMAT_UNORM_INT_101010_2, 4, 0}, 1, 2048 * 8},
        /* 4 x 4 texels in 8 bytes or 16 */
        {{1024, 512, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0}, 1, 256 * 8 * 128},
        {{1024, 512, 0, CU_AD_FORMAT_BC4_SNORM, 1, 0}, 1, 256 * 8 * 128},
        {{1024, 512, 0, CU_AD_FORMAT_BC3_UNORM, 4, 0}, 1, 256 * 16 * 128},
        {{1024, 512, 0, CU_AD_FORMAT_BC6H_UF16, 3, 0}, 1, 256 * 16 * 128},
        {{1025, 513, 0, CU_AD_FORMAT_BC7_UNORM_SRGB, 4, 0}, 1, 4608 * 256}, /* 257 x 129 blocks */
        /* luminance, then colour */
        {{1024, 256, 0, CU_AD_FORMAT_NV12, 3, 0}, 1, 1024 * 256 + 1024 * 128},
        {{1024, 256, 0, CU_AD_FORMAT_P016, 3, 0}, 1, 2048 * 256 + 2048 * 128},
        {{1024, 256, 0, CU_AD_FORMAT_NV16, 3, 0}, 1, 1024 * 256 + 1024 * 256},
        {{1024, 256, 0, CU_AD_FORMAT_P210, 3, 0}, 1, 2048 * 256 + 2048 * 256},
        {{1024, 256, 0, CU_AD_FORMAT_YUY2, 2, 0}, 1, 2048 * 256},
        {{1024, 256, 0, CU_AD_FORMAT_Y416, 4, 0}, 1, 8192 * 256},
        {{1024, 256, 0, CU_AD_FORMAT_Y444_PLANAR8, 3, 0}, 1, 3 * 1024 * 256},
        {{1024, 256, 0, CU_AD_FORMAT_YUV444_16bit_SemiPlanar, 3, 0}, 1, 3 * 2048 * 256},
        {{1024, 256, 0, CU_AD_FORMAT_UINT8_PLANAR_420, 3, 0}, 1, 1024 * 256 + 2 * 512 * 128},
        {{1024, 256, 0, CU_AD_FORMAT_UINT16_PLANAR_422, 3, 0}, 1, 2048 * 256 + 2 * 1024 * 256},
        /* not known: the largest texel that there is */
        {{512, 8, 0, (CUarray_format)0x7777, 1, 0}, 1, 8192 * 8},
    };
    CHECK_ALL(rows);
}

static void test_levels(void **state)
{
    (void)state;
    static const struct row rows[] = {
        /* 256 x 256, 128 x 128, 64 x 64 */
        {{256, 256, 0, CU_AD_FORMAT_FLOAT, 1, 0}, 3, 1024 * 256 + 512 * 128 + 512 * 64},
        {{256, 256, 0, CU_AD_FORMAT_FLOAT, 1, 0}, 0, 1024 * 256}, /* one at least */
        /* 4, 2, 1 and no more */
        {{4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0}, 99, 3 * 512 * 8},
        {{1, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0}, 5, 512 * 8},
        /* the depth of three dimensions shrinks: 4 slices, 2, 1 */
        {{128, 8, 4, CU_AD_FORMAT_FLOAT, 1, 0}, 3, 512 * 8 * 7},
        /* layers stay, and each begins at a block: 2 levels of 128 x 128 are 512 * (128 + 64) */
        {{128, 128, 5, CU_AD_FORMAT_FLOAT, 1, LAYERS}, 2, 512 * 256 * 5},
        {{128, 128, 6, CU_AD_FORMAT_FLOAT, 1, CUBE}, 2, 512 * 256 * 6},
        /* blocks of the format: 64 x 64, then 32 x 32 */
        {{256, 256, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0}, 2, 512 * 64 + 512 * 32},
        /* both planes shrink */
        {{1024, 256, 0, CU_AD_FORMAT_NV12, 3, 0},
         2,
         1024 * 256 + 1024 * 128 + 512 * 128 + 512 * 64},
    };
    CHECK_ALL(rows);
}

static void test_absurd_shapes(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {{0, 5, 5, CU_AD_FORMAT_FLOAT, 1, 0}, 1, 0},
        {{SIZE_MAX, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0}, 1, UINT64_MAX},
        {{SIZE_MAX, SIZE_MAX, SIZE_MAX, CU_AD_FORMAT_NV12, 3, 0}, 99, UINT64_MAX},
        {{1, SIZE_MAX, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, 1, UINT64_MAX},
        {{1, 1, SIZE_MAX, CU_AD_FORMAT_UNSIGNED_INT8, 1, LAYERS}, 64, UINT64_MAX},
        {{128, 8, 0, CU_AD_FORMAT_FLOAT, 0, 0}, 1, 512 * 8}, /* no channels: the driver refuses */
        {{128, 8, 0, CU_AD_FORMAT_FLOAT, UINT32_MAX, 0}, 1, (uint64_t)512 * UINT32_MAX * 8},
    };
    CHECK_ALL(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dimensions),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_absurd_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
