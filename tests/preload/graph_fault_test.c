/* graph_fault_test.c -- graph memory where the driver's calls fail, or take more than was foreseen.
 *
 *   graph_fault_test         runs itself with "steps", once for each call that may fail
 *   graph_fault_test steps   one life of a graph, each call made again until it succeeds
 *   graph_fault_test grows   for SIMCUDA_GRAPH_CHUNK=128MiB: the reserve grows by more than
 * foreseen
 */
#include "graph_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *self;

/* One life of a graph. */
enum { INJECTED = 999 };

static int injected;

/* Where what is reserved could not be read, or trimmed, the last figure stands, and may refuse
 * once. */
static int may_be_refused(CUresult rc)
{
    static int refusals;
    const char *fail = getenv("SIMCUDA_FAIL");
    return rc == CUDA_ERROR_OUT_OF_MEMORY && fail && strncmp(fail, "cuDeviceG", 9) == 0 &&
           refusals++ == 0;
}

static void until(CUresult rc, int line)
{
    if (rc == CUDA_SUCCESS && live() <= CAP)
        return;
    printf("line %d: %d with %llu bytes alive\n", line, (int)rc, (unsigned long long)live());
    _exit(1);
}

#define UNTIL_IT_WORKS(call)                                                                       \
    do {                                                                                           \
        CUresult rc;                                                                               \
        while ((rc = (call)) == (CUresult)INJECTED || may_be_refused(rc))                          \
            injected++;                                                                            \
        until(rc, __LINE__);                                                                       \
    } while (0)

static int steps(void)
{
    struct instantiate_params params = {.flags = FLAG_UPLOAD, .upload_stream = stream};
    struct update_info info;
    CUdeviceptr address, other;
    CUgraph graph = graph_of(ADD_ALLOC_NODE, 40 * MIB, &address);
    CUgraph freeing = graph_that_frees(stream, 2, 20 * MIB, 1), update;
    CUgraphExec exec, frees;
    UNTIL_IT_WORKS(cuda.cuGraphInstantiateWithFlags(&exec, graph, 0));
    UNTIL_IT_WORKS(cuda.cuGraphUpload(exec, stream));
    UNTIL_IT_WORKS(cuda.cuGraphLaunch(exec, stream));
    UNTIL_IT_WORKS(cuda.cuMemFree_v2(address));
    UNTIL_IT_WORKS(cuda.cuGraphLaunch(exec, stream));
    UNTIL_IT_WORKS(cuda.cuGraphInstantiateWithParams(&frees, freeing, &params));
    UNTIL_IT_WORKS(cuda.cuGraphLaunch(frees, stream));
    UNTIL_IT_WORKS(cuda.cuMemFreeAsync(address, stream));
    UNTIL_IT_WORKS(cuda.cuMemAlloc_v2(&other, 120 * MIB)); /* what is idle gives way */
    UNTIL_IT_WORKS(cuda.cuMemFree_v2(other));
    ok(cuda.cuGraphExecDestroy(frees));
    update = graph_that_frees(stream, 1, 20 * MIB, 0);
    UNTIL_IT_WORKS(cuda.cuGraphInstantiate_v2(&frees, freeing, NULL, NULL, 0));
    if (cuda.cuGraphExecUpdate_v2(frees, update, &info) == CUDA_SUCCESS)
        return 3; /* of another shape */
    UNTIL_IT_WORKS(cuda.cuGraphExecDestroy(exec));
    UNTIL_IT_WORKS(cuda.cuGraphExecDestroy(frees));
    UNTIL_IT_WORKS(cuda.cuDeviceGraphMemTrim(0));
    if (live() != 0 || held() != 0) {
        printf("%llu bytes alive, %llu held\n", (unsigned long long)live(),
               (unsigned long long)held());
        return 1;
    }
    ok(cuda.cuGraphDestroy(graph));
    ok(cuda.cuGraphDestroy(freeing));
    ok(cuda.cuGraphDestroy(update));
    return 0;
}

