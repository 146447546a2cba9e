/* count_test.c -- how many GPUs, and which: as PyTorch counts them by NVML before CUDA runs, and as
 * CUDA says then. A table of grants, values of CUDA_VISIBLE_DEVICES and of CUDA_DEVICE_ORDER on a
 * machine of two kinds of cards; what is right was worked out by hand.
 *
 * Run with no argument it goes through the table, each row in a process of its own; with `tell` it
 * is that process, and prints what it sees. ctest preloads the shim into both.
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

enum { GPUS_MAX = 64, UUID_MAX = 96, ANSWER_MAX = 256 };

/* --- The process that looks --------------------------------------------------------------------
 */

static void *nvml, *driver;
#define NVML(name, ...) ((nvmlReturn_t(*)(__VA_ARGS__))(uintptr_t)dlsym(nvml, #name))
#define DRIVER(name, ...) ((CUresult(*)(__VA_ARGS__))(uintptr_t)dlsym(driver, #name))

static char nvml_uuids[GPUS_MAX][UUID_MAX];
static int nvml_count;

static void list_nvml(void)
{
    unsigned int count = 0;
    if (NVML(nvmlInit_v2, void)() != NVML_SUCCESS ||
        NVML(nvmlDeviceGetCount_v2, unsigned int *)(&count) != NVML_SUCCESS)
        exit(3);
    for (unsigned int i = 0; i < count; i++) {
        nvmlDevice_t device;
        if (NVML(nvmlDeviceGetHandleByIndex_v2, unsigned int, nvmlDevice_t *)(i, &device) !=
                NVML_SUCCESS ||
            NVML(nvmlDeviceGetUUID, nvmlDevice_t, char *, unsigned int)(device, nvml_uuids[i],
                                                                        UUID_MAX) != NVML_SUCCESS)
            exit(3);
    }
    nvml_count = (int)count;
}

