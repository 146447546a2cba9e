/* sharing_test.c -- physical memory's handles: exports and imports, bindings, external memory,
 * mappings. What is alive by the referee is what is held.
 *
 *   sharing_test plain | shim | faults
 */
#include "holding.h"

#include <sys/mman.h>
#include <sys/socket.h>

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define wrap(handle) ((void *)(uintptr_t)(handle))

static CUdeviceptr space;

static CUmemGenericAllocationHandle create(size_t bytes)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes = FD,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle handle;
    must(cuda.cuMemCreate(&handle, bytes, &prop, 0));
    return handle;
}

static CUmemGenericAllocationHandle import_again(CUmemGenericAllocationHandle handle)
{
    CUmemGenericAllocationHandle import;
    int fd;
    must(cuda.cuMemExportToShareableHandle(&fd, handle, FD, 0));
    must(cuda.cuMemImportFromShareableHandle(&import, wrap(fd), FD));
    close(fd);
    return import;
}

/* References of both handles and mappings of both, let go in every order. */
static void test_import_of_ones_own(void **state)
{
    (void)state;
    for (int order = 0; order < 24; order++) {
        int left[4] = {0, 1, 2, 3};
        CUmemGenericAllocationHandle own = create(4 * PART), import = import_again(own);
        must(cuda.cuMemMap(space, 4 * PART, 0, own, 0));
        must(cuda.cuMemMap(space + 4 * PART, 4 * PART, 0, import, 0));
        for (int n = 4, code = order; n > 0; code /= n, n--) {
            const int pick = code % n, what = left[pick];
            check(4 * PART, 0);
            left[pick] = left[n - 1];
            if (what < 2)
                must(cuda.cuMemRelease(what ? import : own));
            else
                must(cuda.cuMemUnmap(space + (what == 3 ? 4 * PART : 0), 4 * PART));
        }
        check(0, 0);
    }
}

/* The documented slack: exported memory is charged until imports that may be it are gone. */
static void test_slack(void **state)
{
    (void)state;
    CUmemGenericAllocationHandle one = create(4 * PART), other = create(8 * PART);
    CUmemGenericAllocationHandle import = import_again(one), second = import_again(one);
    CUmemGenericAllocationHandle never = create(16 * PART);
    CUmemGenericAllocationHandle late = import_again(other);
    check(28 * PART, 0);
    must(cuda.cuMemRelease(never)); /* never exported */
    check(12 * PART, 0);
    must(cuda.cuMemRelease(late));
    must(cuda.cuMemRelease(other));
    check(4 * PART, 8 * PART);
    must(cuda.cuMemRelease(one));
    must(cuda.cuMemRelease(import));
    check(4 * PART, 8 * PART);
    must(cuda.cuMemRelease(second));
    check(0, 0);
}

/* Released and kept by an import, memory counts against the cap. */
static void test_cap(void **state)
{
    CUmemGenericAllocationHandle imports[64];
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes = FD,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle handle;
    int count = 0;
    (void)state;
    while (count < 64 && cuda.cuMemCreate(&handle, 16 * PART, &prop, 0) == CUDA_SUCCESS) {
        imports[count++] = import_again(handle);
        ok(cuda.cuMemRelease(handle));
    }
    assert_int_equal(count, shim ? CAP / (16 * PART) : 64);
    for (int i = 0; i < count; i++)
        ok(cuda.cuMemRelease(imports[i]));
    check(0, 0);
}

/* Another process's memory, before this one has exported any: it costs nothing and holds nothing.
 */
static int lender[2];
static void lend(void)
{
    char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    int fd;
    client_load();
    if (cuda.cuInit(0) != CUDA_SUCCESS)
        _exit(1);
    ok(cuda.cuMemExportToShareableHandle(&fd, create(4 * PART), FD, 0));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    sendmsg(lender[1], &message, 0);
    while (read(lender[1], &byte, 1) == 1)
        continue;
    _exit(0);
}

