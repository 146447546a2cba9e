/* runtime.c -- an ordinary program of the CUDA runtime API, and what it must meet.
 *
 * Linked against one of NVIDIA's own runtimes; ctest runs it on the simulated driver plainly, which
 * shows that the double carries that runtime, and with the shim preloaded under runtime.conf, then
 * with the argument "shim", or "one-gpu" where devices_per_process = 1 is added. It must not know
 * how the shim works: only what a program and a person see.
 */
#define _GNU_SOURCE
#include "simcuda.h"

#include <cuda_runtime_api.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const size_t MIB = 1024 * 1024;
static const size_t CAP = 64 * 1024 * 1024; /* runtime.conf */
enum { GPUS = 4, GRANTED = 2, GRANULE_MIB = 2, CAP_GRANULES = 32 };
static const int granted[GRANTED] = {3, 1}; /* runtime.conf: physical index of each ordinal */

/* What was written to standard error during a test. */
static int saved_stderr;
static FILE *captured;

static int start_capture(void **state)
{
    (void)state;
    captured = tmpfile();
    saved_stderr = dup(STDERR_FILENO);
    return captured && dup2(fileno(captured), STDERR_FILENO) >= 0 ? 0 : -1;
}

/* Twice does no harm: a failing test wants to be heard before its teardown. */
static int end_capture(void **state)
{
    (void)state;
    if (!captured)
        return 0;
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    fclose(captured);
    captured = NULL;
    return 0;
}

/* Says why on the real standard error, whatever is captured, and fails. */
#define fail_loudly(...)                                                                           \
    do {                                                                                           \
        end_capture(NULL);                                                                         \
        fail_msg(__VA_ARGS__);                                                                     \
    } while (0)

#define assert_cuda(call, expected)                                                                \
    do {                                                                                           \
        cudaError_t got_ = (call);                                                                 \
        if (got_ != (expected))                                                                    \
            fail_loudly("%s: %d %s, expected %s", #call, (int)got_, cudaGetErrorString(got_),      \
                        cudaGetErrorString(expected));                                             \
    } while (0)
#define assert_works(call) assert_cuda(call, cudaSuccess)

/* Standard error holds exactly this many lines; the last of them, from the shim, says `words`. */
static void assert_said(size_t lines, const char *words)
{
    char text[4096] = "";
    ssize_t length = pread(fileno(captured), text, sizeof text - 1, 0);
    size_t count = 0;
    for (ssize_t i = 0; i < length; i++)
        count += text[i] == '\n';
    if (count != lines)
        fail_loudly("%zu lines on standard error, expected %zu:\n%s", count, lines, text);
    if (lines && (strncmp(text, "gpushim: ", 9) != 0 || !strstr(text, words)))
        fail_loudly("standard error lacks \"%s\":\n%s", words, text);
}

/* The referee: what the simulated driver itself holds for this process on a GPU, by PCI order. */
static uint64_t live_bytes(int gpu)
{
    static uint64_t (*ask)(int gpu, int pid);
    if (!ask) {
        void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
        assert_non_null(driver);
        ask = (uint64_t(*)(int, int))(uintptr_t)dlsym(driver, "simcuda_live_bytes");
        assert_non_null(ask);
    }
    return ask(gpu, SIMCUDA_THIS_PROCESS);
}

/* A simulated card's bus number says where it stands in PCI order (tests/simcuda/README.md). */
static void assert_is_physical(int ordinal, int gpu)
{
    char id[32], expected[32];
    snprintf(expected, sizeof expected, "0000:%02X:00.0", 4 + 2 * gpu);
    assert_works(cudaDeviceGetPCIBusId(id, sizeof id, ordinal));
    assert_string_equal(id, expected);
}

static void fresh(void)
{
    assert_works(cudaSetDevice(0));
    assert_works(cudaDeviceReset());
    cudaGetLastError();
}

/* --- plainly: the double carries the runtime -----------------------------------------------------
 */

