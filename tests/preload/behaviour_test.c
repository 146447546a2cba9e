/* behaviour_test.c -- what a program meets under a policy: a table of environments and steps
 * (probe.c), with the right standard output and standard error worked out by hand. "live" lines are
 * the referee's.
 *
 * Contexts take nothing here, unless a row says so: what they take is overhead_test.c's.
 * The machine: GPU 0 and 2 of 24 GiB, GPU 1 and 3 of 80 GiB and faster; CUDA's own order is 1, 3,
 * 0, 2.
 */
#include "cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VARIABLES_MAX = 8, OUTPUT_BYTES = 16384 };

struct run {
    const char *environment[VARIABLES_MAX]; /* NAME=value; NULL-terminated */
    const char *steps;                      /* separated by blanks */
    const char *out, *err;
};

static char state_variable[256];

static void read_back(const char *path, char *text)
{
    int fd = open(path, O_RDONLY);
    ssize_t length = read(fd, text, OUTPUT_BYTES - 1);
    text[length > 0 ? length : 0] = '\0';
    close(fd);
}

static void redirect(const char *path, int to)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    dup2(fd, to);
    close(fd);
}

/* By its bare name from its own folder, since LD_PRELOAD takes no path with spaces. */
static void preload(const char *shim)
{
    char name[256];
    char *folder = strdup(shim), *slash = strrchr(folder, '/');
    *slash = '\0';
    snprintf(name, sizeof name, "./%s", slash + 1);
    setenv("LD_PRELOAD", name, 1);
    if (chdir(folder) != 0)
        _exit(126);
    free(folder);
}

static void child(const struct run *run, const char *shim)
{
    char *arguments[64], *steps = strdup(run->steps);
    int count = 0;
    arguments[count++] = (char *)(uintptr_t) "probe";
    for (char *step = strtok(steps, " "); step && count < 63; step = strtok(NULL, " "))
        arguments[count++] = step;
    arguments[count] = NULL;
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("GPUSHIM_POLICY");
    unsetenv("GPUSHIM_CONF");
    setenv("LD_LIBRARY_PATH", SIM, 1);
    setenv("SIMCUDA_CONTEXT", "0", 1);
    preload(shim);
    putenv(state_variable);
    for (int i = 0; i < VARIABLES_MAX && run->environment[i]; i++)
        putenv(strdup(run->environment[i]));
    redirect(WORK_DIR "/out", STDOUT_FILENO);
    redirect(WORK_DIR "/err", STDERR_FILENO);
    execv(PROBE, arguments);
    _exit(127);
}

static void check_run(const struct run *run, const char *shim)
{
    static char out[OUTPUT_BYTES], err[OUTPUT_BYTES];
    int status;
    pid_t pid = fork();
    if (pid == 0)
        child(run, shim);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    read_back(WORK_DIR "/out", out);
    read_back(WORK_DIR "/err", err);
    if (strcmp(out, run->out) != 0 || strcmp(err, run->err) != 0)
        fail_msg("%s %s: %s\n--- printed:\n%s--- not:\n%s--- said:\n%s--- not:\n%s",
                 run->environment[0] ? run->environment[0] : "",
                 run->environment[0] && run->environment[1] ? run->environment[1] : "", run->steps,
                 out, run->out, err, run->err);
    assert_int_equal(status, 0);
}

#define CHECK_ALL(rows)                                                                            \
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows)[0]; i++)                                    \
    check_run(&(rows)[i], SHIM)

