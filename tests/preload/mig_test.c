/* mig_test.c -- cards that are divided into MIG devices: what CUDA and NVML show of them under a
 * policy, under which caps. The machine: GPU 0 of 24 GiB, GPU 1 of 80 divided into three, GPU 2 of
 * 80, GPU 3 of 80 divided into two; a MIG device has 10 GiB. Each row was worked out by hand.
 *
 * Run as `plain` or `shim` it goes through the table, each row in a process of its own; as `tell`
 * it is that process, and prints what it sees. ctest preloads the shim into both.
 */
#include "cmocka_all.h"
#include "cuda_abi.h"
#include "nvml_abi.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UUID_MAX = 96, ANSWER_MAX = 512, MIG_MARK = 0x4d };
#define GIB ((unsigned long long)1 << 30)

/* --- The process that looks --------------------------------------------------------------------
 */

static void *nvml, *driver;
#define NVML(name, ...) ((nvmlReturn_t(*)(__VA_ARGS__))(uintptr_t)dlsym(nvml, #name))
#define DRIVER(name, ...) ((CUresult(*)(__VA_ARGS__))(uintptr_t)dlsym(driver, #name))

static void insist(bool holds, const char *what)
{
    if (!holds) {
        printf(" [wrong: %s]", what);
        fflush(stdout);
        exit(1);
    }
}
#define INSIST(condition) insist(condition, #condition)

static const char *uuid_of(nvmlDevice_t device)
{
    static char uuid[UUID_MAX];
    INSIST(NVML(nvmlDeviceGetUUID, nvmlDevice_t, char *, unsigned int)(device, uuid, UUID_MAX) ==
           NVML_SUCCESS);
    return uuid;
}

static nvmlReturn_t by_uuid(const char *uuid, nvmlDevice_t *device)
{
    return NVML(nvmlDeviceGetHandleByUUID, const char *, nvmlDevice_t *)(uuid, device);
}

static nvmlMemory_t memory_of(nvmlDevice_t device)
{
    nvmlMemory_t memory;
    nvmlMemory_v2_t memory_2 = {.version = (unsigned int)(sizeof memory_2 | 2 << 24)};
    INSIST(NVML(nvmlDeviceGetMemoryInfo, nvmlDevice_t, nvmlMemory_t *)(device, &memory) ==
           NVML_SUCCESS);
    INSIST(NVML(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t, nvmlMemory_v2_t *)(device, &memory_2) ==
           NVML_SUCCESS);
    INSIST(memory.total == memory_2.total && memory.free == memory_2.free);
    return memory;
}

static unsigned int index_of(nvmlDevice_t device)
{
    unsigned int index = 99;
    INSIST(NVML(nvmlDeviceGetIndex, nvmlDevice_t, unsigned int *)(device, &index) == NVML_SUCCESS);
    return index;
}

/* Prints " 2" or, of a card that is divided, " 1(0:10 2:10)". */
static void tell_card(unsigned int index)
{
    nvmlDevice_t card, mig, again;
    unsigned int most, mode, pending, is_mig;
    int told = 0;
    INSIST(NVML(nvmlDeviceGetHandleByIndex_v2, unsigned int, nvmlDevice_t *)(index, &card) ==
           NVML_SUCCESS);
    INSIST(index_of(card) == index);
    printf(" %ld:%llu", strtol(uuid_of(card) + 4, NULL, 16) >> 24, memory_of(card).total / GIB);
    nvmlReturn_t rc = NVML(nvmlDeviceGetMigMode, nvmlDevice_t, unsigned int *,
                           unsigned int *)(card, &mode, &pending);
    INSIST(rc == NVML_SUCCESS || rc == NVML_ERROR_NOT_SUPPORTED);
    INSIST(NVML(nvmlDeviceGetMaxMigDeviceCount, nvmlDevice_t, unsigned int *)(card, &most) ==
           NVML_SUCCESS);
    INSIST(most == (rc == NVML_SUCCESS && mode ? 7 : 0));
    for (unsigned int i = 0; i < most; i++) {
        rc = NVML(nvmlDeviceGetMigDeviceHandleByIndex, nvmlDevice_t, unsigned int,
                  nvmlDevice_t *)(card, i, &mig);
        INSIST(rc == NVML_SUCCESS || rc == NVML_ERROR_NOT_FOUND);
        if (rc == NVML_ERROR_NOT_FOUND)
            continue;
        printf("%s%u:%llu", told++ ? " " : "(", i, memory_of(mig).total / GIB);
        INSIST(index_of(mig) == i);
        INSIST(by_uuid(uuid_of(mig), &again) == NVML_SUCCESS && again == mig);
        INSIST(NVML(nvmlDeviceIsMigDeviceHandle, nvmlDevice_t, unsigned int *)(mig, &is_mig) ==
                   NVML_SUCCESS &&
               is_mig == 1);
        INSIST(NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvmlDevice_t,
                    nvmlDevice_t *)(mig, &again) == NVML_SUCCESS &&
               again == card);
    }
    printf("%s", told ? ")" : "");
    INSIST(!most || NVML(nvmlDeviceGetMigDeviceHandleByIndex, nvmlDevice_t, unsigned int,
                         nvmlDevice_t *)(card, most, &mig) == NVML_ERROR_INVALID_ARGUMENT);
}

