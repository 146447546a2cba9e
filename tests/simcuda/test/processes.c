/* processes.c -- cards shared between processes: capacity, the referee, kill -9, exec, IPC.
 *
 * The parent never initialises the driver; its children, one at a time forked, do.
 */
#include "client.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
    pid_t pid;
    int to, from;
};

static int load(void **state)
{
    (void)state;
    client_load();
    return 0;
}

/* A child that runs `work`; both ends talk by bytes. */
static struct child run(void (*work)(int in, int out))
{
    int to[2], from[2];

    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    struct child child = {fork(), to[1], from[0]};
    if (child.pid == 0) {
        close(to[1]);
        close(from[0]);
        client_start(NULL);
        work(to[0], from[1]);
        _exit(0);
    }
    close(to[0]);
    close(from[1]);
    return child;
}

static void hear(int fd, void *data, size_t bytes)
{
    assert_int_equal(read(fd, data, bytes), (ssize_t)bytes);
}

static void say(int fd, const void *data, size_t bytes)
{
    assert_int_equal(write(fd, data, bytes), (ssize_t)bytes);
}

static int finish(struct child *child)
{
    int status;

    close(child->to);
    close(child->from);
    waitpid(child->pid, &status, 0);
    return status;
}

static void hold_60_gib(int in, int out)
{
    CUdeviceptr address;
    int result = (int)cuda.cuMemAlloc_v2(&address, 60 * GIB);
    char byte;

    say(out, &result, sizeof result);
    (void)!read(in, &byte, 1); /* until the parent closes */
}

static void test_capacity(void **state)
{
    int result;

    (void)state;
    struct child one = run(hold_60_gib);
    hear(one.from, &result, sizeof result);
    assert_int_equal(result, CUDA_SUCCESS);
    struct child two = run(hold_60_gib);
    hear(two.from, &result, sizeof result);
    assert_int_equal(result, CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuda.live_bytes(CARD_OF_DEVICE_0, SIMCUDA_ALL_PROCESSES), 60 * GIB);
    assert_int_equal(cuda.live_bytes(CARD_OF_DEVICE_0, one.pid), 60 * GIB);
    assert_int_equal(cuda.live_bytes(CARD_OF_DEVICE_0, two.pid), 0);
    assert_int_equal(cuda.context_bytes(CARD_OF_DEVICE_0, 0), 2 * (uint64_t)CONTEXT_BYTES);
    assert_int_equal(finish(&two), 0);
    kill(one.pid, SIGKILL);
    finish(&one);
    assert_int_equal(cuda.live_bytes(CARD_OF_DEVICE_0, 0), 0);
    struct child three = run(hold_60_gib);
    hear(three.from, &result, sizeof result);
    assert_int_equal(result, CUDA_SUCCESS);
    assert_int_equal(finish(&three), 0);
}

/* A zombie holds nothing. */
static void test_zombie(void **state)
{
    int result;

    (void)state;
    struct child child = run(hold_60_gib);
    hear(child.from, &result, sizeof result);
    kill(child.pid, SIGKILL);
    siginfo_t info;
    waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT);
    assert_int_equal(cuda.live_bytes(CARD_OF_DEVICE_0, 0), 0);
    finish(&child);
}

static void start_and_stop(int in, int out)
{
    CUdeviceptr address;

    (void)in, (void)out;
    for (int i = 0; i < 200; i++) {
        ok(cuda.cuMemAlloc_v2(&address, MIB));
        ok(cuda.cuMemFree_v2(address));
    }
}

static void test_concurrent_starts(void **state)
{
    enum { CHILDREN = 16 };
    struct child children[CHILDREN];

    (void)state;
    for (int i = 0; i < CHILDREN; i++)
        children[i] = run(start_and_stop);
    for (int i = 0; i < CHILDREN; i++)
        assert_int_equal(finish(&children[i]), 0);
    assert_int_equal(cuda.live_bytes(CARD_OF_DEVICE_0, 0), 0);
}

static void export_memory(int in, int out)
{
    static const size_t sizes[] = {100, 4 * MIB};

    for (size_t i = 0; i < 2; i++) {
        CUdeviceptr address;
        struct ipc_handle handle;
        char byte;
        ok(cuda.cuMemAlloc_v2(&address, sizes[i]));
        ok(cuda.cuMemsetD8_v2(address, 42, sizes[i]));
        ok(cuda.cuIpcGetMemHandle(&handle, address));
        fails(CUDA_ERROR_INVALID_CONTEXT, cuda.cuIpcOpenMemHandle_v2(&address, handle, 0));
        say(out, &handle, sizeof handle);
        hear(in, &byte, 1);
        ok(cuda.cuMemcpyDtoH_v2(&byte, address, 1));
        assert_int_equal(byte, 43); /* the importer's */
        ok(cuda.cuMemFree_v2(address));
    }
    say(out, "", 1);
}

static void import_memory(int in, int out)
{
    for (size_t i = 0; i < 2; i++) {
        CUdeviceptr address;
        struct ipc_handle handle;
        char byte;
        hear(in, &handle, sizeof handle);
        ok(cuda.cuIpcOpenMemHandle_v2(&address, handle, 1));
        ok(cuda.cuMemcpyDtoH_v2(&byte, address, 1));
        assert_int_equal(byte, 42);
        assert_int_equal(client_live(), 0); /* counts for the exporter */
        ok(cuda.cuMemsetD8_v2(address, 43, 1));
        ok(cuda.cuIpcCloseMemHandle(address));
        say(out, &byte, 1);
    }
}

static void test_ipc(void **state)
{
    struct child exporter = run(export_memory), importer = run(import_memory);

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct ipc_handle handle;
        char byte;
        hear(exporter.from, &handle, sizeof handle);
        say(importer.to, &handle, sizeof handle);
        hear(importer.from, &byte, 1);
        say(exporter.to, &byte, 1);
    }
    char byte;
    hear(exporter.from, &byte, 1);
    assert_int_equal(finish(&importer), 0);
    assert_int_equal(finish(&exporter), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_zombie),
        cmocka_unit_test(test_concurrent_starts),
        cmocka_unit_test(test_ipc),
    };

    return cmocka_run_group_tests(tests, load, NULL);
}