static int run_steps(const char *call, int n)
{
    char fail[128];
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        snprintf(fail, sizeof fail, "%s:%d:%d", call, n, INJECTED);
        setenv("SIMCUDA_FAIL", fail, 1);
        setenv("SIMCUDA_STATE", getenv("STEPS_STATE"), 1);
        execl(self, self, "steps", (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Whichever call of the driver fails, nothing is lost, and its error is the answer. */
static void survives_failures(void **state)
{
    (void)state;
    static const struct {
        const char *call;
        int first, last; /* which of its calls */
    } rows[] = {
        {"cuGraphGetNodes", 1, 8},
        {"cuGraphNodeGetType", 1, 12},
        {"cuGraphMemAllocNodeGetParams", 1, 8},
        {"cuGraphMemFreeNodeGetParams", 1, 6},
        {"cuDeviceGetGraphMemAttribute", 1, 24},
        {"cuDeviceGraphMemTrim", 1, 3},
        {"cuGraphLaunch", 1, 4},
        {"cuGraphUpload", 1, 2},
        {"cuGraphInstantiateWithFlags", 1, 2},
        {"cuGraphInstantiateWithParams", 1, 2},
        {"cuGraphInstantiate_v2", 1, 2},
        {"cuGraphExecUpdate_v2", 1, 1},
        {"cuGraphExecDestroy", 2, 3}, /* the first is the test's own */
        {"cuMemFree_v2", 1, 3},
        {"cuMemFreeAsync", 3, 3}, /* others are captured */
        {"cuMemAlloc_v2", 1, 2},
        {"cuThreadExchangeStreamCaptureMode", 1, 24},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int n = rows[i].first; n <= rows[i].last; n++) {
            int status = run_steps(rows[i].call, n);
            if (status != 0)
                fail_msg("%s:%d: %d", rows[i].call, n, status);
        }
    }
}

/* An upload, or an instantiation that uploads, is undone; a launch runs, and stays charged. */
static void undoes_what_it_can(void **state)
{
    (void)state;
    struct instantiate_params params = {.flags = FLAG_UPLOAD, .upload_stream = stream};
    CUdeviceptr rest = linear(CHUNK_MIB * MIB), more;
    CUgraph graph = graph_that_frees(stream, 1, MIB, 0);
    CUgraphExec exec = NULL;
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuGraphInstantiateWithParams(&exec, graph, &params));
    assert_int_equal(live(), CHUNK_MIB * MIB);
    exec = executable(graph, 0); /* the one that was undone is not in its way */
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuGraphUpload(exec, stream));
    assert_int_equal(live(), CHUNK_MIB * MIB);
    assert_int_equal(held(), live());
    ok(cuda.cuMemFree_v2(rest));
    ok(cuda.cuGraphUpload(exec, stream));
    assert_int_equal(live(), CAP);
    destroy(exec);
    CUdeviceptr address;
    exec = executable(graph_of(ADD_NODE, MIB, &address), 0);
    ok(cuda.cuDeviceGraphMemTrim(0));
    rest = linear(CHUNK_MIB * MIB);
    ok(cuda.cuGraphLaunch(exec, stream)); /* it runs */
    assert_int_equal(held(), CAP);
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuda.cuMemAlloc_v2(&more, 1));
    ok(cuda.cuMemFree_v2(address));
    ok(cuda.cuMemFree_v2(rest));
    destroy(exec);
    nothing_is_left();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest failures[] = {cmocka_unit_test(survives_failures)};
    const struct CMUnitTest growth[] = {cmocka_unit_test(undoes_what_it_can)};
    self = argv[0];
    if (argc > 1 && strcmp(argv[1], "steps") == 0)
        return start(NULL) || steps();
    if (argc > 1 && strcmp(argv[1], "grows") == 0)
        return cmocka_run_group_tests(growth, start, NULL);
    return cmocka_run_group_tests(failures, NULL, NULL);
}