static void test_view(void **state)
{
    (void)state;
    static const struct run rows[] = {
        {{NULL},
         "init devices",
         "init: 0\ndevices: 0, 4\n  0 = GPU 1\n  1 = GPU 3\n  2 = GPU 0\n  3 = GPU 2\n",
         ""},
        {{"GPUSHIM_POLICY=devices=3,1"},
         "init devices",
         "init: 0\ndevices: 0, 2\n  0 = GPU 3\n  1 = GPU 1\n",
         ""},
        {{"GPUSHIM_POLICY=devices=0-3"},
         "init devices",
         "init: 0\ndevices: 0, 4\n  0 = GPU 0\n  1 = GPU 1\n  2 = GPU 2\n  3 = GPU 3\n",
         ""},
        {{"GPUSHIM_POLICY=devices=3,1", "CUDA_VISIBLE_DEVICES=1"},
         "init devices variable",
         "init: 0\ndevices: 0, 1\n  0 = GPU 1\nvariable: 1\n",
         ""},
        {{"GPUSHIM_POLICY=devices=3,1", "CUDA_VISIBLE_DEVICES=1,0", "CUDA_DEVICE_ORDER=PCI_BUS_ID"},
         "init devices",
         "init: 0\ndevices: 0, 2\n  0 = GPU 1\n  1 = GPU 3\n",
         ""},
        {{"GPUSHIM_POLICY=devices=3,1"}, "init variable", "init: 0\nvariable: (unset)\n", ""},
        {{"GPUSHIM_POLICY=devices=GPU-02"},
         "init devices",
         "init: 0\ndevices: 0, 1\n  0 = GPU 2\n",
         ""},
        {{"GPUSHIM_POLICY=devices=06:00.0"},
         "init devices",
         "init: 0\ndevices: 0, 1\n  0 = GPU 1\n",
         ""},
        {{"GPUSHIM_POLICY=devices=3,1", "CUDA_VISIBLE_DEVICES="}, "init", "init: 100\n", ""},
        {{"GPUSHIM_POLICY=devices=3,1", "CUDA_VISIBLE_DEVICES=2"},
         "init init",
         "init: 100\ninit: 100\n",
         ""},
        {{"GPUSHIM_POLICY=devices=none"},
         "init",
         "init: 100\n",
         "gpushim: no GPU for this process: [default] of GPUSHIM_POLICY:1 grants none\n"},
        {{"GPUSHIM_POLICY=devices=3,1"},
         "init get=1 get=2 get=2",
         "init: 0\nget: 0\nget: 101\nget: 101\n",
         "gpushim: cuDeviceGet(2): invalid device ordinal: this process sees 2 GPUs: 0 = GPU 3, 1 "
         "= GPU 1 of "
         "nvidia-smi ([default] of GPUSHIM_POLICY:1); use 0 to 1\n"},
        {{"GPUSHIM_POLICY=peer_access=deny"},
         "init get=7",
         "init: 0\nget: 101\n",
         ""}, /* no rule narrows the view */
    };
    CHECK_ALL(rows);
}

