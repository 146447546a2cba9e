/* visible.c -- see visible.h.
 *
 * The first entry decides whether the list is one of UUID prefixes (of GPUs, or of MIG devices) or
 * of integers. The list ends before the first entry that isn't one of its kind or names no card; a
 * card named twice leaves none. A card that is divided is seen as its first MIG device, and of MIG
 * devices one is seen at most.
 */
#include "visible.h"

#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { INTEGER, GPU, MIG };

static enum kind kind_of(const char *entry)
{
    if (strncmp(entry, "GPU-", 4) == 0)
        return GPU;
    return strncmp(entry, "MIG-", 4) == 0 ? MIG : INTEGER;
}

/* "MIG-GPU-UUID/GI/CI", the name that MIG devices had before they had UUIDs */
static void older_text(const struct gpu *mig, char *text, size_t bytes)
{
    char card[UUID_TEXT];

    machine_uuid_text(machine_gpu(mig->parent), card);
    snprintf(text, bytes, "MIG-%s/%d/0", card, MIG_FIRST_GPU_INSTANCE + mig->mig_index);
}

/* The card or MIG device whose UUID alone begins with the entry; -1 if none or several do. */
static int gpu_of_uuid(const char *entry, size_t length)
{
    int found = -1;

    for (int i = 0; i < machine_device_count(); i++) {
        char text[UUID_TEXT], older[2 * UUID_TEXT] = "";
        machine_uuid_text(machine_gpu(i), text);
        if (machine_gpu(i)->is_mig)
            older_text(machine_gpu(i), older, sizeof older);
        if ((length < UUID_TEXT && strncmp(text, entry, length) == 0) ||
            (length < sizeof older && strncmp(older, entry, length) == 0)) {
            if (found >= 0)
                return -1;
            found = i;
        }
    }
    return found;
}

static int gpu_of_integer(const char *entry, const int order[])
{
    char *end;
    long value = strtol(entry, &end, 10);

    return end == entry || value < 0 || value >= machine_gpu_count() ? -1 : order[value];
}

/* Puts MIG devices in the place of cards that are divided, and leaves out all but the first. */
static int divide(int gpus[], int count)
{
    int kept = 0, any_mig = 0;

    for (int i = 0; i < count; i++) {
        const struct gpu *gpu = machine_gpu(gpus[i]);
        if (gpu->migs == 0)
            continue;
        if (gpu->migs != MIG_OFF)
            gpu = machine_gpu(gpu->first_mig);
        if (gpu->is_mig && any_mig)
            continue;
        any_mig |= gpu->is_mig;
        gpus[kept++] = gpu->index;
    }
    return kept;
}

static int list(const char *devices, const char *order, int gpus[])
{
    int all[MACHINE_MAX_GPUS], count = 0;

    if (order && strcmp(order, "PCI_BUS_ID") == 0)
        for (int i = 0; i < machine_gpu_count(); i++)
            all[i] = i;
    else
        machine_fastest_first(all);
    if (!devices) {
        memcpy(gpus, all, sizeof all[0] * (size_t)machine_gpu_count());
        return machine_gpu_count();
    }
    enum kind kind = kind_of(devices);
    for (const char *entry = devices; entry; entry = strchr(entry, ',')) {
        entry += entry != devices;
        if (kind_of(entry) != kind)
            break;
        int gpu =
            kind == INTEGER ? gpu_of_integer(entry, all) : gpu_of_uuid(entry, strcspn(entry, ","));
        if (gpu < 0)
            break;
        for (int i = 0; i < count; i++)
            if (gpus[i] == gpu)
                return 0;
        gpus[count++] = gpu;
    }
    return count;
}

int visible_gpus(const char *devices, const char *order, int gpus[])
{
    return divide(gpus, list(devices, order, gpus));
}
