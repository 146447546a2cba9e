/* granted.h -- the GPUs that the policy grants this process, before CUDA_VISIBLE_DEVICES.
 *
 * Knows: the machine's list and the policy's. Must not know: CUDA ordinals, what has been
 * allocated.
 */
#ifndef GPUSHIM_SHIM_GRANTED_H
#define GPUSHIM_SHIM_GRANTED_H

#include "policy.h"

struct granted {
    struct policy_gpu gpus[POLICY_GPUS_MAX]; /* nvidia-smi's order, where they are the machine's */
    size_t gpu_count;
    /* In the order granted. A GPU that is divided into MIG devices is granted as these, each under
     * the GPU's cap: CUDA can use nothing else of it. */
    struct policy_grant grants[POLICY_GPUS_MAX];
    size_t count;
    /* The GPUs that are granted whole or in part, each once: what NVML numbers. */
    uint8_t cards[POLICY_GPUS_MAX];
    size_t card_count;
};

enum granted_status {
    GRANTED_OK,
    GRANTED_UNLISTED, /* the machine's GPUs cannot be listed; `why` says why */
    GRANTED_REFUSED   /* the policy names what is not there; `why` is "file:line:column: why" */
};

/* The grant on this machine, resolved by the first call that succeeds and then for good. `*granted`
 * is meaningful only with GRANTED_OK. Thread-safe; may start and stop NVML. */
enum granted_status granted_on_machine(const struct granted **granted, struct text_line *why);

/* Fills the rest for the GPUs, `gpu_count` of them, that the caller has put into `granted`. */
enum granted_status granted_of(struct granted *granted, struct text_line *why);

/* The cap in bytes of a granted GPU whose real total is `total_bytes`: the smaller of its absolute
 * size and its share; UINT64_MAX without one. `*layer` and `*line` say who set it; untouched
 * without one. */
uint64_t granted_cap(const struct granted *granted, size_t position, uint64_t total_bytes,
                     size_t *layer, uint32_t *line);

const char *granted_uuid(const struct granted *granted, size_t position);
/* The GPU that a granted one is, or is a MIG device of: an index into `gpus`. */
uint8_t granted_card(const struct granted *granted, size_t position);

#endif