static void sees_every_gpu(void **state)
{
    (void)state;
    int count = 0;
    assert_works(cudaGetDeviceCount(&count));
    assert_int_equal(count, GPUS);
    for (int i = 0; i < GPUS; i++) {
        struct cudaDeviceProp properties;
        assert_works(cudaGetDeviceProperties(&properties, i));
        assert_true(properties.totalGlobalMem > 20ULL * 1024 * MIB);
        assert_is_physical(i, i); /* CUDA_DEVICE_ORDER=PCI_BUS_ID, set by ctest */
    }
    assert_said(0, "");
}

static void carries_data(void **state)
{
    (void)state;
    fresh();
    char out[64] = "";
    const char in[64] = "through the device and back";
    void *memory = NULL;
    cudaStream_t stream;
    cudaEvent_t event;
    assert_works(cudaMalloc(&memory, sizeof in));
    assert_works(cudaStreamCreate(&stream));
    assert_works(cudaEventCreate(&event));
    assert_works(cudaMemcpyAsync(memory, in, sizeof in, cudaMemcpyHostToDevice, stream));
    assert_works(cudaEventRecord(event, stream));
    assert_works(cudaStreamSynchronize(stream));
    assert_works(cudaMemcpy(out, memory, sizeof out, cudaMemcpyDeviceToHost));
    assert_string_equal(out, in);
    assert_works(cudaEventDestroy(event));
    assert_works(cudaStreamDestroy(stream));
    assert_works(cudaFree(memory));
    assert_said(0, "");
}

static void runs_out_only_where_the_card_ends(void **state)
{
    (void)state;
    fresh();
    size_t free_bytes, total;
    void *memory = NULL;
    assert_works(cudaMemGetInfo(&free_bytes, &total));
    assert_true(free_bytes <= total && total > CAP);
    assert_cuda(cudaMalloc(&memory, total + MIB), cudaErrorMemoryAllocation);
    assert_works(cudaMalloc(&memory, 2 * CAP));
    assert_works(cudaFree(memory));
    assert_said(0, "");
}

static void refuses_an_ordinal_beyond_the_machine(void **state)
{
    (void)state;
    assert_cuda(cudaSetDevice(GPUS), cudaErrorInvalidDevice);
    assert_string_equal(cudaGetErrorString(cudaGetLastError()), "invalid device ordinal");
    assert_said(0, "");
}

/* --- both: every way to take memory gives it back
 * ------------------------------------------------- */

static void gives_back_what_was_taken(void **state)
{
    (void)state;
    fresh();
    int ordinal = 0, gpu = *state ? granted[0] : 0;
    void *linear = NULL, *pitched = NULL, *managed = NULL, *ordered = NULL;
    size_t pitch = 0;
    assert_works(cudaFree(NULL)); /* the context */
    uint64_t before = live_bytes(gpu);

    assert_works(cudaMalloc(&linear, 3 * MIB));
    assert_true(live_bytes(gpu) >= before + 3 * MIB);
    assert_works(cudaMallocPitch(&pitched, &pitch, 1000, 1024));
    assert_true(pitch >= 1000);
    assert_works(cudaMallocManaged(&managed, MIB, cudaMemAttachGlobal));
    assert_works(cudaFree(managed));
    assert_works(cudaFree(pitched));
    assert_works(cudaFree(linear));
    assert_int_equal(live_bytes(gpu), before);

    struct cudaChannelFormatDesc texel =
        cudaCreateChannelDesc(32, 32, 32, 32, cudaChannelFormatKindFloat);
    const struct cudaExtent block = {64, 64, 16}, square = {256, 256, 0};
    cudaArray_t flat = NULL, deep = NULL;
    cudaMipmappedArray_t mipmapped = NULL;
    assert_works(cudaMallocArray(&flat, &texel, 256, 256, 0));
    assert_true(live_bytes(gpu) >= before + MIB);
    assert_works(cudaMalloc3DArray(&deep, &texel, block, 0));
    assert_works(cudaMallocMipmappedArray(&mipmapped, &texel, square, 4, 0));
    assert_works(cudaFreeMipmappedArray(mipmapped));
    assert_works(cudaFreeArray(deep));
    assert_works(cudaFreeArray(flat));
    assert_int_equal(live_bytes(gpu), before);

    assert_works(cudaMallocAsync(&ordered, 3 * MIB, NULL));
    assert_true(live_bytes(gpu) >= before + 3 * MIB);
    assert_works(cudaFreeAsync(ordered, NULL));
    assert_works(cudaDeviceSynchronize());
    cudaMemPool_t pool;
    assert_works(cudaDeviceGetDefaultMemPool(&pool, ordinal));
    assert_works(cudaMemPoolTrimTo(pool, 0));
    assert_int_equal(live_bytes(gpu), before);
    assert_said(0, "");
}

