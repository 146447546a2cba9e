/* nvml_api.h -- nvml.def as declarations, and what it needs of NVML's binary interface beyond
 * shim/nvml_abi.h.
 *
 * Knows: layouts. Must not know: CUDA's view; NVML is physical, in PCI order, whatever
 * CUDA_VISIBLE_DEVICES says.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_NVML_API_H
#define GPUSHIM_TESTS_SIMCUDA_NVML_API_H

#include "api.h"
#include "machine.h"
#include "nvml_abi.h"

#define NVML_ERROR_TIMEOUT ((nvmlReturn_t)10)
#define NVML_ERROR_ARGUMENT_VERSION_MISMATCH ((nvmlReturn_t)25)

struct nvml_uuid { /* nvmlUUID_v1_t */
    unsigned int version, type;
    union {
        char text[41];
        unsigned char bytes[16];
    };
};

struct nvml_memory { /* nvmlMemory_t and nvmlBAR1Memory_t, whose order differs */
    unsigned long long first, second, third;
};

struct nvml_memory_2 { /* nvmlMemory_v2_t */
    unsigned int version;
    unsigned long long total, reserved, free, used;
};

struct nvml_process { /* nvmlProcessInfo_v1_t */
    unsigned int pid;
    unsigned long long bytes;
};

struct nvml_process_2 { /* nvmlProcessInfo_v2_t */
    unsigned int pid;
    unsigned long long bytes;
    unsigned int gpu_instance, compute_instance;
};

struct nvml_utilization { /* nvmlUtilization_t */
    unsigned int gpu, memory;
};

enum nvml_when { ANYTIME, INITIALISED };

/* Prototypes of the functions that serve the rows. */
#define NVML(symbol, served, when, takes) nvmlReturn_t sim_##served PARAMETERS_##takes;
#define NVML_STUB(symbol)
#include "nvml.def"
#undef NVML
#undef NVML_STUB

/* The card behind a handle; NULL: not a handle. And the handle of a card. */
const struct gpu *nvml_gpu(nvmlDevice_t device);
nvmlDevice_t nvml_device(const struct gpu *gpu);

/* nvmlInit's count. */
void nvml_retain(void);
int nvml_release(void); /* 0, or -1 where there was nothing to release */

/* Writes text into a buffer of the caller's: success or NVML_ERROR_INSUFFICIENT_SIZE. */
nvmlReturn_t nvml_write(char *buffer, unsigned int bytes, const char *text);

#endif
