/* sparse_test.c -- physical memory mapped into sparse arrays and arrays of deferred mapping: it
 * lives, and is charged, until its references and all that is mapped are gone. After every step
 * what the shim says is held must be what the referee has alive, to the byte.
 */
#include "cmocka_all.h"
#include "cuda_abi.h"
#include "simcuda.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define CAP (64 * MIB)

enum { TILE = 128, TILE_BYTES = 65536, TILE_POOL = 1, DEVICE_0 = 1 };

static void *driver;
static CUcontext context;

#define DRIVER(name, ...) ((CUresult(*)(__VA_ARGS__))(uintptr_t)dlsym(driver, #name))
#define ok(call) assert_int_equal(call, CUDA_SUCCESS)

/* What is alive, and what is held. */
static void assert_alive(uint64_t bytes)
{
    uint64_t (*referee)(int, int) =
        (uint64_t(*)(int, int))(uintptr_t)dlsym(driver, "simcuda_live_bytes");
    size_t free_bytes, total;
    ok(DRIVER(cuMemGetInfo_v2, size_t *, size_t *)(&free_bytes, &total));
    assert_int_equal(total, CAP);
    assert_int_equal(referee(3, SIMCUDA_THIS_PROCESS), bytes);
    assert_int_equal(total - free_bytes, bytes);
}

static int start(void **state)
{
    (void)state;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver || DRIVER(cuInit, unsigned int)(0) != CUDA_SUCCESS)
        return -1;
    return DRIVER(cuCtxCreate_v2, CUcontext *, unsigned int, CUdevice)(&context, 0, 0) ==
                   CUDA_SUCCESS
               ? 0
               : -1;
}

static CUmemGenericAllocationHandle new_handle(size_t bytes)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                      .allocFlags = {.usage = TILE_POOL}};
    CUmemGenericAllocationHandle handle;
    ok(DRIVER(cuMemCreate, CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
              unsigned long long)(&handle, bytes, &prop, 0));
    return handle;
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
    return DRIVER(cuMemRelease, CUmemGenericAllocationHandle)(handle);
}

static CUarray new_array(size_t width, size_t height, size_t depth, unsigned int flags)
{
    const CUDA_ARRAY3D_DESCRIPTOR shape = {width, height, depth, CU_AD_FORMAT_UNSIGNED_INT8,
                                           4,     flags};
    CUarray array;
    ok(DRIVER(cuArray3DCreate_v2, CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *)(&array, &shape));
    return array;
}

static CUmipmappedArray new_mipmap(size_t width, size_t height, size_t layers, unsigned int levels)
{
    const CUDA_ARRAY3D_DESCRIPTOR shape = {
        width,  height,
        layers, CU_AD_FORMAT_UNSIGNED_INT8,
        4,      CUDA_ARRAY3D_SPARSE | (layers ? CUDA_ARRAY3D_LAYERED : 0)};
    CUmipmappedArray mipmap;
    ok(DRIVER(cuMipmappedArrayCreate, CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *,
              unsigned int)(&mipmap, &shape, levels));
    return mipmap;
}

static CUresult end_array(CUarray array) { return DRIVER(cuArrayDestroy, CUarray)(array); }

static CUresult end_mipmap(CUmipmappedArray mipmap)
{
    return DRIVER(cuMipmappedArrayDestroy, CUmipmappedArray)(mipmap);
}

/* Tiles x .. x + across of row y; handle 0 unmaps. */
static CUarrayMapInfo row(CUarray array, unsigned int x, unsigned int y, unsigned int across,
                          CUmemGenericAllocationHandle handle)
{
    return (CUarrayMapInfo){.resourceType = CU_RESOURCE_TYPE_ARRAY,
                            .resource.array = array,
                            .subresource.sparseLevel = {.offsetX = x * TILE,
                                                        .offsetY = y * TILE,
                                                        .extentWidth = across * TILE,
                                                        .extentHeight = TILE,
                                                        .extentDepth = 1},
                            .memOperationType =
                                handle ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP,
                            .memHandle.memHandle = handle,
                            .deviceBitMask = DEVICE_0};
}

static CUarrayMapInfo tail(CUmipmappedArray mipmap, unsigned int layer, size_t offset, size_t bytes,
                           CUmemGenericAllocationHandle handle)
{
    return (CUarrayMapInfo){.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
                            .resource.mipmap = mipmap,
                            .subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL,
                            .subresource.miptail = {layer, offset, bytes},
                            .memOperationType =
                                handle ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP,
                            .memHandle.memHandle = handle,
                            .deviceBitMask = DEVICE_0};
}