static void test_cap(void **state)
{
    (void)state;
    static const char line[] =
        "gpushim: cuMemAlloc of 2 MiB on GPU 3 refused, out of memory: this process holds 64 MiB "
        "of the 64 MiB that [default] of GPUSHIM_POLICY:2 allows; free memory, use less, or ask "
        "for a larger cap\n";
    static const struct run rows[] = {
        /* exact at the edge; one line; going on after freeing; the referee agrees */
        {{"GPUSHIM_POLICY=devices=3;memory=64MiB"},
         "init device=0 alloc=67108864 live=3 alloc=1048576 alloc=1048576 free alloc=67108864 "
         "live=3",
         "init: 0\ndevice: 0\nalloc: 0\nlive 3: 67108864\nalloc: 2\nalloc: 2\nfree: 0\nalloc: "
         "0\nlive 3: 67108864\n",
         line},
        /* small ones are rounded to 512 bytes, large ones to 2 MiB, as the driver does */
        {{"GPUSHIM_POLICY=devices=3;memory=1024"},
         "init device=0 alloc=1 alloc=513 alloc=1 live=3",
         "init: 0\ndevice: 0\nalloc: 0\nalloc: 2\nalloc: 0\nlive 3: 1024\n",
         "gpushim: cuMemAlloc of 1 KiB on GPU 3 refused, out of memory: this process holds 512 "
         "bytes of the 1 KiB that "
         "[default] of GPUSHIM_POLICY:2 allows; free memory, use less, or ask for a larger cap\n"},
        {{"GPUSHIM_POLICY=devices=3;memory=4GiB"},
         "init device=0 info total=0 alloc=1073741824 info free info",
         "init: 0\ndevice: 0\ninfo: 0, 4294967296 of 4294967296\ntotal: 0, 4294967296\nalloc: 0\n"
         "info: 0, 3221225472 of 4294967296\nfree: 0\ninfo: 0, 4294967296 of 4294967296\n",
         ""},
        /* a cap larger than the card changes nothing: the card's own figures, its context taken off
         */
        {{"GPUSHIM_POLICY=devices=2;memory=1000GiB", "SIMCUDA_CONTEXT=1GiB"},
         "init device=0 info",
         "init: 0\ndevice: 0\ninfo: 0, 24696061952 of 25769803776\n",
         ""},
        {{"GPUSHIM_POLICY=devices=2;memory=50%"},
         "init total=0",
         "init: 0\ntotal: 0, 12884901888\n",
         ""},
        /* memory.K follows the GPU whatever CUDA_VISIBLE_DEVICES says */
        {{"GPUSHIM_POLICY=devices=3,1;memory=2GiB;memory.1=1GiB", "CUDA_VISIBLE_DEVICES=1,0"},
         "init devices total=0 total=1",
         "init: 0\ndevices: 0, 2\n  0 = GPU 1\n  1 = GPU 3\ntotal: 0, 1073741824\ntotal: 0, "
         "2147483648\n",
         ""},
        {{"GPUSHIM_POLICY=memory.2=1GiB"}, /* all: nvidia-smi's number; CUDA's own order is kept */
         "init total=0 total=3",
         "init: 0\ntotal: 0, 85899345920\ntotal: 0, 1073741824\n",
         ""},
        {{"GPUSHIM_POLICY=devices=3;memory=64MiB"},
         "init device=0 pitch=1000x1024 live=3 pitch=100000000x1 free live=3",
         "init: 0\ndevice: 0\npitch: 0\nlive 3: 2097152\npitch: 2\nfree: 0\nlive 3: 0\n",
         "gpushim: cuMemAllocPitch of 96 MiB on GPU 3 refused, out of memory: this process holds 2 "
         "MiB of the 64 MiB that "
         "[default] of GPUSHIM_POLICY:2 allows; free memory, use less, or ask for a larger cap\n"},
        /* a failed call takes nothing */
        {{"GPUSHIM_POLICY=devices=3;memory=64MiB", "SIMCUDA_FAIL=cuMemAlloc_v2:1:999"},
         "init device=0 alloc=67108864 alloc=67108864 live=3",
         "init: 0\ndevice: 0\nalloc: 999\nalloc: 0\nlive 3: 67108864\n",
         ""},
        {{"GPUSHIM_POLICY=devices=3;memory=64MiB", "SIMCUDA_FAIL=cuMemFree_v2:1:999"},
         "init device=0 alloc=67108864 free info alloc=512",
         "init: 0\ndevice: 0\nalloc: 0\nfree: 999\ninfo: 0, 0 of 67108864\nalloc: 2\n",
         "gpushim: cuMemAlloc of 512 bytes on GPU 3 refused, out of memory: this process holds 64 "
         "MiB of the 64 MiB that "
         "[default] of GPUSHIM_POLICY:2 allows; free memory, use less, or ask for a larger cap\n"},
        /* the end of a context gives back what was in it */
        {{"GPUSHIM_POLICY=devices=3;memory=64MiB"},
         "init device=0 alloc=67108864 destroy device=0 alloc=67108864 live=3",
         "init: 0\ndevice: 0\nalloc: 0\ndestroy: 0\ndevice: 0\nalloc: 0\nlive 3: 67108864\n",
         ""},
        /* a context is measured when it is there, and taken back */
        {{"GPUSHIM_POLICY=devices=3;memory=30MiB", "SIMCUDA_CONTEXT=10MiB"},
         "init device=0 alloc=20971520 device=0 live=3 overhead=3",
         "init: 0\ndevice: 0\nalloc: 0\ndevice: 2\nlive 3: 20971520\noverhead 3: 10485760\n",
         "gpushim: cuCtxCreate on GPU 3 refused, out of memory: with it this process holds 40 MiB "
         "of the 30 MiB that [default] of GPUSHIM_POLICY:2 allows; free memory, use less, or ask "
         "for a larger cap\n"},
        /* without a context the driver's own answer */
        {{"GPUSHIM_POLICY=devices=3;memory=64MiB"}, "init alloc=512", "init: 0\nalloc: 201\n", ""},
        {{"GPUSHIM_POLICY=devices=3;memory=64MiB"}, "alloc=512 get=0", "alloc: 3\nget: 3\n", ""},
        /* a child of fork cannot use CUDA, and is told so, not "out of memory" */
        {{"GPUSHIM_POLICY=devices=3;memory=64MiB"},
         "init device=0 alloc=67108864 fork alloc=67108864",
         "init: 0\ndevice: 0\nalloc: 0\nalloc: 3\n",
         ""},
    };
    CHECK_ALL(rows);
}

