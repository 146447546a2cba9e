/* machine.c -- see machine.h. */
#include "machine.h"
#include "driver.h"
#include "system_policy.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 256, INFORMATION_BYTES = 2048 };

static int failed(struct text_line *why, const char *what, int code)
{
    text_add(why, what);
    text_add(why, " answers ");
    text_add_signed(why, code);
    return -1;
}

static bool nvml_complete(void)
{
    return real_nvml.nvmlInit_v2 && real_nvml.nvmlShutdown && real_nvml.nvmlDeviceGetCount_v2 &&
           real_nvml.nvmlDeviceGetHandleByIndex_v2 && real_nvml.nvmlDeviceGetUUID &&
           real_nvml.nvmlDeviceGetPciInfo_v3;
}

/* One MIG device; its older name is made as "MIG-" PARENT "/" GPU INSTANCE "/" COMPUTE INSTANCE. */
static nvmlReturn_t ask_mig(nvmlDevice_t device, struct policy_gpu *mig,
                            const struct policy_gpu *parent, size_t parent_index)
{
    unsigned int gpu_instance, compute_instance;
    struct text_line older;
    *mig = *parent;
    mig->is_mig = true;
    mig->parent = (uint8_t)parent_index;
    nvmlReturn_t rc = real_nvml.nvmlDeviceGetUUID(device, mig->uuid, sizeof mig->uuid);
    if (rc != NVML_SUCCESS || !real_nvml.nvmlDeviceGetGpuInstanceId ||
        !real_nvml.nvmlDeviceGetComputeInstanceId ||
        real_nvml.nvmlDeviceGetGpuInstanceId(device, &gpu_instance) != NVML_SUCCESS ||
        real_nvml.nvmlDeviceGetComputeInstanceId(device, &compute_instance) != NVML_SUCCESS)
        return rc;
    text_start(&older);
    text_add(&older, "MIG-");
    text_add(&older, parent->uuid);
    text_add(&older, "/");
    text_add_number(&older, gpu_instance);
    text_add(&older, "/");
    text_add_number(&older, compute_instance);
    if (older.length < sizeof mig->older)
        memcpy(mig->older, older.bytes, older.length + 1);
    return rc;
}

/* Appends the MIG devices of the first `count` GPUs, and returns how many entries there are then.
 * Those that this process may not see are not there; so is one that goes while we look. */
static size_t add_migs(struct policy_gpu *gpus, size_t count)
{
    size_t all = count;
    if (!real_nvml.nvmlDeviceGetMaxMigDeviceCount || !real_nvml.nvmlDeviceGetMigDeviceHandleByIndex)
        return count;
    for (size_t i = 0; i < count; i++) {
        nvmlDevice_t device, mig;
        unsigned int most = 0;
        if (gpus[i].uuid[0] == '\0' ||
            real_nvml.nvmlDeviceGetHandleByIndex_v2((unsigned int)i, &device) != NVML_SUCCESS ||
            real_nvml.nvmlDeviceGetMaxMigDeviceCount(device, &most) != NVML_SUCCESS)
            continue;
        for (unsigned int j = 0; j < most && all < POLICY_GPUS_MAX; j++) {
            if (real_nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, j, &mig) == NVML_SUCCESS &&
                ask_mig(mig, &gpus[all], &gpus[i], i) == NVML_SUCCESS)
                all++;
        }
    }
    return all;
}

static int ask_nvml(struct policy_gpu *gpus, struct text_line *why)
{
    unsigned int count = 0;
    nvmlReturn_t rc = real_nvml.nvmlDeviceGetCount_v2(&count);
    if (rc != NVML_SUCCESS)
        return failed(why, "nvmlDeviceGetCount", (int)rc);
    if (count > POLICY_GPUS_MAX)
        count = POLICY_GPUS_MAX;
    for (unsigned int i = 0; i < count; i++) {
        nvmlDevice_t device;
        nvmlPciInfo_t pci;
        memset(&gpus[i], 0, sizeof gpus[i]);
        rc = real_nvml.nvmlDeviceGetHandleByIndex_v2(i, &device);
        if (rc == NVML_SUCCESS)
            rc = real_nvml.nvmlDeviceGetUUID(device, gpus[i].uuid, sizeof gpus[i].uuid);
        if (rc == NVML_SUCCESS)
            rc = real_nvml.nvmlDeviceGetPciInfo_v3(device, &pci);
        if (rc == NVML_ERROR_NO_PERMISSION) {
            gpus[i].uuid[0] = '\0'; /* a card this process may not open: there, and not to be had */
            continue;
        }
        if (rc != NVML_SUCCESS)
            return failed(why, "NVML, asked for a GPU,", (int)rc);
        gpus[i].pci_domain = pci.domain;
        gpus[i].pci_bus = pci.bus;
        gpus[i].pci_device = pci.device;
    }
    return (int)add_migs(gpus, count);
}