static int borrow(void)
{
    char control[CMSG_SPACE(sizeof(int))], byte;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    int fd;
    assert_int_equal(recvmsg(lender[0], &message, 0), 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static void test_others_memory(void **state)
{
    CUmemGenericAllocationHandle foreign;
    const int fd = borrow();
    (void)state;
    ok(cuda.cuMemImportFromShareableHandle(&foreign, wrap(fd), FD));
    close(fd);
    check(0, 0);
    CUmemGenericAllocationHandle own = create(8 * PART), import = import_again(own);
    ok(cuda.cuMemMap(space, 4 * PART, 0, foreign, 0));
    ok(cuda.cuMemRelease(own));
    check(8 * PART, 0);
    ok(cuda.cuMemRelease(import));
    check(0, 0); /* while the other process's is still here */
    ok(cuda.cuMemRelease(foreign));
    ok(cuda.cuMemUnmap(space, 4 * PART));
    check(0, 0);
}

/* A pool and a pointer of it, exported and imported in one process: charged once, given back once.
 */
static void test_pool(void **state)
{
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .handleTypes = FD,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    struct pool_pointer pointer;
    CUmemoryPool pool, import;
    CUdeviceptr address, again, refused;
    int fd;
    (void)state;
    must(cuda.cuMemPoolCreate(&pool, &props));
    must(cuda.cuMemAllocFromPoolAsync(&address, 5 * PART, pool, NULL));
    check(32 * MIB, 0);
    must(cuda.cuMemPoolExportToShareableHandle(&fd, pool, FD, 0));
    must(cuda.cuMemPoolImportFromShareableHandle(&import, wrap(fd), FD, 0));
    close(fd);
    must(cuda.cuMemPoolExportPointer(&pointer, address));
    for (int way = 0; way < 2; way++) {
        must(cuda.cuMemPoolImportPointer(&again, import, &pointer));
        check(32 * MIB, 0);
        if (way)
            must(cuda.cuMemFree_v2(again));
        else
            must(cuda.cuMemFreeAsync(again, NULL));
        check(32 * MIB, 0);
    }
    refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuMemAllocFromPoolAsync(&refused, 4096, import, NULL));
    refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuDeviceSetMemPool(0, import));
    must(cuda.cuMemPoolDestroy(import));
    must(cuda.cuMemFreeAsync(address, NULL));
    check(32 * MIB, 0);
    must(cuda.cuMemPoolDestroy(pool));
    check(0, 0);
}

static CUmemGenericAllocationHandle multicast(size_t bytes)
{
    const CUmulticastObjectProp prop = {.numDevices = 1, .size = bytes};
    CUmemGenericAllocationHandle object;
    must(cuda.cuMulticastCreate(&object, &prop));
    must(cuda.cuMulticastAddDevice(object, 0));
    check(live(), 0);
    return object;
}

/* Bound memory lives by its binding; what is bound goes with the object; the object's own handle
 * disturbs nothing. */
static void test_multicast(void **state)
{
    (void)state;
    CUmemGenericAllocationHandle object = multicast(16 * PART), again;
    CUmemGenericAllocationHandle one = create(4 * PART), other = create(8 * PART);
    must(cuda.cuMulticastBindMem(object, 0, one, 0, 2 * PART, 0));
    must(cuda.cuMulticastBindMem(object, 2 * PART, one, 2 * PART, 2 * PART, 0));
    must(cuda.cuMemMap(space, 8 * PART, 0, other, 0));
    must(cuda.cuMulticastBindAddr(object, 4 * PART, space + 4 * PART, 4 * PART, 0));
    must(cuda.cuMemRelease(one));
    must(cuda.cuMemRelease(other));
    must(cuda.cuMemUnmap(space, 8 * PART));
    check(12 * PART, 0);
    must(cuda.cuMulticastUnbind(object, 0, 0, 2 * PART));
    check(12 * PART, 0);
    refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuMulticastUnbind(object, 0, 0, 2 * PART));
    must(cuda.cuMulticastUnbind(object, 0, 2 * PART, 2 * PART));
    check(8 * PART, 0);
    must(cuda.cuMemMap(space, 16 * PART, 0, object, 0));
    must(cuda.cuMemRetainAllocationHandle(&again, wrap(space)));
    assert_int_equal(again, object);
    must(cuda.cuMemRelease(object));
    must(cuda.cuMemRelease(again));
    check(8 * PART, 0);
    must(cuda.cuMemUnmap(space, 16 * PART));
    check(0, 0);
}