static void test_managed(void **state)
{
    (void)state;
    static const struct run rows[] = {
        {{"GPUSHIM_POLICY=devices=3;memory=64MiB"},
         "init device=0 managed=67108864 live=3 managed=1048576 free live=3",
         "init: 0\ndevice: 0\nmanaged: 0\nlive 3: 67108864\nmanaged: 2\nfree: 0\nlive 3: 0\n",
         "gpushim: cuMemAllocManaged of 2 MiB on GPU 3 refused, out of memory: this process holds "
         "64 MiB of the 64 MiB "
         "that [default] of GPUSHIM_POLICY:2 allows; free memory, use less, or ask for a larger "
         "cap\n"},
        {{"GPUSHIM_POLICY=managed=deny"},
         "init device=0 managed=512 alloc=512",
         "init: 0\ndevice: 0\nmanaged: 800\nalloc: 0\n",
         "gpushim: cuMemAllocManaged refused: [default] of GPUSHIM_POLICY:1 says managed = deny; "
         "use cudaMalloc instead "
         "of cudaMallocManaged\n"},
        {{"GPUSHIM_POLICY=devices=3;memory=64MiB;managed=ignore"},
         "init device=0 managed=134217728 alloc=67108864",
         "init: 0\ndevice: 0\nmanaged: 0\nalloc: 0\n",
         ""},
    };
    CHECK_ALL(rows);
}

static void test_pools(void **state)
{
    (void)state;
    static const struct run rows[] = {
        /* a pool is charged by what it reserves, in chunks; the idle reserve serves the next
           request */
        {{"GPUSHIM_POLICY=devices=3;memory=64MiB"},
         "init device=0 async=1048576 info live=3 async=1048576 info alloc=33554432 alloc=512 "
         "live=3",
         "init: 0\ndevice: 0\nasync: 0\ninfo: 0, 33554432 of 67108864\nlive 3: 33554432\nasync: 0\n"
         "info: 0, 33554432 of 67108864\nalloc: 0\nalloc: 2\nlive 3: 67108864\n",
         "gpushim: cuMemAlloc of 512 bytes on GPU 3 refused, out of memory: this process holds 64 "
         "MiB of the 64 MiB that "
         "[default] of GPUSHIM_POLICY:2 allows; free memory, use less, or ask for a larger cap\n"},
        {{"GPUSHIM_POLICY=devices=3;memory=64MiB"},
         "init device=0 async=67108864 async=1048576 async-free async=67108864 live=3",
         "init: 0\ndevice: 0\nasync: 0\nasync: 2\nasync-free: 0\nasync: 0\nlive 3: 67108864\n",
         "gpushim: cuMemAllocAsync of 32 MiB on GPU 3 refused, out of memory: this process holds "
         "64 MiB of the 64 MiB "
         "that [default] of GPUSHIM_POLICY:2 allows; free memory, use less, or ask for a larger "
         "cap\n"},
        /* idle reserve of a pool makes way for other memory */
        {{"GPUSHIM_POLICY=devices=3;memory=64MiB"},
         "init device=0 async=67108864 async-free alloc=67108864 live=3",
         "init: 0\ndevice: 0\nasync: 0\nasync-free: 0\nalloc: 0\nlive 3: 67108864\n",
         ""},
    };
    CHECK_ALL(rows);
}

static void test_handles(void **state)
{
    (void)state;
    static const struct run rows[] = {
        /* released while mapped: the memory, and its charge, live until the last mapping goes */
        {{"GPUSHIM_POLICY=devices=3;memory=64MiB"},
         "init device=0 create=0:67108864 map release live=3 alloc=512 unmap live=3 alloc=67108864",
         "init: 0\ndevice: 0\ncreate: 0\nmap: 0\nrelease: 0\nlive 3: 67108864\nalloc: 2\nunmap: "
         "0\nlive 3: 0\nalloc: 0\n",
         "gpushim: cuMemAlloc of 512 bytes on GPU 3 refused, out of memory: this process holds 64 "
         "MiB of the 64 MiB that "
         "[default] of GPUSHIM_POLICY:2 allows; free memory, use less, or ask for a larger cap\n"},
        {{"GPUSHIM_POLICY=devices=3;memory=64MiB"},
         "init device=0 create=0:67108864 map unmap create=0:2097152 release",
         "init: 0\ndevice: 0\ncreate: 0\nmap: 0\nunmap: 0\ncreate: 2\nrelease: 0\n",
         "gpushim: cuMemCreate of 2 MiB on GPU 3 refused, out of memory: this process holds 64 MiB "
         "of the 64 MiB that "
         "[default] of GPUSHIM_POLICY:2 allows; free memory, use less, or ask for a larger cap\n"},
        /* by its location, not by the current context; it needs none */
        {{"GPUSHIM_POLICY=devices=3,1;memory=64MiB"},
         "init create=1:67108864 live=1 device=0 alloc=67108864 live=3",
         "init: 0\ncreate: 0\nlive 1: 67108864\ndevice: 0\nalloc: 0\nlive 3: 67108864\n",
         ""},
    };
    CHECK_ALL(rows);
}