static CUresult map(CUarrayMapInfo *list, unsigned int count)
{
    return DRIVER(cuMemMapArrayAsync, CUarrayMapInfo *, unsigned int, CUstream)(list, count, NULL);
}

static CUresult map_one(CUarrayMapInfo info) { return map(&info, 1); }

static void test_tiles_hold_memory(void **state)
{
    (void)state;
    CUarray array = new_array(1024, 256, 0, CUDA_ARRAY3D_SPARSE); /* 8 x 2 tiles */
    assert_alive(0);
    CUmemGenericAllocationHandle handle = new_handle(2 * MIB);
    ok(map_one(row(array, 0, 0, 8, handle)));
    ok(map_one(row(array, 0, 1, 8, handle)));
    ok(release(handle));
    assert_alive(2 * MIB);
    ok(map_one(row(array, 0, 0, 8, 0)));
    ok(map_one(row(array, 0, 0, 8, 0))); /* there is nothing left there */
    ok(map_one(row(array, 0, 1, 3, 0))); /* other pieces than were mapped */
    ok(map_one(row(array, 4, 1, 4, 0)));
    assert_alive(2 * MIB);
    ok(map_one(row(array, 3, 1, 1, 0)));
    assert_alive(0);
    ok(end_array(array));
}

static void test_what_is_mapped_over_is_let_go(void **state)
{
    (void)state;
    CUarray array = new_array(1024, 128, 0, CUDA_ARRAY3D_SPARSE);
    CUmemGenericAllocationHandle one = new_handle(2 * MIB), two = new_handle(4 * MIB);
    ok(map_one(row(array, 0, 0, 8, one)));
    ok(release(one));
    ok(map_one(row(array, 0, 0, 7, two)));
    assert_alive(6 * MIB);
    CUarrayMapInfo list[] = {row(array, 7, 0, 1, two), row(array, 0, 0, 8, 0),
                             row(array, 2, 0, 1, two)};
    ok(map(list, 3)); /* one goes with its last tile; of two, one tile stays */
    assert_alive(4 * MIB);
    ok(release(two));
    assert_alive(4 * MIB);
    ok(map_one(row(array, 2, 0, 1, 0)));
    assert_alive(0);
    ok(end_array(array));
}

static void test_an_array_lets_go(void **state)
{
    (void)state;
    CUarray array = new_array(512, 512, 0, CUDA_ARRAY3D_SPARSE), other;
    CUmemGenericAllocationHandle handle = new_handle(2 * MIB);
    other = new_array(512, 512, 0, CUDA_ARRAY3D_SPARSE);
    ok(map_one(row(array, 0, 2, 4, handle)));
    ok(map_one(row(other, 1, 2, 1, handle)));
    ok(release(handle));
    ok(end_array(array));
    assert_alive(2 * MIB);
    ok(end_array(other));
    assert_alive(0);
}

static void test_levels_layers_and_tails(void **state)
{
    (void)state;
    CUmipmappedArray mipmap = new_mipmap(512, 512, 3, 6); /* 512, 256, 128; the rest is tail */
    CUDA_ARRAY_SPARSE_PROPERTIES properties;
    CUmemGenericAllocationHandle handle = new_handle(2 * MIB);
    ok(DRIVER(cuMipmappedArrayGetSparseProperties, CUDA_ARRAY_SPARSE_PROPERTIES *,
              CUmipmappedArray)(&properties, mipmap));
    assert_int_equal(properties.tileExtent.width, TILE);
    assert_int_equal(properties.miptailFirstLevel, 3);
    assert_int_equal(properties.miptailSize, TILE_BYTES);
    CUarrayMapInfo level = row(NULL, 1, 0, 1, handle);
    level.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    level.resource.mipmap = mipmap;
    for (unsigned int layer = 0; layer < 3; layer++) {
        level.subresource.sparseLevel.layer = layer;
        level.subresource.sparseLevel.level = layer % 2;
        ok(map_one(level));
        ok(map_one(tail(mipmap, layer, 0, TILE_BYTES, handle)));
    }
    ok(release(handle));
    level.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP, level.memHandle.memHandle = 0;
    for (unsigned int layer = 0; layer < 3; layer++) {
        assert_alive(2 * MIB);
        ok(map_one(tail(mipmap, layer, 0, TILE_BYTES, 0)));
        assert_alive(2 * MIB);
        level.subresource.sparseLevel.layer = layer;
        level.subresource.sparseLevel.level = layer % 2;
        ok(map_one(level));
    }
    assert_alive(0);
    ok(end_mipmap(mipmap));
}