static int list_nvml(struct policy_gpu *gpus, struct text_line *why)
{
    nvmlReturn_t rc = real_nvml.nvmlInit_v2();
    if (rc != NVML_SUCCESS)
        return failed(why, "nvmlInit", (int)rc);
    int count = ask_nvml(gpus, why);
    real_nvml.nvmlShutdown();
    return count;
}

/* What follows "KEY:" and blanks, up to the end of the text; NULL if the key is absent. */
static const char *field(const char *text, const char *key)
{
    const char *found = strstr(text, key);
    if (!found)
        return NULL;
    found += strlen(key);
    while (*found == ' ' || *found == '\t' || *found == ':')
        found++;
    return found;
}

static bool copy_word(char *into, size_t room, const char *word)
{
    size_t length = strcspn(word, " \t\r\n");
    if (length == 0 || length >= room)
        return false;
    memcpy(into, word, length);
    into[length] = '\0';
    return true;
}

static bool hex_number(const char **cursor, unsigned int *number)
{
    const char *c = *cursor;
    for (*number = 0;; c++) {
        if (*c >= '0' && *c <= '9')
            *number = *number * 16 + (unsigned int)(*c - '0');
        else if ((*c | 32) >= 'a' && (*c | 32) <= 'f')
            *number = *number * 16 + (unsigned int)((*c | 32) - 'a') + 10;
        else
            break;
    }
    bool any = c != *cursor;
    *cursor = *c == ':' || *c == '.' ? c + 1 : c;
    return any;
}

static bool join(char *path, const char *first, const char *second, const char *third)
{
    size_t a = strlen(first), b = strlen(second), c = strlen(third);
    if (a + b + c >= PATH_BYTES)
        return false;
    memcpy(path, first, a);
    memcpy(path + a, second, b);
    memcpy(path + a + b, third, c + 1);
    return true;
}

static bool opens(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    close(fd);
    return true;
}

/* Reads the entry of one GPU; `id` is its folder's name, a PCI id. 1: filled; 0: not for this
 * process, its node does not open; -1: unusable. */
static int read_entry(const char *root, const char *nodes, const char *id, struct policy_gpu *gpu)
{
    char folder[PATH_BYTES], path[PATH_BYTES], text[INFORMATION_BYTES], minor[16];
    const char *cursor = id, *value;
    struct stat status;
    memset(gpu, 0, sizeof *gpu);
    if (!hex_number(&cursor, &gpu->pci_domain) || !hex_number(&cursor, &gpu->pci_bus) ||
        !hex_number(&cursor, &gpu->pci_device))
        return -1;
    if (!join(folder, root, "/", id) || !join(path, folder, "/", "information"))
        return -1;
    long length = read_whole_file(path, text, sizeof text - 1, &status);
    if (length <= 0)
        return -1;
    text[length] = '\0';
    value = field(text, "Device Minor");
    if (!value || !copy_word(minor, sizeof minor, value) || !join(path, nodes, minor, ""))
        return -1;
    if (!opens(path))
        return 0;
    value = field(text, "GPU UUID");
    if (!value || !copy_word(gpu->uuid, sizeof gpu->uuid, value) || strchr(gpu->uuid, '?'))
        return -1; /* question marks until the driver has first met the card */
    return 1;
}

static bool comes_before(const struct policy_gpu *a, const struct policy_gpu *b)
{
    if (a->pci_domain != b->pci_domain)
        return a->pci_domain < b->pci_domain;
    if (a->pci_bus != b->pci_bus)
        return a->pci_bus < b->pci_bus;
    return a->pci_device < b->pci_device;
}

static int insert_sorted(struct policy_gpu *gpus, int count, const struct policy_gpu *gpu)
{
    int at = count;
    for (; at > 0 && comes_before(gpu, &gpus[at - 1]); at--)
        gpus[at] = gpus[at - 1];
    gpus[at] = *gpu;
    return count + 1;
}

int machine_list_procfs(const char *root, const char *nodes, struct policy_gpu *gpus,
                        struct text_line *why)
{
    int count = 0;
    DIR *folder = opendir(root);
    if (!folder) {
        text_add(why, "there is no NVML (libnvidia-ml.so.1) and no ");
        text_add(why, root);
        return -1;
    }
    for (struct dirent *entry; count >= 0 && (entry = readdir(folder));) {
        struct policy_gpu gpu;
        if (entry->d_name[0] == '.')
            continue;
        int usable = read_entry(root, nodes, entry->d_name, &gpu);
        if (usable < 0) {
            text_add(why, "there is no NVML (libnvidia-ml.so.1), and the UUID of the GPU at ");
            text_add(why, entry->d_name);
            text_add(why, " cannot be read from ");
            text_add(why, root);
            count = -1;
        } else if (usable && count < POLICY_GPUS_MAX) {
            count = insert_sorted(gpus, count, &gpu);
        }
    }
    closedir(folder);
    return count;
}

int machine_list(struct policy_gpu *gpus, struct text_line *why)
{
    if (nvml_open(true) && nvml_complete())
        return list_nvml(gpus, why);
    return machine_list_procfs("/proc/driver/nvidia/gpus", "/dev/nvidia", gpus, why);
}