static void test_peers(void **state)
{
    (void)state;
    static const struct run rows[] = {
        {{NULL},
         "init peer=0:1 device=0 device=1 enable=0:1",
         "init: 0\npeer: 0, 1\ndevice: 0\ndevice: 0\nenable: 0\n",
         ""},
        {{"GPUSHIM_POLICY=devices=3,1;peer_access=deny"},
         "init peer=0:1 device=0 device=1 enable=0:1 enable=0:1",
         "init: 0\npeer: 0, 0\ndevice: 0\ndevice: 0\nenable: 217\nenable: 217\n",
         "gpushim: cuCtxEnablePeerAccess refused from GPU 3 to GPU 1: [default] of "
         "GPUSHIM_POLICY:2 says peer_access = "
         "deny; copies between GPUs go on working, through the host\n"},
    };
    CHECK_ALL(rows);
}

/* One GPU for each rank: the second device's context is refused before it takes memory. */
static void test_devices_per_process(void **state)
{
    (void)state;
    static const struct run rows[] = {
        {{"GPUSHIM_POLICY=devices=3,1;devices_per_process=1", "SIMCUDA_CONTEXT=300MiB"},
         "init retain=1 retain=0 device=0 overhead=3 overhead=1 retain=1 leave=1 retain=0 leave=1 "
         "retain=0",
         "init: 0\nretain: 0\nretain: 800\ndevice: 800\noverhead 3: 0\noverhead 1: "
         "314572800\nretain: 0\nleave: 0\n"
         "retain: 800\nleave: 0\nretain: 0\n", /* after the last release another may be taken */
         "gpushim: cuDevicePrimaryCtxRetain on CUDA device 0 refused: this process has a context "
         "on CUDA device 1, and "
         "[default] of GPUSHIM_POLICY:2 says devices_per_process = 1; often a checkpoint loaded "
         "without map_location, or "
         "a default device of 0\n"
         "gpushim: cuCtxCreate on CUDA device 0 refused: this process has a context on CUDA device "
         "1, and [default] of "
         "GPUSHIM_POLICY:2 says devices_per_process = 1; often a checkpoint loaded without "
         "map_location, or a default "
         "device of 0\n"},
        {{"GPUSHIM_POLICY=devices=3,1;devices_per_process=1"},
         "init device=0 destroy device=1 destroy retain=0 reset=0 retain=1",
         "init: 0\ndevice: 0\ndestroy: 0\ndevice: 0\ndestroy: 0\nretain: 0\nreset: 0\nretain: 0\n",
         ""},
        {{"GPUSHIM_POLICY=devices_per_process=2"},
         "init retain=0 retain=1 retain=0",
         "init: 0\nretain: 0\nretain: 0\nretain: 0\n",
         ""},
        {{"GPUSHIM_POLICY=devices_per_process=1",
          "SIMCUDA_FAIL=cuCtxCreate_v2:1:2"}, /* what failed holds no place */
         "init device=0 device=1",
         "init: 0\ndevice: 2\ndevice: 0\n",
         ""},
    };
    CHECK_ALL(rows);
}

/* A driver of the future has a cuMemAlloc_v3: unknown to us, so it must not pass, nor must an older
 * one stand in for it. What no rule guards passes. */
static void test_unknown_variant(void **state)
{
    (void)state;
    static const struct run rows[] = {
        {{"SIMCUDA_DRIVER=14000"},
         "resolve=cuMemAlloc:14000 resolve1=cuMemAlloc:14000",
         "resolve: 0, a function, status 0\nresolve1: 0, a function, status 0\n",
         ""},
        {{"SIMCUDA_DRIVER=14000", "GPUSHIM_POLICY=peer_access=deny"},
         "resolve=cuMemAlloc:14000",
         "resolve: 0, a function, status 0\n",
         ""},
        {{"SIMCUDA_DRIVER=14000", "GPUSHIM_POLICY=memory=1GiB"},
         "resolve=cuMemAlloc:14000 resolve1=cuMemAlloc:14000 resolve=cuMemAlloc:13000",
         "resolve: 0, nothing, status 2\nresolve1: 500, nothing, status 0\nresolve: 0, a function, "
         "status 0\n",
         "gpushim: cuMemAlloc: this driver offers a variant that this gpushim does not know; "
         "withheld, so that the "
         "policy holds; a newer gpushim may know it\n"},
        /* a driver without some hooked function: it is simply not there */
        {{"SIMCUDA_MISSING=cuMemCreate", "GPUSHIM_POLICY=memory=1GiB"},
         "resolve=cuMemCreate:13000 resolve1=cuMemCreate:13000",
         "resolve: 0, nothing, status 1\nresolve1: 500, nothing, status 0\n",
         ""},
    };
    CHECK_ALL(rows);
}

