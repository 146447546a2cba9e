/* arrays.c -- arrays: what each takes, what is refused, what tiles hold. SIMCUDA_DRIVER=11050 makes
 * it a driver that does not know deferred mapping. */
#include "client.h"

#include <stdlib.h>

static int is_old(void) { return getenv("SIMCUDA_DRIVER") != NULL; }

static void test_deferred_mapping(void **state)
{
    const struct array_3d description = {100, 20, 0, CU_AD_FORMAT_FLOAT, 4, 0};
    struct array_3d deferred = description;
    struct array_requirements requirements;
    CUmipmappedArray mipmap;
    CUarray array;

    (void)state;
    deferred.flags = ARRAY_DEFERRED_MAPPING;
    ok(cuda.cuArray3DCreate_v2(&array, &description));
    assert_int_equal(client_live(), 20 * 2048); /* rows of 1600 bytes */
    fails(is_old() ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE,
          cuda.cuArrayGetMemoryRequirements(&requirements, array, 0));
    ok(cuda.cuArrayDestroy(array));
    fails(CUDA_ERROR_INVALID_HANDLE, cuda.cuArrayDestroy(array));
    if (is_old()) {
        fails(CUDA_ERROR_INVALID_VALUE, cuda.cuArray3DCreate_v2(&array, &deferred));
        fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMipmappedArrayCreate(&mipmap, &deferred, 2));
        return;
    }
    ok(cuda.cuArray3DCreate_v2(&array, &deferred));
    assert_int_equal(client_live(), 0);
    ok(cuda.cuArrayGetMemoryRequirements(&requirements, array, 0));
    assert_int_equal(requirements.size, 20 * 2048);
    ok(cuda.cuArrayDestroy(array));
    ok(cuda.cuMipmappedArrayCreate(&mipmap, &deferred, 3));
    assert_int_equal(client_live(), 0);
    ok(cuda.cuMipmappedArrayGetMemoryRequirements(&requirements, mipmap, 0));
    assert_int_equal(requirements.size, 20 * 2048 + 10 * 1024 + 5 * 512);
    ok(cuda.cuMipmappedArrayDestroy(mipmap));
}

static void test_formats(void **state)
{
    static const struct {
        struct array_3d shape;
        size_t bytes;
    } rows[] = {
        {{100, 3, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, 3 * 512},
        {{1000, 3, 0, CU_AD_FORMAT_HALF, 2, 0}, 3 * 4096},
        {{1000, 3, 0, CU_AD_FORMAT_UNORM_INT8X4, 4, 0}, 3 * 4096},
        {{1000, 3, 0, CU_AD_FORMAT_SNORM_INT16X2, 2, 0}, 3 * 4096},
        {{1000, 3, 0, CU_AD_FORMAT_SNORM_INT16X1, 1, 0}, 3 * 2048},
        {{1025, 5, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0}, 2 * 2560}, /* 257 x 2 blocks of 8 bytes */
        {{1025, 5, 0, CU_AD_FORMAT_BC6H_UF16, 3, 0}, 2 * 4608},
        {{1000, 6, 0, CU_AD_FORMAT_NV12, 3, 0}, 6 * 1024 + 3 * 1024},
        {{1000, 6, 0, CU_AD_FORMAT_UINT8_PLANAR_420, 3, 0}, 6 * 1024 + 2 * 3 * 512},
        {{1000, 6, 2, CU_AD_FORMAT_Y444_PLANAR10, 3, ARRAY_LAYERED}, 2 * 3 * 6 * 2048},
        {{1000, 3, 0, CU_AD_FORMAT_Y416, 4, 0}, 3 * 8192},
        {{8, 8, 12, CU_AD_FORMAT_FLOAT, 1, ARRAY_LAYERED | ARRAY_CUBEMAP}, 12 * 8 * 512},
        {{8, 0, 3, CU_AD_FORMAT_FLOAT, 1, ARRAY_LAYERED}, 3 * 512},
    };
    CUarray array;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ok(cuda.cuArray3DCreate_v2(&array, &rows[i].shape));
        assert_int_equal(client_live(), rows[i].bytes);
        ok(cuda.cuArrayDestroy(array));
    }
}

static void test_refusals(void **state)
{
    static const struct array_3d rows[] = {
        {0, 8, 0, CU_AD_FORMAT_FLOAT, 1, 0},
        {8, 8, 0, CU_AD_FORMAT_FLOAT, 3, 0},
        {8, 8, 0, CU_AD_FORMAT_UNORM_INT8X2, 1, 0},
        {8, 8, 0, CU_AD_FORMAT_NV12, 1, 0},
        {8, 8, 0, 0x77, 1, 0},
        {131073, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0},
        {SIZE_MAX, SIZE_MAX, SIZE_MAX, CU_AD_FORMAT_FLOAT, 1, 0},
        {8, 8, 5, CU_AD_FORMAT_FLOAT, 1, ARRAY_CUBEMAP},
        {8, 9, 6, CU_AD_FORMAT_FLOAT, 1, ARRAY_CUBEMAP},
        {8, 8, 0, CU_AD_FORMAT_FLOAT, 1, ARRAY_LAYERED},
        {8, 0, 0, CU_AD_FORMAT_FLOAT, 1, ARRAY_SPARSE}, /* one dimension */
        {8, 8, 0, CU_AD_FORMAT_NV12, 3, ARRAY_SPARSE},
    };
    CUmipmappedArray mipmap;
    CUarray array;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fails(CUDA_ERROR_INVALID_VALUE, cuda.cuArray3DCreate_v2(&array, &rows[i]));
        fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMipmappedArrayCreate(&mipmap, &rows[i], 2));
    }
    assert_int_equal(client_live(), 0);
}

