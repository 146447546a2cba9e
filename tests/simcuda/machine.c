/* machine.c -- see machine.h. UUIDs and PCI ids are made of the index, so that tests can write them
 * down. */
#include "machine.h"

#include "settings.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct gpu gpus[MACHINE_MAX_GPUS];
static int gpu_count, device_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct gpu kinds[] = {
    [GPU_GEFORCE] = {.kind = GPU_GEFORCE,
                     .name = "Simulated GeForce",
                     .cc_major = 8,
                     .cc_minor = 6,
                     .multiprocessors = 82,
                     .clock_khz = 1695000,
                     .memory_clock_khz = 9751000,
                     .bus_bits = 384},
    [GPU_TESLA] = {.kind = GPU_TESLA,
                   .name = "Simulated Tesla",
                   .cc_major = 8,
                   .cc_minor = 0,
                   .multiprocessors = 108,
                   .clock_khz = 1410000,
                   .memory_clock_khz = 1593000,
                   .bus_bits = 5120},
};

static void make_gpu(int index, enum gpu_kind kind, uint64_t bytes)
{
    static const unsigned char uuid[UUID_BYTES] = {0,    0x51, 0xc0, 0xda, 0x51,
                                                   0xc0, 0x4d, 0xa0, 0x80};
    struct gpu *gpu = &gpus[index];

    *gpu = kinds[kind];
    gpu->index = index;
    gpu->migs = MIG_OFF;
    gpu->bytes = bytes;
    gpu->pci_bus = 4 + 2 * index;
    memcpy(gpu->uuid, uuid, sizeof uuid);
    gpu->uuid[0] = gpu->uuid[UUID_BYTES - 1] = (unsigned char)index;
}

static enum gpu_kind read_kind(const char **text)
{
    static const char *const names[] = {[GPU_GEFORCE] = "geforce", [GPU_TESLA] = "tesla"};

    for (enum gpu_kind kind = GPU_GEFORCE; kind <= GPU_TESLA; kind++) {
        size_t length = strlen(names[kind]);
        if (strncmp(*text, names[kind], length) == 0) {
            *text += length;
            return kind;
        }
    }
    settings_die("SIMCUDA_GPUS", *text);
}

/* "/mig=3" */
static int read_migs(const char **text)
{
    static const char word[] = "/mig=";
    char *end;

    if (strncmp(*text, word, sizeof word - 1) != 0)
        return MIG_OFF;
    *text += sizeof word - 1;
    long number = strtol(*text, &end, 10);
    if (end == *text || number < 0 || number > MIG_MOST)
        settings_die("SIMCUDA_GPUS", *text);
    *text = end;
    return (int)number;
}

/* A slice of a card: an eighth of its memory, a seventh of its multiprocessors. */
static void add_migs(struct gpu *card)
{
    card->first_mig = device_count;
    for (int i = 0; i < card->migs; i++) {
        if (device_count == MACHINE_MAX_GPUS)
            settings_die("SIMCUDA_GPUS", settings_gpus());
        struct gpu *mig = &gpus[device_count];
        *mig = *card;
        mig->index = device_count++;
        mig->migs = MIG_OFF;
        mig->is_mig = 1;
        mig->parent = card->index;
        mig->mig_index = i;
        mig->bytes = card->bytes / 8;
        mig->multiprocessors = card->multiprocessors / 7;
        mig->name = card->kind == GPU_TESLA ? "Simulated Tesla MIG 1g" : "Simulated GeForce MIG 1g";
        mig->uuid[UUID_BYTES - 2] = 0x4d;
        mig->uuid[UUID_BYTES - 1] = (unsigned char)i;
    }
}

static void read_machine(void)
{
    const char *text = settings_gpus();

    while (*text) {
        uint64_t bytes = settings_size("SIMCUDA_GPUS", &text);
        if (*text++ != '@' || gpu_count == MACHINE_MAX_GPUS)
            settings_die("SIMCUDA_GPUS", settings_gpus());
        enum gpu_kind kind = read_kind(&text);
        make_gpu(gpu_count, kind, bytes);
        gpus[gpu_count++].migs = read_migs(&text);
        if (*text != '\0' && *text++ != ',')
            settings_die("SIMCUDA_GPUS", settings_gpus());
    }
    device_count = gpu_count;
    for (int i = 0; i < gpu_count; i++)
        add_migs(&gpus[i]);
}

int machine_device_count(void)
{
    pthread_once(&once, read_machine);
    return device_count;
}

int machine_gpu_count(void)
{
    pthread_once(&once, read_machine);
    return gpu_count;
}

const struct gpu *machine_gpu(int index)
{
    return index >= 0 && index < machine_device_count() ? &gpus[index] : NULL;
}

void machine_fastest_first(int order[])
{
    int count = machine_gpu_count(), n = 0;

    for (int i = 0; i < count; i++)
        if (gpus[i].kind == GPU_TESLA)
            order[n++] = i;
    for (int i = 0; i < count; i++)
        if (gpus[i].kind != GPU_TESLA)
            order[n++] = i;
}

void machine_uuid_text(const struct gpu *gpu, char text[UUID_TEXT])
{
    const unsigned char *u = gpu->uuid;

    snprintf(text, UUID_TEXT,
             "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             gpu->is_mig ? "MIG" : "GPU", u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8],
             u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

void machine_pci_text(const struct gpu *gpu, int domain_digits, char text[PCI_TEXT])
{
    snprintf(text, PCI_TEXT, "%0*X:%02X:%02X.0", domain_digits, (unsigned int)gpu->pci_domain,
             (unsigned int)gpu->pci_bus, (unsigned int)gpu->pci_device);
}

int machine_peers(const struct gpu *one, const struct gpu *other)
{
    return one != other && one->kind == other->kind && !one->is_mig && !other->is_mig;
}
