/* visible.c -- see visible.h.
 *
 * The first entry decides whether the list is one of UUID prefixes or of integers. The list ends
 * before the first entry that isn't one of its kind or names no card; a card named twice leaves
 * none.
 */
#include "visible.h"

#include "machine.h"

#include <stdlib.h>
#include <string.h>

static const char uuid_prefix[] = "GPU-";

static int is_uuid(const char *entry)
{
    return strncmp(entry, uuid_prefix, sizeof uuid_prefix - 1) == 0;
}

/* The card whose UUID alone begins with the entry; -1 if none or several do. */
static int gpu_of_uuid(const char *entry, size_t length)
{
    int found = -1;

    for (int i = 0; i < machine_gpu_count(); i++) {
        char text[UUID_TEXT];
        machine_uuid_text(machine_gpu(i), text);
        if (length < UUID_TEXT && strncmp(text, entry, length) == 0) {
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

int visible_gpus(const char *devices, const char *order, int gpus[])
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
    int by_uuid = is_uuid(devices);
    for (const char *entry = devices; entry; entry = strchr(entry, ',')) {
        entry += entry != devices;
        if (is_uuid(entry) != by_uuid)
            break;
        int gpu = by_uuid ? gpu_of_uuid(entry, strcspn(entry, ",")) : gpu_of_integer(entry, all);
        if (gpu < 0)
            break;
        for (int i = 0; i < count; i++)
            if (gpus[i] == gpu)
                return 0;
        gpus[count++] = gpu;
    }
    return count;
}