enum { COPIED = 4096 };
static void *copied[GRANTED]; /* on devices 0 and 1 */

static void take_memory_on_two_gpus(void)
{
    for (int i = GRANTED - 1; i >= 0; i--) {
        assert_works(cudaSetDevice(i));
        assert_works(cudaMalloc(&copied[i], COPIED));
        assert_works(cudaMemset(copied[i], i + 1, COPIED));
    }
}

/* The first byte of a device's. */
static int byte_on(int device)
{
    unsigned char byte = 0;
    assert_works(cudaMemcpy(&byte, copied[device], 1, cudaMemcpyDeviceToHost));
    return byte;
}

static void give_memory_on_two_gpus(void)
{
    for (int i = 0; i < GRANTED; i++)
        assert_works(cudaFree(copied[i]));
}

/* Every call of the runtime that copies from device 0 to device 1, in turn. */
static cudaError_t copy_across(int which)
{
    const struct cudaMemcpy3DPeerParms rows = {.srcPtr = {copied[0], 64, 64, 1},
                                               .dstPtr = {copied[1], 64, 64, 1},
                                               .srcDevice = 0,
                                               .dstDevice = 1,
                                               .extent = {64, 1, 1}};
    switch (which) {
    case 0:
        return cudaMemcpyPeer(copied[1], 1, copied[0], 0, COPIED);
    case 1:
        return cudaMemcpyPeerAsync(copied[1], 1, copied[0], 0, COPIED, NULL);
    case 2:
        return cudaMemcpy(copied[1], copied[0], COPIED, cudaMemcpyDeviceToDevice);
    case 3:
        return cudaMemcpy(copied[1], copied[0], COPIED, cudaMemcpyDefault);
    case 4:
        return cudaMemcpyAsync(copied[1], copied[0], COPIED, cudaMemcpyDeviceToDevice, NULL);
    case 5:
        return cudaMemcpyAsync(copied[1], copied[0], COPIED, cudaMemcpyDefault, NULL);
    case 6:
        return cudaMemcpy2D(copied[1], 64, copied[0], 64, 64, 2, cudaMemcpyDeviceToDevice);
    case 7:
        return cudaMemcpy2DAsync(copied[1], 64, copied[0], 64, 64, 2, cudaMemcpyDefault, NULL);
    case 8:
        return cudaMemcpy3DPeer(&rows);
    default:
        return cudaMemcpy3DPeerAsync(&rows, NULL);
    }
}
enum { ACROSS = 10 };

static void copies_between_gpus(void **state)
{
    (void)state;
    take_memory_on_two_gpus();
    for (int i = 0; i < ACROSS; i++) {
        assert_works(cudaMemset(copied[1], 2, COPIED));
        assert_works(copy_across(i));
        assert_works(cudaDeviceSynchronize());
        assert_int_equal(byte_on(1), 1);
    }
    give_memory_on_two_gpus();
    assert_said(0, "");
}

/* --- under the shim
 * -------------------------------------------------------------------------------- */

static void sees_the_granted_gpus_in_order(void **state)
{
    (void)state;
    int count = 0;
    assert_works(cudaGetDeviceCount(&count));
    assert_int_equal(count, GRANTED);
    for (int i = 0; i < GRANTED; i++) {
        struct cudaDeviceProp properties;
        assert_works(cudaGetDeviceProperties(&properties, i));
        assert_int_equal(properties.totalGlobalMem, CAP);
        assert_is_physical(i, granted[i]);
    }
    assert_said(0, "");
}

