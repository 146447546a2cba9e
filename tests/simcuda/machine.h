/* machine.h -- the simulated cards, in PCI order, and behind them their MIG devices (SIMCUDA_GPUS).
 *
 * Knows: what each card is. Must not know: who uses it, or CUDA_VISIBLE_DEVICES.
 * Used by both libraries. Thread-safe; valid at any time.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_MACHINE_H
#define GPUSHIM_TESTS_SIMCUDA_MACHINE_H

#include <stddef.h>
#include <stdint.h>

enum {
    MACHINE_MAX_GPUS = 64,
    UUID_BYTES = 16,
    UUID_TEXT = 41, /* "GPU-", 36 characters and the end */
    PCI_TEXT = 32
};

enum gpu_kind { GPU_GEFORCE, GPU_TESLA };

enum { MIG_OFF = -1, MIG_MOST = 7, MIG_FIRST_GPU_INSTANCE = 7 };

struct gpu {
    int index; /* in PCI order; of a MIG device, behind those of the cards */
    int migs;  /* of a card: how many MIG devices it is divided into, or MIG_OFF */
    int first_mig;
    int is_mig;
    int parent, mig_index; /* of a MIG device: its card, and its number there */
    enum gpu_kind kind;
    uint64_t bytes;
    unsigned char uuid[UUID_BYTES];
    int pci_domain, pci_bus, pci_device;
    const char *name;
    int cc_major, cc_minor;
    int multiprocessors;
    int clock_khz, memory_clock_khz, bus_bits;
};

int machine_gpu_count(void);    /* the cards */
int machine_device_count(void); /* the MIG devices, too */
const struct gpu *machine_gpu(int index);
/* Fills order[] with the count's indices, the faster kind first, each kind in PCI order. */
void machine_fastest_first(int order[]);
void machine_uuid_text(const struct gpu *gpu, char text[UUID_TEXT]);
/* "0000:04:00.0" with 4 digits of domain (CUDA) or 8 (NVML) */
void machine_pci_text(const struct gpu *gpu, int domain_digits, char text[PCI_TEXT]);
/* 1 if the two cards can reach each other's memory: two different cards of one kind. */
int machine_peers(const struct gpu *one, const struct gpu *other);

#endif