/* External memory is its maker's, unless that is this process. */
static void test_external(void **state)
{
    struct external_memory from = {.type = 1, .bytes = 4 * PART};
    const struct external_buffer buffer = {.bytes = 4 * PART};
    CUexternalMemory memory;
    CUdeviceptr address;
    (void)state;
    from.from.fd = memfd_create("another API's", 0);
    ok(ftruncate(from.from.fd, 4 * PART) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS);
    must(cuda.cuImportExternalMemory(&memory, &from));
    must(cuda.cuExternalMemoryGetMappedBuffer(&address, memory, &buffer));
    check(0, 0);
    must(cuda.cuMemFree_v2(address));
    must(cuda.cuDestroyExternalMemory(memory));
    CUmemGenericAllocationHandle own = create(4 * PART);
    must(cuda.cuMemExportToShareableHandle(&from.from.fd, own, FD, 0));
    must(cuda.cuImportExternalMemory(&memory, &from));
    must(cuda.cuMemRelease(own));
    check(4 * PART, 0);
    must(cuda.cuExternalMemoryGetMappedBuffer(&address, memory, &buffer));
    must(cuda.cuMemFree_v2(address));
    must(cuda.cuDestroyExternalMemory(memory));
    check(0, 0);
}

/* cuMemCreate: host memory is free, flags pass, wrong sizes leak nothing, no context is needed. */
static void test_create(void **state)
{
    static const CUmemLocationType hosts[] = {CU_MEM_LOCATION_TYPE_HOST,
                                              CU_MEM_LOCATION_TYPE_HOST_NUMA,
                                              CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT};
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED}, made;
    CUmemGenericAllocationHandle handle;
    CUcontext popped;
    (void)state;
    for (int i = 0; i < 3; i++) {
        prop.location.type = hosts[i];
        must(cuda.cuMemCreate(&handle, CAP + PART, &prop, 0));
        check(0, 0);
        must(cuda.cuMemRelease(handle));
    }
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuMemCreate(&handle, PART + 4096, &prop, 0));
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    refuses(CUDA_ERROR_NOT_SUPPORTED, cuda.cuMemCreate(&handle, PART, &prop, 0));
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    check(0, 0);
    prop.allocFlags.compressionType = 1;
    prop.allocFlags.gpuDirectRDMACapable = 1;
    ok(cuda.cuCtxPopCurrent_v2(&popped));
    must(cuda.cuMemCreate(&handle, 4 * PART, &prop, 0));
    ok(cuda.cuCtxPushCurrent_v2(popped));
    check(4 * PART, 0);
    must(cuda.cuMemGetAllocationPropertiesFromHandle(&made, handle));
    assert_memory_equal(&made, &prop, sizeof made);
    must(cuda.cuMemRelease(handle));
    check(0, 0);
}

/* Parts of a handle, the same part twice, one unmapping for 40 neighbours, and mapping again. */
static void test_mappings(void **state)
{
    enum { PARTS = 40 };
    (void)state;
    CUmemGenericAllocationHandle handle = create(8 * PART), other = create(4 * PART);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < PARTS; i++)
            must(cuda.cuMemMap(space + (CUdeviceptr)i * PART, PART, (size_t)(i % 4) * PART,
                               i % 2 ? other : handle, 0));
        check(12 * PART, 0);
        refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuMemUnmap(space, PARTS * PART - 4096));
        if (round == 1) {
            must(cuda.cuMemRelease(handle));
            must(cuda.cuMemRelease(other));
            refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuMemRelease(handle)); /* mapped, but not ours */
        }
        must(cuda.cuMemUnmap(space, 2 * PART));
        check(12 * PART, 0);
        must(cuda.cuMemUnmap(space + 2 * PART, (PARTS - 2) * PART));
        check(round ? 0 : 12 * PART, 0);
    }
}