/* How many MIG devices can be had by their UUIDs: as many as were told of. */
static void tell_migs_by_uuid(void)
{
    nvmlDevice_t device;
    for (int card = 1; card <= 3; card += 2) {
        for (int i = 0; i < 3; i++) {
            char uuid[UUID_MAX];
            snprintf(uuid, sizeof uuid, "MIG-%02x51c0da-51c0-4da0-8000-000000004d%02x", card, i);
            if (by_uuid(uuid, &device) == NVML_SUCCESS)
                printf(" %d/%d", card, i);
        }
    }
}

/* Takes 1 GiB on CUDA's first device, and prints how many MiB of it NVML says are used. */
static void tell_use(const char *uuid)
{
    CUcontext context;
    CUdeviceptr pointer;
    nvmlDevice_t device;
    INSIST(DRIVER(cuCtxCreate_v2, CUcontext *, unsigned int, CUdevice)(&context, 0, 0) ==
           CUDA_SUCCESS);
    INSIST(DRIVER(cuMemAlloc_v2, CUdeviceptr *, size_t)(&pointer, GIB) == CUDA_SUCCESS);
    INSIST(by_uuid(uuid, &device) == NVML_SUCCESS);
    printf(" %llu", memory_of(device).used >> 20);
}

/* Prints " 2:80" or, of a MIG device, " 1/0:10"; writes its UUID. */
static void tell_device(int ordinal, char text[UUID_MAX])
{
    CUuuid uuid;
    size_t total;
    INSIST(DRIVER(cuDeviceGetUuid_v2, CUuuid *, CUdevice)(&uuid, ordinal) == CUDA_SUCCESS);
    INSIST(DRIVER(cuDeviceTotalMem_v2, size_t *, CUdevice)(&total, ordinal) == CUDA_SUCCESS);
    const bool is_mig = uuid.bytes[14] == MIG_MARK;
    printf(" %d", uuid.bytes[0]);
    if (is_mig)
        printf("/%d", uuid.bytes[15]);
    printf(":%llu", (unsigned long long)total / GIB);
    int length = snprintf(text, UUID_MAX, "%s", is_mig ? "MIG-" : "GPU-");
    for (int i = 0; i < 16; i++)
        length += snprintf(text + length, UUID_MAX - (size_t)length, "%s%02x",
                           i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                           (unsigned char)uuid.bytes[i]);
}

static int tell(void)
{
    char first[UUID_MAX] = "", uuid[UUID_MAX];
    unsigned int cards = 0;
    int devices = 0;
    nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!nvml || !driver || NVML(nvmlInit_v2, void)() != NVML_SUCCESS)
        return 2;
    INSIST(NVML(nvmlDeviceGetCount_v2, unsigned int *)(&cards) == NVML_SUCCESS);
    printf("nvml");
    for (unsigned int i = 0; i < cards; i++)
        tell_card(i);
    printf("; by UUID");
    tell_migs_by_uuid();
    printf("; cuda");
    CUresult rc = DRIVER(cuInit, unsigned int)(0);
    if (rc != CUDA_SUCCESS)
        printf(" error %d", (int)rc);
    else
        INSIST(DRIVER(cuDeviceGetCount, int *)(&devices) == CUDA_SUCCESS);
    for (int i = 0; i < devices; i++)
        tell_device(i, i ? uuid : first);
    printf("; used");
    if (devices)
        tell_use(first);
    printf("\n");
    return 0;
}