static void is_told_memory_within_the_cap(void **state)
{
    (void)state;
    fresh();
    size_t free_bytes, total, free_after;
    void *memory = NULL;
    assert_works(cudaMemGetInfo(&free_bytes, &total));
    assert_int_equal(total, CAP);
    assert_true(free_bytes <= CAP);
    assert_works(cudaMalloc(&memory, 8 * MIB));
    assert_works(cudaMemGetInfo(&free_after, &total));
    assert_int_equal(free_bytes - free_after, 8 * MIB);
    assert_works(cudaFree(memory));
    assert_said(0, "");
}

/* First the line, which is written once a device; then exactness, which must hold in silence. */
static void is_refused_beyond_the_cap_and_goes_on(void **state)
{
    (void)state;
    fresh();
    void *memory = NULL;
    assert_cuda(cudaMalloc(&memory, CAP + 1), cudaErrorMemoryAllocation);
    assert_null(memory);
    assert_string_equal(cudaGetErrorString(cudaGetLastError()), "out of memory");
    assert_works(cudaMalloc(&memory, CAP / 2));
    assert_works(cudaFree(memory));
    assert_cuda(cudaMalloc(&memory, 2 * CAP), cudaErrorMemoryAllocation);
    assert_said(1, "64 MiB");
}

static void is_held_exactly_at_the_cap(void **state)
{
    (void)state;
    for (int ordinal = 0; ordinal < GRANTED; ordinal++) {
        void *memory[CAP_GRANULES] = {NULL}, *more = NULL;
        int taken = 0;
        assert_works(cudaSetDevice(ordinal));
        assert_works(cudaDeviceReset());
        assert_works(cudaFree(NULL));
        uint64_t before = live_bytes(granted[ordinal]);
        while (taken < CAP_GRANULES &&
               cudaMalloc(&memory[taken], (size_t)GRANULE_MIB * MIB) == cudaSuccess)
            taken++;
        assert_int_equal(taken, CAP_GRANULES);
        assert_int_equal(live_bytes(granted[ordinal]), before + CAP);
        assert_cuda(cudaMalloc(&more, 1), cudaErrorMemoryAllocation);
        assert_cuda(cudaMallocManaged(&more, MIB, cudaMemAttachGlobal), cudaErrorMemoryAllocation);
        assert_cuda(cudaMallocAsync(&more, MIB, NULL), cudaErrorMemoryAllocation);
        size_t pitch;
        assert_cuda(cudaMallocPitch(&more, &pitch, 1024, 1024), cudaErrorMemoryAllocation);
        assert_int_equal(live_bytes(granted[ordinal]), before + CAP);

        assert_works(cudaFree(memory[0]));
        assert_works(cudaMalloc(&memory[0], (size_t)GRANULE_MIB * MIB));
        cudaGetLastError();
        for (int i = 0; i < taken; i++)
            assert_works(cudaFree(memory[i]));
        assert_int_equal(live_bytes(granted[ordinal]), before);
    }
}

/* 16 bytes a texel: 2048 x 2048 is the whole cap. */
static void is_held_to_the_cap_with_arrays(void **state)
{
    (void)state;
    fresh();
    struct cudaChannelFormatDesc texel =
        cudaCreateChannelDesc(32, 32, 32, 32, cudaChannelFormatKindFloat);
    const struct cudaExtent over = {2048, 1024, 3}, square = {2048, 2048, 0};
    cudaArray_t array = NULL, more = NULL;
    cudaMipmappedArray_t mipmapped = NULL;
    assert_works(cudaFree(NULL));
    uint64_t before = live_bytes(granted[0]);
    assert_cuda(cudaMallocArray(&array, &texel, 2048, 2049, 0), cudaErrorMemoryAllocation);
    assert_cuda(cudaMalloc3DArray(&array, &texel, over, 0), cudaErrorMemoryAllocation);
    assert_cuda(cudaMalloc3DArray(&array, &texel, over, cudaArrayLayered),
                cudaErrorMemoryAllocation);
    assert_cuda(cudaMallocMipmappedArray(&mipmapped, &texel, square, 2, 0),
                cudaErrorMemoryAllocation);
    assert_int_equal(live_bytes(granted[0]), before);
    assert_works(cudaMallocArray(&array, &texel, 2048, 2048, 0));
    assert_int_equal(live_bytes(granted[0]), before + CAP);
    assert_cuda(cudaMallocArray(&more, &texel, 1, 1, 0), cudaErrorMemoryAllocation);
    assert_works(cudaFreeArray(array));
    cudaGetLastError();
}