/* Memory of the host, which is not counted, beside memory of the device: unmapped by one call. */
static void test_host_neighbour(void **state)
{
    CUmemGenericAllocationHandle host;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_HOST, 0}};
    (void)state;
    for (int host_first = 0; host_first < 2; host_first++) {
        CUmemGenericAllocationHandle handle = create(PART);
        must(cuda.cuMemCreate(&host, PART, &prop, 0));
        must(cuda.cuMemMap(space, PART, 0, host_first ? host : handle, 0));
        must(cuda.cuMemMap(space + PART, PART, 0, host_first ? handle : host, 0));
        must(cuda.cuMemRelease(handle));
        must(cuda.cuMemRelease(host));
        check(PART, 0);
        must(cuda.cuMemUnmap(space, 2 * PART));
        check(0, 0);
    }
}

/* Null and wrong arguments: the same answers with and without the shim. */
static void test_wrong_arguments(void **state)
{
    (void)state;
    refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuMulticastCreate(NULL, NULL));
    refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuMulticastBindMem(1, 0, 1, 0, PART, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuMulticastBindAddr(1, 0, 0, PART, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuMulticastUnbind(1, 0, 0, PART));
    refuses(CUDA_ERROR_INVALID_DEVICE, cuda.cuMulticastUnbind(1, 99, 0, PART));
    refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuMemExportToShareableHandle(NULL, 1, FD, 0));
    refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuMemImportFromShareableHandle(NULL, NULL, FD));
    refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuImportExternalMemory(NULL, NULL));
    refuses(CUDA_ERROR_INVALID_VALUE, cuda.cuDestroyExternalMemory(NULL));
    check(0, 0);
}

static int start(void **state)
{
    int failed = client_start(state);
    if (!failed && space == 0)
        must(cuda.cuMemAddressReserve(&space, 64 * PART, 0, 0, 0));
    return failed;
}

#define SHARED_TESTS                                                                               \
    cmocka_unit_test(test_import_of_ones_own), cmocka_unit_test(test_slack),                       \
        cmocka_unit_test(test_pool), cmocka_unit_test(test_multicast),                             \
        cmocka_unit_test(test_external), cmocka_unit_test(test_create),                            \
        cmocka_unit_test(test_mappings), cmocka_unit_test(test_host_neighbour)

static int run_all(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_others_memory), SHARED_TESTS,
                                       cmocka_unit_test(test_cap),
                                       cmocka_unit_test(test_wrong_arguments)};
    return cmocka_run_group_tests(tests, start, NULL);
}

static int run_shared(void)
{
    const struct CMUnitTest tests[] = {SHARED_TESTS};
    return cmocka_run_group_tests(tests, start, NULL);
}

/* What the hooks call, by themselves or for the program. */
static const char *const calls[] = {"cuMemCreate",
                                    "cuMemRelease",
                                    "cuMemMap",
                                    "cuMemUnmap",
                                    "cuMemRetainAllocationHandle",
                                    "cuMemExportToShareableHandle",
                                    "cuMemImportFromShareableHandle",
                                    "cuMemGetAllocationPropertiesFromHandle",
                                    "cuMulticastCreate",
                                    "cuMulticastBindMem",
                                    "cuMulticastBindAddr",
                                    "cuMulticastUnbind",
                                    "cuImportExternalMemory",
                                    "cuDestroyExternalMemory",
                                    "cuMemPoolCreate",
                                    "cuMemPoolDestroy",
                                    "cuMemPoolImportPointer",
                                    "cuMemFreeAsync",
                                    "cuMemFree_v2"};

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "plain";
    shim = strcmp(mode, "plain") != 0;
    if (strcmp(mode, "faults") == 0)
        return run_faults(run_shared, calls, sizeof calls / sizeof calls[0]);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, lender) != 0)
        return 2;
    fflush(NULL);
    if (fork() == 0) {
        close(lender[0]);
        lend();
    }
    close(lender[1]);
    return run_all();
}