/* --- The table ---------------------------------------------------------------------------------
 */

#define MIG(card, i) "MIG-0" #card "51c0da-51c0-4da0-8000-000000004d0" #i
#define OLDER(card, gi) "MIG-GPU-0" #card "51c0da-51c0-4da0-8000-00000000000" #card "/" #gi "/0"
#define WHOLE_NVML                                                                                 \
    "nvml 0:24 1:80(0:10 1:10 2:10) 2:80 3:80(0:10 1:10); by UUID 1/0 1/1 1/2 3/0 3/1; "

/* A context takes 300 MiB, which show where no cap makes the books ours. CUDA shows one MIG device
 * at most: the first of the list. */
static const struct {
    const char *policy, *visible, *right;
} table[] = {
    {"", NULL, WHOLE_NVML "cuda 1/0:10 2:80 0:24; used 1324"},
    {"", MIG(3, 1), WHOLE_NVML "cuda 3/1:10; used 1324"},
    {"", OLDER(3, 8) "," MIG(1, 0), WHOLE_NVML "cuda 3/1:10; used 1324"},

    /* One MIG device, by either name; with a cap. */
    {"devices=" MIG(1, 1), NULL, "nvml 1:80(1:10); by UUID 1/1; cuda 1/1:10; used 1324"},
    {"devices=" OLDER(1, 8), NULL, "nvml 1:80(1:10); by UUID 1/1; cuda 1/1:10; used 1324"},
    {"devices=" MIG(1, 1) ";memory=4GiB", NULL,
     "nvml 1:80(1:4); by UUID 1/1; cuda 1/1:4; used 1324"},
    {"devices=" MIG(1, 1) ";memory=50%", NULL,
     "nvml 1:80(1:5); by UUID 1/1; cuda 1/1:5; used 1324"},
    {"devices=" MIG(1, 1) ";memory=4GiB", "0",
     "nvml 1:80(1:4); by UUID 1/1; cuda 1/1:4; used 1324"},
    {"devices=" MIG(1, 1), "1", "nvml 1:80(1:10); by UUID 1/1; cuda error 100; used"},
    {"devices=" MIG(1, 1), MIG(1, 0), "nvml 1:80(1:10); by UUID 1/1; cuda error 100; used"},

    /* Two of them, of one card and of two; NVML finds them by way of the card. */
    {"devices=" MIG(1, 2) "," MIG(1, 0), NULL,
     "nvml 1:80(0:10 2:10); by UUID 1/0 1/2; cuda 1/2:10; used 1324"},
    {"devices=" MIG(3, 0) "," MIG(1, 2) ";memory=2GiB;memory.1=5GiB", NULL,
     "nvml 3:80(0:2) 1:80(2:5); by UUID 1/2 3/0; cuda 3/0:2; used 1324"},
    {"devices=" MIG(3, 0) "," MIG(1, 2) ";memory=2GiB;memory.1=5GiB", "1",
     "nvml 3:80(0:2) 1:80(2:5); by UUID 1/2 3/0; cuda 1/2:5; used 1324"},
    {"devices=" MIG(3, 0) "," MIG(1, 2) ";memory=2GiB;memory.1=5GiB", MIG(1, 2),
     "nvml 3:80(0:2) 1:80(2:5); by UUID 1/2 3/0; cuda 1/2:5; used 1324"},
    {"devices=" MIG(3, 0) "," MIG(1, 2) ";memory=2GiB;memory.1=5GiB", OLDER(1, 9),
     "nvml 3:80(0:2) 1:80(2:5); by UUID 1/2 3/0; cuda 1/2:5; used 1324"},
    {"devices=" MIG(3, 0) "," MIG(1, 2) ";memory=2GiB;memory.1=5GiB", "GPU-01",
     "nvml 3:80(0:2) 1:80(2:5); by UUID 1/2 3/0; cuda 1/2:5; used 1324"},

    /* A card that is divided is granted as its MIG devices, each under the card's cap. */
    {"devices=1;memory=4GiB", NULL,
     "nvml 1:80(0:4 1:4 2:4); by UUID 1/0 1/1 1/2; cuda 1/0:4; used 1324"},
    {"devices=1;memory=4GiB", "2",
     "nvml 1:80(0:4 1:4 2:4); by UUID 1/0 1/1 1/2; cuda 1/2:4; used 1324"},
    {"devices=" MIG(1, 1) ",1", NULL,
     "nvml 1:80(0:10 1:10 2:10); by UUID 1/0 1/1 1/2; cuda 1/1:10; used 1324"},
    {"devices=3,2;memory=4GiB;memory.1=6GiB", NULL,
     "nvml 3:80(0:4 1:4) 2:6; by UUID 3/0 3/1; cuda 3/0:4; used 1324"},
    {"devices=2,3", NULL, "nvml 2:80 3:80(0:10 1:10); by UUID 3/0 3/1; cuda 2:80; used 1324"},
    {"devices=2,0", NULL, "nvml 2:80 0:24; by UUID; cuda 2:80 0:24; used 1324"},

    /* Without a view; and where NVML is left alone. */
    {"memory=4GiB", NULL,
     "nvml 0:4 1:80(0:4 1:4 2:4) 2:4 3:80(0:4 1:4); by UUID 1/0 1/1 1/2 3/0 3/1; "
     "cuda 1/0:4 2:4 0:4; used 1324"},
    {"memory.1=4GiB", NULL,
     "nvml 0:24 1:80(0:4 1:4 2:4) 2:80 3:80(0:10 1:10); by UUID 1/0 1/1 1/2 3/0 3/1; "
     "cuda 1/0:4 2:80 0:24; used 1324"},
    {"memory=2GiB;memory.3=6GiB", MIG(3, 1),
     "nvml 0:2 1:80(0:2 1:2 2:2) 2:2 3:80(0:6 1:6); by UUID 1/0 1/1 1/2 3/0 3/1; "
     "cuda 3/1:6; used 1324"},
    {"devices=" MIG(1, 1) ";memory=4GiB;nvml=physical", NULL, WHOLE_NVML "cuda 1/1:4; used 1324"},

    /* What is not there: MIG devices have no number, and a beginning must mean one. CUDA refuses,
     * and NVML is left alone. */
    {"devices=4", NULL, WHOLE_NVML "cuda error 800; used"},
    {"memory.4=1GiB", NULL, WHOLE_NVML "cuda error 800; used"},
    {"devices=MIG-03", NULL, WHOLE_NVML "cuda error 800; used"},
    {"devices=" MIG(3, 2), NULL, WHOLE_NVML "cuda error 800; used"},
    {"devices=" MIG(3, 2) "?," MIG(3, 1), NULL,
     "nvml 3:80(1:10); by UUID 3/1; cuda 3/1:10; used 1324"},
};