/* A captured allocation takes memory when its graph is launched, and gives it back by a trim. */
static void is_capped_in_graphs(void **state)
{
    (void)state;
    fresh();
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *captured_memory = NULL, *more = NULL;
    uint64_t before = live_bytes(granted[0]);
    assert_works(cudaStreamCreate(&stream));
    assert_works(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    assert_works(cudaMallocAsync(&captured_memory, CAP, stream));
    assert_works(cudaStreamEndCapture(stream, &graph));
    assert_works(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    assert_works(cudaMalloc(&more, 1));
    assert_cuda(cudaGraphLaunch(exec, stream), cudaErrorMemoryAllocation);
    assert_works(cudaFree(more));
    cudaGetLastError();
    assert_works(cudaGraphLaunch(exec, stream));
    assert_int_equal(live_bytes(granted[0]), before + CAP);
    assert_works(cudaFree(captured_memory));
    assert_works(cudaGraphExecDestroy(exec));
    assert_works(cudaGraphDestroy(graph));
    assert_works(cudaDeviceGraphMemTrim(0));
    assert_int_equal(live_bytes(granted[0]), before);
    assert_works(cudaStreamDestroy(stream));
}

static void is_refunded_by_a_reset(void **state)
{
    (void)state;
    fresh();
    for (int round = 0; round < 3; round++) {
        struct cudaChannelFormatDesc texel =
            cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
        void *memory = NULL;
        cudaArray_t array = NULL;
        assert_works(cudaMalloc(&memory, CAP / 2));
        assert_works(cudaMallocArray(&array, &texel, 4096, 2048, 0)); /* the other half */
        assert_works(cudaDeviceReset());
    }
    assert_said(0, "");
}

/* A runtime linked statically has no cudaSetDevice that could be met by name: the driver's view
 * alone protects, and nobody explains. */
static void is_told_why_an_ordinal_is_not_there(void **state)
{
    (void)state;
    Dl_info info;
    assert_true(dladdr((void *)(uintptr_t)&cudaSetDevice, &info));
    bool linked_statically = strstr(info.dli_fname, "runtime.") != NULL;
    if (!linked_statically && !strstr(info.dli_fname, "libgpushim.so"))
        fail_loudly("cudaSetDevice is bound to %s", info.dli_fname);

    assert_cuda(cudaSetDevice(GRANTED), cudaErrorInvalidDevice);
    assert_cuda(cudaSetDevice(GRANTED), cudaErrorInvalidDevice);
    assert_cuda(cudaSetDevice(0), cudaSuccess);
    cudaGetLastError();
    assert_said(linked_statically ? 0 : 1, "cudaSetDevice");
    assert_string_equal(cudaGetErrorString(cudaErrorInvalidDevice), "invalid device ordinal");
}

static void leaves_the_error_to_be_read(void **state)
{
    (void)state;
    cudaGetLastError();
    assert_cuda(cudaSetDevice(GRANTED), cudaErrorInvalidDevice);
    assert_cuda(cudaGetLastError(), cudaErrorInvalidDevice);
    assert_cuda(cudaGetLastError(), cudaSuccess);
}

static void is_refused_peer_access(void **state)
{
    (void)state;
    fresh();
    int can = 1, value = 1;
    assert_works(cudaDeviceCanAccessPeer(&can, 0, 1));
    assert_int_equal(can, 0);
    assert_works(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 1));
    assert_int_equal(value, 0);
    assert_said(0, "");
    assert_cuda(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessUnsupported);
    assert_cuda(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessUnsupported);
    assert_said(1, "peer_access");
    cudaGetLastError();
}

/* Refused, explained once, and forgotten: nothing else is broken by it. */
static void is_refused_a_peer_copy(void **state)
{
    (void)state;
    fresh();
    take_memory_on_two_gpus();
    assert_cuda(cudaMemcpyPeer(copied[1], 1, copied[0], 0, COPIED), cudaErrorNotPermitted);
    assert_cuda(cudaMemcpyPeer(copied[1], 1, copied[0], 0, COPIED), cudaErrorNotPermitted);
    assert_said(1, "cross_device_copy = deny");
    assert_string_equal(cudaGetErrorString(cudaGetLastError()), "operation not permitted");
    assert_cuda(cudaGetLastError(), cudaSuccess);
    assert_works(cudaMemcpyPeer(copied[1], 1, (char *)copied[1] + 64, 1, 64));
    assert_works(cudaDeviceSynchronize());
    assert_int_equal(byte_on(1), 2);
    give_memory_on_two_gpus();
}

static void is_refused_every_copy_between_gpus(void **state)
{
    (void)state;
    take_memory_on_two_gpus();
    for (int i = 0; i < ACROSS; i++) {
        cudaError_t got = copy_across(i);
        if (got != cudaErrorNotPermitted)
            fail_loudly("copy %d: %s", i, cudaGetErrorString(got));
        assert_cuda(cudaGetLastError(), cudaErrorNotPermitted);
        assert_int_equal(byte_on(1), 2);
    }
    give_memory_on_two_gpus();
}

#define quiet(test) cmocka_unit_test_setup_teardown(test, start_capture, end_capture)

/* --- under devices_per_process = 1 --------------------------------------------------------------
 */

/* The driver's answer is 800; the runtime's word for a GPU that refuses a context is another. */
static void is_refused_a_second_gpu_and_goes_on(void **state)
{
    (void)state;
    void *memory = NULL;
    assert_works(cudaSetDevice(1));
    assert_works(cudaMalloc(&memory, MIB));
    cudaError_t first = cudaSetDevice(0); /* from 12 on it makes the context itself */
    if (first == cudaSuccess)
        first = cudaFree(0);
    assert_cuda(first, cudaErrorDevicesUnavailable);
    assert_said(1, "devices_per_process = 1");
    cudaGetLastError();
    assert_works(cudaSetDevice(1));
    assert_works(cudaFree(memory));
    assert_works(cudaMalloc(&memory, MIB));
    assert_int_equal(live_bytes(granted[0]), 0);
    assert_works(cudaFree(memory));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest plain[] = {
        quiet(sees_every_gpu),
        quiet(carries_data),
        quiet(runs_out_only_where_the_card_ends),
        quiet(refuses_an_ordinal_beyond_the_machine),
        quiet(gives_back_what_was_taken),
        quiet(copies_between_gpus),
    };
    static bool yes = true;
    const struct CMUnitTest shim[] = {
        quiet(sees_the_granted_gpus_in_order),
        quiet(carries_data),
        quiet(is_told_memory_within_the_cap),
        quiet(is_refused_beyond_the_cap_and_goes_on),
        quiet(is_held_exactly_at_the_cap),
        {"gives_back_what_was_taken", gives_back_what_was_taken, start_capture, end_capture, &yes},
        quiet(is_held_to_the_cap_with_arrays),
        quiet(is_capped_in_graphs),
        quiet(is_refunded_by_a_reset),
        quiet(is_told_why_an_ordinal_is_not_there),
        quiet(leaves_the_error_to_be_read),
        quiet(is_refused_peer_access),
        quiet(is_refused_a_peer_copy),
        quiet(is_refused_every_copy_between_gpus),
    };
    const struct CMUnitTest one_gpu[] = {
        quiet(is_refused_a_second_gpu_and_goes_on),
    };
    if (argc > 1 && strcmp(argv[1], "one-gpu") == 0)
        return cmocka_run_group_tests(one_gpu, NULL, NULL);
    if (argc > 1 && strcmp(argv[1], "shim") == 0)
        return cmocka_run_group_tests(shim, NULL, NULL);
    return cmocka_run_group_tests(plain, NULL, NULL);
}