/* The NVML index that an item stands for, or -1. */
static int index_of(const char *item, bool by_uuid)
{
    int found = -1;
    if (!by_uuid) {
        char *end;
        long number = strtol(item, &end, 10);
        return end == item || number < 0 || number >= nvml_count ? -1 : (int)number;
    }
    for (int i = 0; i < nvml_count; i++) {
        if (strncmp(nvml_uuids[i], item, strlen(item)) != 0)
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

/* What torch.cuda.device_count() makes of the variable and NVML (facts of its behaviour: unset is
 * everything; a list is one of UUIDs or of integers by its first item; it ends before the first
 * item that is of another form, negative, beyond NVML's count, absent or ambiguous; one that names
 * a device twice is empty). Fills NVML indices in the order of torch's ordinals. */
static int count_as_torch(int *indices)
{
    const char *variable = getenv("CUDA_VISIBLE_DEVICES");
    char copy[ANSWER_MAX];
    int count = 0;
    if (!variable) {
        for (; count < nvml_count; count++)
            indices[count] = count;
        return count;
    }
    const bool by_uuid = strncmp(variable, "GPU-", 4) == 0;
    snprintf(copy, sizeof copy, "%s", variable);
    for (char *item = copy, *next; item; item = next) {
        next = strchr(item, ',');
        if (next)
            *next++ = '\0';
        int index = index_of(item, by_uuid);
        if ((strncmp(item, "GPU-", 4) == 0) != by_uuid || index < 0)
            return count;
        for (int i = 0; i < count; i++) {
            if (indices[i] == index)
                return 0;
        }
        indices[count++] = index;
    }
    return count;
}

/* The simulated card's number is the first byte of its UUID. */
static int card_of(const char *uuid) { return (int)strtol(uuid + strlen("GPU-"), NULL, 16) >> 24; }

static int tell(const char *set_inside)
{
    int indices[GPUS_MAX], cuda_count = 0;
    nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!nvml || !driver)
        return 2;
    list_nvml();
    if (set_inside)
        setenv("CUDA_VISIBLE_DEVICES", set_inside, 1);
    int count = count_as_torch(indices);
    printf("torch");
    for (int i = 0; i < count; i++)
        printf(" %d", card_of(nvml_uuids[indices[i]]));

    CUresult rc = DRIVER(cuInit, unsigned int)(0);
    if (rc == CUDA_SUCCESS)
        rc = DRIVER(cuDeviceGetCount, int *)(&cuda_count);
    printf("; cuda");
    if (rc != CUDA_SUCCESS && rc != CUDA_ERROR_NO_DEVICE)
        printf(" error %d", (int)rc);
    for (int i = 0; i < cuda_count; i++) {
        CUuuid uuid;
        DRIVER(cuDeviceGetUuid_v2, CUuuid *, CUdevice)(&uuid, i);
        printf(" %d", uuid.bytes[0]);
    }
    printf("\n");
    return 0;
}

/* --- The table ---------------------------------------------------------------------------------
 */

static const char *self;
static bool with_shim;

#define UUID_1 "GPU-0151c0da-51c0-4da0-8000-000000000001"
#define UUID_3 "GPU-0351c0da-51c0-4da0-8000-000000000003"
#define EVERY "*" /* CUDA_DEVICE_ORDER unset, FASTEST_FIRST and PCI_BUS_ID alike */
#define PCI "PCI_BUS_ID"
#define UNSET NULL

/* GPUs 0 and 2 are slow, 1 and 3 fast: CUDA's own order is 1, 3, 0, 2; NVML's is 0, 1, 2, 3. */
static const struct {
    const char *policy; /* "": none */
    const char *order, *visible;
    const char *right; /* the cards by nvidia-smi's numbers, in CUDA's order */
    const char *torch; /* where torch takes other cards, though as many: NULL, as CUDA */
} table[] = {
    /* Two fast cards, in the order 3, 1: integers count in that list, whatever CUDA's own order. */
    {"devices=3,1", EVERY, UNSET, " 3 1", NULL},
    {"devices=3,1", EVERY, "", "", NULL},
    {"devices=3,1", EVERY, "0", " 3", NULL},
    {"devices=3,1", EVERY, "1", " 1", NULL},
    {"devices=3,1", EVERY, "1,0", " 1 3", NULL},
    {"devices=3,1", EVERY, "0,1", " 3 1", NULL},
    {"devices=3,1", EVERY, "3", "", NULL},       /* there is no fourth in this list */
    {"devices=3,1", EVERY, "0,3,1", " 3", NULL}, /* ends before the item that is not there */
    {"devices=3,1", EVERY, "-1", "", NULL},
    {"devices=3,1", EVERY, "1,-1,0", " 1", NULL},
    {"devices=3,1", EVERY, "0,0", "", NULL}, /* twice the same: none */
    {"devices=3,1", EVERY, "0,1,0", "", NULL},
    {"devices=3,1", EVERY, "1gpu", " 1", NULL}, /* as strtol reads it */
    {"devices=3,1", EVERY, "x,0", "", NULL},
    {"devices=3,1", EVERY, "0,x,1", " 3", NULL},
    {"devices=3,1", EVERY, UUID_1, " 1", NULL},
    {"devices=3,1", EVERY, UUID_1 "," UUID_3, " 1 3", NULL},
    {"devices=3,1", EVERY, UUID_3 ",0", " 3", NULL}, /* ends at an item of the other form */
    {"devices=3,1", EVERY, "0," UUID_1, " 3", NULL},
    {"devices=3,1", EVERY, "GPU-01", " 1", NULL},
    {"devices=3,1", EVERY, "GPU-01,GPU-03", " 1 3", NULL},
    {"devices=3,1", EVERY, "GPU-0", "", NULL}, /* both begin so */
    {"devices=3,1", EVERY, "GPU-03,GPU-0,GPU-01", " 3", NULL},
    {"devices=3,1", EVERY, "GPU-03," UUID_3, "", NULL}, /* twice the same, differently spelt */
    {"devices=3,1", EVERY, "GPU-02", "", NULL},         /* there, but not granted */
    {"devices=3,1", EVERY, "GPU-03,GPU-02,GPU-01", " 3", NULL},

    /* Slow, fast, slow: the order granted is the order seen, and the faster one does not come
       first. */
    {"devices=0-2", EVERY, UNSET, " 0 1 2", NULL},
    {"devices=0-2", EVERY, "2,0", " 2 0", NULL},
    {"devices=0-2", EVERY, "1", " 1", NULL},
    {"devices=0-2", EVERY, "3", "", NULL},
    {"devices=0-2", EVERY, "GPU-02,GPU-01", " 2 1", NULL},

    /* By other names than numbers; one card; all by name; with a cap, which changes none of it. */
    {"devices=" UUID_3 ",0000:04:00.0", EVERY, UNSET, " 3 0", NULL},
    {"devices=GPU-02", EVERY, UNSET, " 2", NULL},
    {"devices=GPU-02", EVERY, "0", " 2", NULL},
    {"devices=GPU-02", EVERY, "1", "", NULL},
    {"devices=GPU-02", EVERY, "GPU-0", " 2", NULL}, /* the one granted is the only one there is */
    {"devices=0-3", EVERY, UNSET, " 0 1 2 3", NULL},
    {"devices=0-3", EVERY, "3,2", " 3 2", NULL},
    {"devices=3,1;memory=1GiB", EVERY, "1", " 1", NULL},

    /* None at all, whatever the variable says. */
    {"devices=none", EVERY, UNSET, "", NULL},
    {"devices=none", EVERY, "0", "", NULL},

    /* No view: CUDA's numbers are its own. Torch counts right, and (as without gpushim) takes
     * NVML's numbers for CUDA's, which holds in PCI order only. */
    {"memory=1GiB", "FASTEST_FIRST", UNSET, " 1 3 0 2", " 0 1 2 3"},
    {"memory=1GiB", UNSET, "0", " 1", " 0"},
    {"memory=1GiB", UNSET, "2,3", " 0 2", " 2 3"},
    {"memory=1GiB", PCI, UNSET, " 0 1 2 3", NULL},
    {"memory=1GiB", PCI, "3,0", " 3 0", NULL},
    {"memory=1GiB", PCI, "3,9,0", " 3", NULL},
    {"memory=1GiB", EVERY, "GPU-03,GPU-00", " 3 0", NULL},
    {"memory=1GiB", EVERY, "", "", NULL},

    /* No policy at all: the same as without the shim. */
    {"", UNSET, UNSET, " 1 3 0 2", " 0 1 2 3"},
    {"", PCI, "2,-1,1", " 2", NULL},
    {"", EVERY, "GPU-03," UUID_1, " 3 1", NULL},
    {"", EVERY, "1,1", "", NULL},
};

static void set_or_unset(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* Runs this program as `tell` under one row. `inside`: the variable is set after the start. */
static void ask(size_t row, const char *order, bool inside, char answer[ANSWER_MAX])
{
    int out[2];
    size_t length = 0;
    assert_int_equal(pipe(out), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        set_or_unset("GPUSHIM_POLICY", table[row].policy[0] ? table[row].policy : NULL);
        set_or_unset("CUDA_DEVICE_ORDER", order);
        set_or_unset("CUDA_VISIBLE_DEVICES", inside ? NULL : table[row].visible);
        execl(self, self, "tell", inside ? table[row].visible : NULL, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    for (ssize_t got; length < ANSWER_MAX - 1 &&
                      (got = read(out[0], answer + length, ANSWER_MAX - 1 - length)) > 0;)
        length += (size_t)got;
    answer[length] = '\0';
    close(out[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static bool row_holds(size_t row, const char *order, bool inside)
{
    char answer[ANSWER_MAX], right[ANSWER_MAX];
    ask(row, order, inside, answer);
    snprintf(right, sizeof right, "torch%s; cuda%s\n",
             table[row].torch ? table[row].torch : table[row].right, table[row].right);
    if (strcmp(answer, right) == 0)
        return true;
    fprintf(stderr, "%s, CUDA_DEVICE_ORDER %s, CUDA_VISIBLE_DEVICES %s%s\n  is    %s  not   %s",
            table[row].policy[0] ? table[row].policy : "no policy", order ? order : "unset",
            table[row].visible ? table[row].visible : "unset", inside ? ", set inside" : "", answer,
            right);
    return false;
}

static void test_table(void **state)
{
    (void)state;
    static const char *const orders[] = {UNSET, "FASTEST_FIRST", PCI};
    int wrong = 0;
    for (size_t row = 0; row < sizeof table / sizeof table[0]; row++) {
        if (table[row].policy[0] && !with_shim)
            continue;
        const bool every = table[row].order && strcmp(table[row].order, EVERY) == 0;
        for (size_t i = 0; i < (every ? sizeof orders / sizeof orders[0] : 1); i++) {
            const char *order = every ? orders[i] : table[row].order;
            wrong += !row_holds(row, order, false);
            if (table[row].visible)
                wrong += !row_holds(row, order, true);
        }
    }
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "tell") == 0)
        return tell(argc > 2 ? argv[2] : NULL);
    self = argv[0];
    with_shim = argc > 1 && strcmp(argv[1], "shim") == 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
