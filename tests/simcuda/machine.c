/* machine.c -- see machine.h. UUIDs and PCI ids are made of the index, so that tests can write them
 * down. */
#include "machine.h"

#include "settings.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct gpu gpus[MACHINE_MAX_GPUS];
static int gpu_count;
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

static void read_machine(void)
{
    const char *text = settings_gpus();

    while (*text) {
        uint64_t bytes = settings_size("SIMCUDA_GPUS", &text);
        if (*text++ != '@' || gpu_count == MACHINE_MAX_GPUS)
            settings_die("SIMCUDA_GPUS", settings_gpus());
        make_gpu(gpu_count++, read_kind(&text), bytes);
        if (*text != '\0' && *text++ != ',')
            settings_die("SIMCUDA_GPUS", settings_gpus());
    }
}

int machine_gpu_count(void)
{
    pthread_once(&once, read_machine);
    return gpu_count;
}

const struct gpu *machine_gpu(int index)
{
    return index >= 0 && index < machine_gpu_count() ? &gpus[index] : NULL;
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
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
             u[15]);
}

void machine_pci_text(const struct gpu *gpu, int domain_digits, char text[PCI_TEXT])
{
    snprintf(text, PCI_TEXT, "%0*X:%02X:%02X.0", domain_digits, (unsigned int)gpu->pci_domain,
             (unsigned int)gpu->pci_bus, (unsigned int)gpu->pci_device);
}

int machine_peers(const struct gpu *one, const struct gpu *other)
{
    return one != other && one->kind == other->kind;
}