static void test_bad_policies(void **state)
{
    (void)state;
    static const struct run rows[] = {
        {{"GPUSHIM_POLICY=memory=lots"},
         "init",
         "init: 800\n",
         "gpushim: CUDA refused: GPUSHIM_POLICY:1:8: memory = lots: expected one of none, a size "
         "such as 8GiB, a share "
         "of the card such as 40%\n"},
        {{"GPUSHIM_POLICY=devices=3,1;memroy=4GiB;peer_access=maybe"},
         "init",
         "init: 800\n",
         "gpushim: CUDA refused: GPUSHIM_POLICY:2:1: unknown key memroy; did you mean memory? (and "
         "1 more error)\n"},
        {{"GPUSHIM_POLICY=select=2"}, /* documented, and not yet enforced: an error, not a silence
                                       */
         "init",
         "init: 800\n",
         "gpushim: CUDA refused: GPUSHIM_POLICY:1:8: select = 2: this build does not enforce it "
         "yet; what it does is "
         "select = all\n"},
        {{"GPUSHIM_POLICY=devices=9"},
         "init init",
         "init: 800\ninit: 800\n",
         "gpushim: CUDA refused: GPUSHIM_POLICY:1:9: GPU 9 is not there: this machine has 4 "
         "(0-3)\n"},
        {{"GPUSHIM_CONF=/nowhere/gpushim.conf"},
         "init",
         "init: 800\n",
         "gpushim: CUDA refused: /nowhere/gpushim.conf: named by GPUSHIM_CONF, cannot be read: no "
         "such file\n"},
        {{"GPUSHIM_CONF=/dev/null"},
         "init",
         "init: 800\n",
         "gpushim: CUDA refused: /dev/null: named by GPUSHIM_CONF, is not a regular file\n"},
        {{"GPUSHIM_POLICY=devices=9?"}, /* optional: then nothing is granted */
         "init",
         "init: 100\n",
         "gpushim: no GPU for this process: [default] of GPUSHIM_POLICY:1 grants none\n"},
    };
    CHECK_ALL(rows);
}