static void test_levels(void **state)
{
    const struct array_3d description = {8, 4, 2, CU_AD_FORMAT_FLOAT, 1, 0};
    CUmipmappedArray mipmap;
    CUarray level;

    (void)state;
    ok(cuda.cuMipmappedArrayCreate(&mipmap, &description, 99)); /* 4: 8 x 4 x 2 .. 1 x 1 x 1 */
    assert_int_equal(client_live(), (4 * 2 + 2 + 1 + 1) * 512);
    ok(cuda.cuMipmappedArrayGetLevel(&level, mipmap, 3));
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMipmappedArrayGetLevel(&level, mipmap, 4));
    fails(CUDA_ERROR_INVALID_HANDLE, cuda.cuArrayDestroy(level));
    ok(cuda.cuMipmappedArrayDestroy(mipmap));
    ok(cuda.cuMipmappedArrayCreate(&mipmap, &description, 0));
    assert_int_equal(client_live(), 4 * 2 * 512);
    ok(cuda.cuMipmappedArrayDestroy(mipmap));
    assert_int_equal(client_live(), 0);
}

static void test_sparse_properties(void **state)
{
    const struct array_3d large = {1000, 300, 0, CU_AD_FORMAT_FLOAT, 1, ARRAY_SPARSE};
    const struct array_3d small = {100, 300, 0, CU_AD_FORMAT_FLOAT, 1, ARRAY_SPARSE};
    const struct array_3d deep = {64, 64, 64, CU_AD_FORMAT_FLOAT, 4, ARRAY_SPARSE};
    CUDA_ARRAY_SPARSE_PROPERTIES properties;
    CUmipmappedArray mipmap;
    CUarray array;

    (void)state;
    ok(cuda.cuArray3DCreate_v2(&array, &large));
    ok(cuda.cuArrayGetSparseProperties(&properties, array));
    assert_int_equal(properties.tileExtent.width, 128);
    assert_int_equal(properties.tileExtent.height, 128);
    assert_int_equal(properties.tileExtent.depth, 1);
    assert_int_equal(properties.flags, 0);
    assert_int_equal(properties.miptailSize, 0);
    ok(cuda.cuArrayDestroy(array));
    ok(cuda.cuArray3DCreate_v2(&array, &small)); /* narrower than a tile: all tail */
    ok(cuda.cuArrayGetSparseProperties(&properties, array));
    assert_int_equal(properties.flags, 1);
    assert_int_equal(properties.miptailSize, 3 * 65536); /* 300 rows of 512 bytes */
    ok(cuda.cuArrayDestroy(array));
    ok(cuda.cuMipmappedArrayCreate(&mipmap, &deep, 5)); /* 64, 32, 16, then the tail */
    ok(cuda.cuMipmappedArrayGetSparseProperties(&properties, mipmap));
    assert_int_equal(properties.tileExtent.depth, 16);
    assert_int_equal(properties.miptailFirstLevel, 3);
    assert_int_equal(properties.miptailSize, 65536);
    ok(cuda.cuMipmappedArrayDestroy(mipmap));
    assert_int_equal(client_live(), 0);
}

static void test_tiles(void **state)
{
    const struct array_3d description = {256, 128, 0, CU_AD_FORMAT_FLOAT, 1, ARRAY_SPARSE};
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle plain, pool;
    CUarray array;

    (void)state;
    ok(cuda.cuArray3DCreate_v2(&array, &description));
    ok(cuda.cuMemCreate(&plain, 2 * MIB, &prop, 0));
    prop.allocFlags.usage = 1; /* a tile pool */
    ok(cuda.cuMemCreate(&pool, 2 * MIB, &prop, 0));
    CUarrayMapInfo info = {
        .resource.array = array,
        .subresource.sparseLevel = {.extentWidth = 256, .extentHeight = 128, .extentDepth = 1},
        .memOperationType = CU_MEM_OPERATION_TYPE_MAP,
        .memHandle.memHandle = plain,
        .deviceBitMask = 1};
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemMapArrayAsync(&info, 1, NULL));
    info.memHandle.memHandle = pool;
    info.offset = 2 * MIB - 65536; /* room for one of the two */
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemMapArrayAsync(&info, 1, NULL));
    info.offset = 65536;
    info.deviceBitMask = 2;
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemMapArrayAsync(&info, 1, NULL));
    info.deviceBitMask = 1;
    ok(cuda.cuMemMapArrayAsync(&info, 1, NULL));
    ok(cuda.cuMemRelease(plain));
    ok(cuda.cuMemRelease(pool));
    assert_int_equal(client_live(), 2 * MIB);
    info.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuMemMapArrayAsync(&info, 1, NULL)); /* names a handle */
    info.memHandle.memHandle = 0;
    info.subresource.sparseLevel.extentWidth = 128;
    ok(cuda.cuMemMapArrayAsync(&info, 1, NULL));
    assert_int_equal(client_live(), 2 * MIB);
    info.subresource.sparseLevel.offsetX = 128;
    ok(cuda.cuMemMapArrayAsync(&info, 1, NULL));
    assert_int_equal(client_live(), 0);
    ok(cuda.cuArrayDestroy(array));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deferred_mapping),  cmocka_unit_test(test_formats),
        cmocka_unit_test(test_refusals),          cmocka_unit_test(test_levels),
        cmocka_unit_test(test_sparse_properties), cmocka_unit_test(test_tiles),
    };

    return cmocka_run_group_tests(tests, client_start, NULL);
}