static void test_depth(void **state)
{
    (void)state;
    CUarray array = new_array(64, 64, 32, CUDA_ARRAY3D_SPARSE); /* tiles of 32 x 32 x 16 */
    CUmemGenericAllocationHandle handle = new_handle(2 * MIB);
    CUarrayMapInfo info = row(array, 0, 0, 1, handle);
    info.subresource.sparseLevel.extentWidth = info.subresource.sparseLevel.extentHeight = 64;
    info.subresource.sparseLevel.extentDepth = 32;
    ok(map_one(info));
    ok(release(handle));
    info.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP, info.memHandle.memHandle = 0;
    info.subresource.sparseLevel.extentDepth = 16;
    ok(map_one(info));
    assert_alive(2 * MIB);
    info.subresource.sparseLevel.offsetZ = 16;
    ok(map_one(info));
    assert_alive(0);
    ok(end_array(array));
}

static void test_deferred_mapping(void **state)
{
    (void)state;
    CUarray array = new_array(512, 512, 0, CUDA_ARRAY3D_DEFERRED_MAPPING);
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
    assert_alive(0);
    ok(DRIVER(cuArrayGetMemoryRequirements, CUDA_ARRAY_MEMORY_REQUIREMENTS *, CUarray,
              CUdevice)(&needs, array, 0));
    assert_int_equal(needs.size, MIB);
    CUmemGenericAllocationHandle handle = new_handle(2 * MIB);
    CUarrayMapInfo info = row(array, 77, 99, 1, handle); /* what part is meant is ignored */
    ok(map_one(info));
    ok(release(handle));
    assert_alive(2 * MIB);
    CUarrayMapInfo whole = row(array, 0, 0, 1, 0);
    ok(DRIVER(cuMemMapArrayAsync_ptsz, CUarrayMapInfo *, unsigned int, CUstream)(&whole, 1, NULL));
    assert_alive(0);
    ok(end_array(array));
}

/* What the driver refuses holds nothing, whatever it was. */
static void test_refusals(void **state)
{
    (void)state;
    CUarray array = new_array(512, 512, 0, CUDA_ARRAY3D_SPARSE), plain;
    plain = new_array(256, 256, 0, 0);
    CUmemGenericAllocationHandle handle = new_handle(2 * MIB);
    CUarrayMapInfo list[] = {row(array, 0, 0, 4, handle), row(array, 3, 0, 2, handle)};
    assert_int_equal(map(list, 2), CUDA_ERROR_INVALID_VALUE); /* beyond the edge */
    list[1] = row(plain, 0, 0, 1, handle);
    assert_int_equal(map(list, 2), CUDA_ERROR_INVALID_VALUE); /* not a sparse array */
    list[1] = row((CUarray)context, 0, 0, 1, handle);
    assert_int_equal(map(list, 2), CUDA_ERROR_INVALID_HANDLE);
    list[1] = row(array, 0, 0, 1, 0xdead);
    assert_int_equal(map(list, 2), CUDA_ERROR_INVALID_VALUE);
    list[1] = row(array, 0, 0, 1, handle);
    list[1].memOperationType = 7;
    assert_int_equal(map(list, 2), CUDA_ERROR_INVALID_VALUE);
    ok(end_array(plain));
    assert_alive(2 * MIB);
    ok(release(handle));
    assert_alive(0);
    ok(end_array(array));
}

static void test_the_end_of_a_context(void **state)
{
    (void)state;
    CUarray array = new_array(1024, 1024, 0, CUDA_ARRAY3D_SPARSE);
    CUmipmappedArray mipmap = new_mipmap(512, 512, 0, 10);
    CUmemGenericAllocationHandle one = new_handle(4 * MIB), two = new_handle(2 * MIB);
    for (unsigned int y = 0; y < 8; y++)
        ok(map_one(row(array, 0, y, 8, one)));
    ok(map_one(tail(mipmap, 0, 0, TILE_BYTES, two)));
    ok(release(one));
    ok(release(two));
    assert_alive(6 * MIB);
    ok(DRIVER(cuCtxDestroy_v2, CUcontext)(context));
    ok(DRIVER(cuCtxCreate_v2, CUcontext *, unsigned int, CUdevice)(&context, 0, 0));
    assert_alive(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiles_hold_memory),
        cmocka_unit_test(test_what_is_mapped_over_is_let_go),
        cmocka_unit_test(test_an_array_lets_go),
        cmocka_unit_test(test_levels_layers_and_tails),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_deferred_mapping),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_the_end_of_a_context),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