static const char *self;
static bool with_shim;

static void set_or_unset(const char *name, const char *value)
{
    if (value && *value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void ask(size_t row, char answer[ANSWER_MAX])
{
    int out[2];
    size_t length = 0;
    assert_int_equal(pipe(out), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        set_or_unset("GPUSHIM_POLICY", table[row].policy);
        set_or_unset("CUDA_VISIBLE_DEVICES", table[row].visible);
        execl(self, self, "tell", (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    for (ssize_t got; length < ANSWER_MAX - 1 &&
                      (got = read(out[0], answer + length, ANSWER_MAX - 1 - length)) > 0;)
        length += (size_t)got;
    answer[length] = '\0';
    answer[strcspn(answer, "\n")] = '\0';
    close(out[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void test_table(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t row = 0; row < sizeof table / sizeof table[0]; row++) {
        char answer[ANSWER_MAX];
        if (table[row].policy[0] && !with_shim)
            continue;
        ask(row, answer);
        if (strcmp(answer, table[row].right) == 0)
            continue;
        fprintf(stderr, "%s, CUDA_VISIBLE_DEVICES %s\n  is  %s\n  not %s\n",
                table[row].policy[0] ? table[row].policy : "no policy",
                table[row].visible ? table[row].visible : "unset", answer, table[row].right);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "tell") == 0)
        return tell();
    self = argv[0];
    with_shim = argc > 1 && strcmp(argv[1], "shim") == 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
