/* machine.h -- the GPUs of this machine, as nvidia-smi numbers them.
 *
 * Knows: NVML, and the driver's procfs entries where there is no NVML. Must not know: the policy,
 * CUDA. Creates no CUDA context; leaves NVML's reference count as it was.
 */
#ifndef GPUSHIM_SHIM_MACHINE_H
#define GPUSHIM_SHIM_MACHINE_H

#include "policy.h"

/* Fills `gpus` (room for POLICY_GPUS_MAX) in PCI order, behind them their MIG devices as far as
 * NVML tells of them, and returns their number; or a negative number with `why` saying what could
 * not be asked. Thread-safe. */
int machine_list(struct policy_gpu *gpus, struct text_line *why);

/* The procfs part: `root` is "/proc/driver/nvidia/gpus", `nodes` the prefix of the device nodes,
 * "/dev/nvidia". Only GPUs whose node opens; an entry without a whole UUID makes the list unusable.
 */
int machine_list_procfs(const char *root, const char *nodes, struct policy_gpu *gpus,
                        struct text_line *why);

#endif