static void write_system_policy(const char *text, mode_t mode)
{
    unlink(SYSTEM_POLICY);
    int fd = open(SYSTEM_POLICY, O_CREAT | O_EXCL | O_WRONLY, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    fchmod(fd, mode);
    close(fd);
}

/* CUDA's own order is 1, 3, 0, 2. */
static void test_visible_devices(void **state)
{
    (void)state;
#define VARIABLE "CUDA_VISIBLE_DEVICES="
#define PHYSICAL ";cuda_visible_devices=physical"
#define IGNORE ";cuda_visible_devices=ignore"
    static const struct run rows[] = {
        {{"GPUSHIM_POLICY=devices=3,1" PHYSICAL, VARIABLE "1,3"},
         "init devices variable",
         "init: 0\ndevices: 0, 2\n  0 = GPU 1\n  1 = GPU 3\nvariable: 1,3\n",
         ""},
        {{"GPUSHIM_POLICY=devices=3,1" PHYSICAL, VARIABLE "1"},
         "init devices",
         "init: 0\ndevices: 0, 1\n  0 = GPU 1\n",
         ""},
        {{"GPUSHIM_POLICY=devices=3,1" PHYSICAL, VARIABLE "0"}, "init", "init: 100\n", ""},
        {{"GPUSHIM_POLICY=devices=3,1" PHYSICAL, VARIABLE "3,0,1"},
         "init devices",
         "init: 0\ndevices: 0, 1\n  0 = GPU 3\n",
         ""},
        {{"GPUSHIM_POLICY=devices=3,1" PHYSICAL},
         "init devices variable",
         "init: 0\ndevices: 0, 2\n  0 = GPU 3\n  1 = GPU 1\nvariable: (unset)\n",
         ""},
        /* with all GPUs granted the numbers are nvidia-smi's too, which are not CUDA's own */
        {{"GPUSHIM_POLICY=" PHYSICAL, VARIABLE "0,1"},
         "init devices variable",
         "init: 0\ndevices: 0, 2\n  0 = GPU 0\n  1 = GPU 1\nvariable: 0,1\n",
         ""},
        {{"GPUSHIM_POLICY=" PHYSICAL ";memory=1GiB;memory.0=2GiB", VARIABLE "1,0"},
         "init devices total=0 total=1",
         "init: 0\ndevices: 0, 2\n  0 = GPU 1\n  1 = GPU 0\ntotal: 0, 1073741824\ntotal: 0, "
         "2147483648\n",
         ""},
        {{"GPUSHIM_POLICY=" PHYSICAL},
         "init devices",
         "init: 0\ndevices: 0, 4\n  0 = GPU 1\n  1 = GPU 3\n  2 = GPU 0\n  3 = GPU 2\n",
         ""},
        {{"GPUSHIM_POLICY=" PHYSICAL, VARIABLE "4"}, "init", "init: 100\n", ""},
        {{"GPUSHIM_POLICY=devices=3,1" IGNORE, VARIABLE "1"},
         "init devices variable",
         "init: 0\ndevices: 0, 2\n  0 = GPU 3\n  1 = GPU 1\nvariable: 1\n",
         ""},
        {{"GPUSHIM_POLICY=devices=3,1" IGNORE, VARIABLE},
         "init devices",
         "init: 0\ndevices: 0, 2\n  0 = GPU 3\n  1 = GPU 1\n",
         ""},
        {{"GPUSHIM_POLICY=" IGNORE, VARIABLE "1"},
         "init devices variable",
         "init: 0\ndevices: 0, 4\n  0 = GPU 1\n  1 = GPU 3\n  2 = GPU 0\n  3 = GPU 2\nvariable: "
         "1\n",
         ""},
        {{"GPUSHIM_POLICY=memory.2=1GiB" IGNORE, VARIABLE "1"},
         "init devices total=3",
         "init: 0\ndevices: 0, 4\n  0 = GPU 1\n  1 = GPU 3\n  2 = GPU 0\n  3 = GPU 2\ntotal: 0, "
         "1073741824\n",
         ""},
        {{"GPUSHIM_POLICY=" IGNORE},
         "init devices",
         "init: 0\ndevices: 0, 4\n  0 = GPU 1\n  1 = GPU 3\n  2 = GPU 0\n  3 = GPU 2\n",
         ""},
        {{"GPUSHIM_POLICY=nvml=follow" PHYSICAL},
         "init",
         "init: 800\n",
         "gpushim: CUDA refused: GPUSHIM_POLICY:1:6: nvml = follow does not go with "
         "cuda_visible_devices = physical on line 2: frameworks cut the integers off at NVML's "
         "count; with physical, nvml is physical unless it is given\n"},
    };
    CHECK_ALL(rows);
}

/* The outermost text that sets it decides. */
static void test_visible_devices_in_texts(void **state)
{
    (void)state;
    static const struct run within = {{"GPUSHIM_POLICY=devices=0-1" PHYSICAL, VARIABLE "1"},
                                      "init devices",
                                      "init: 0\ndevices: 0, 1\n  0 = GPU 1\n",
                                      ""};
    static const struct run physical = {
        {"GPUSHIM_POLICY=cuda_visible_devices=within", VARIABLE "1"},
        "init devices",
        "init: 0\ndevices: 0, 1\n  0 = GPU 1\n",
        ""};
    static const struct run misfit = {
        {"GPUSHIM_POLICY=cuda_visible_devices=physical"},
        "init",
        "init: 800\n",
        "gpushim: CUDA refused: GPUSHIM_POLICY:1:1: cuda_visible_devices = physical does not go "
        "with nvml = follow, which " SYSTEM_POLICY " says: frameworks cut the integers off at "
        "NVML's count; with physical, nvml is physical unless it is given\n"};
    if (geteuid() != 0) {
        print_message("only root can make a file that is trusted\n");
        skip();
    }
    write_system_policy("[default]\ndevices = 3,1\ncuda_visible_devices = within\n", 0644);
    check_run(&within, SYSTEM_SHIM);
    write_system_policy("[default]\ndevices = 3,1\ncuda_visible_devices = physical\n", 0644);
    check_run(&physical, SYSTEM_SHIM);
    write_system_policy("[default]\nnvml = follow\n", 0644);
    check_run(&misfit, SYSTEM_SHIM);
    unlink(SYSTEM_POLICY);
}

/* By variables as they were at exec, and by cgroup; who else one is, is policy_match_test.c's. */
static void test_rules(void **state)
{
    (void)state;
#define JOB "GPUSHIM_POLICY=[rule job];match.env=SLURM_JOB_ID=[0-9]*;devices=3;[default];devices=1"
    static const struct run rows[] = {
        {{JOB}, "init devices", "init: 0\ndevices: 0, 1\n  0 = GPU 1\n", ""},
        {{JOB, "SLURM_JOB_ID=17"}, "init devices", "init: 0\ndevices: 0, 1\n  0 = GPU 3\n", ""},
        {{JOB, "SLURM_JOB_ID=x"}, "init devices", "init: 0\ndevices: 0, 1\n  0 = GPU 1\n", ""},
        {{JOB}, /* too late: it is not in the environment that the program was started with */
         "set=SLURM_JOB_ID:17 init devices",
         "init: 0\ndevices: 0, 1\n  0 = GPU 1\n",
         ""},
        {{"GPUSHIM_POLICY=[rule any];match.cgroup=/*;devices=3;[default];devices=1"},
         "init devices",
         "init: 0\ndevices: 0, 1\n  0 = GPU 3\n",
         ""},
        {{"GPUSHIM_POLICY=[rule none];match.cgroup=!/*;devices=3;[default];devices=1"},
         "init devices",
         "init: 0\ndevices: 0, 1\n  0 = GPU 1\n",
         ""},
    };
    CHECK_ALL(rows);
}

/* A process that has changed its user may not read its own /proc/self/environ. */
static void test_rules_that_cannot_be_told(void **state)
{
    (void)state;
    static const struct run row = {
        {JOB, "SLURM_JOB_ID=17"},
        "become=65534 init",
        "init: 800\n",
        "gpushim: CUDA refused: GPUSHIM_POLICY:1:1: rule job: match.env: /proc/self/environ cannot "
        "be read\n"};
    if (geteuid() != 0) {
        print_message("only root can become someone else\n");
        skip();
    }
    check_run(&row, SHIM);
}

/* The system file, and a user's text inside it. Needs root, whose files alone are trusted. */
static void test_system_policy(void **state)
{
    (void)state;
    static const struct run row = {{"GPUSHIM_POLICY=devices=1,0;memory=100GiB"},
                                   "init devices total=0 total=1",
                                   "init: 0\ndevices: 0, 2\n  0 = GPU 1\n  1 = GPU 3\n"
                                   "total: 0, 1073741824\ntotal: 0, 1073741824\n",
                                   ""};
    static const struct run writable = {{NULL},
                                        "init",
                                        "init: 800\n",
                                        "gpushim: CUDA refused: " SYSTEM_POLICY ": "
                                        "can be written by others than root; chmod go-w it\n"};
    static const struct run alone = {
        {NULL}, "init devices", "init: 0\ndevices: 0, 2\n  0 = GPU 3\n  1 = GPU 1\n", ""};
    static const struct run foreign = {{NULL},
                                       "init",
                                       "init: 800\n",
                                       "gpushim: CUDA refused: " SYSTEM_POLICY
                                       ": is not owned by root; chown root it, or remove it\n"};
    if (geteuid() != 0) {
        print_message("only root can make a file that is trusted\n");
        skip();
    }
    write_system_policy("[default]\ndevices = 3,1\nmemory = 1GiB\n", 0644);
    check_run(&row, SYSTEM_SHIM);
    check_run(&alone, SYSTEM_SHIM);
    write_system_policy("[default]\ndevices = 3,1\n", 0666);
    check_run(&writable, SYSTEM_SHIM);
    write_system_policy("[default]\ndevices = 3,1\n", 0644);
    assert_int_equal(chown(SYSTEM_POLICY, 12345, 0), 0);
    check_run(&foreign, SYSTEM_SHIM);
    unlink(SYSTEM_POLICY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_view),
        cmocka_unit_test(test_cap),
        cmocka_unit_test(test_managed),
        cmocka_unit_test(test_pools),
        cmocka_unit_test(test_handles),
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_devices_per_process),
        cmocka_unit_test(test_unknown_variant),
        cmocka_unit_test(test_bad_policies),
        cmocka_unit_test(test_visible_devices),
        cmocka_unit_test(test_visible_devices_in_texts),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_rules_that_cannot_be_told),
        cmocka_unit_test(test_system_policy),
    };
    snprintf(state_variable, sizeof state_variable, "SIMCUDA_STATE=%s/behaviour.%d", WORK_DIR,
             (int)getpid());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
