/* posture.h -- inert, active or refuse: what the policy makes of this process, decided once.
 *
 * Knows: which texts apply, who the process is. Must not know: GPUs, CUDA, NVML.
 * Decided at the first look-up or call of a driver name, in the environment as it is then.
 * Thread-safe; a child of fork keeps its parent's decision. Preserves errno.
 */
#ifndef GPUSHIM_SHIM_POSTURE_H
#define GPUSHIM_SHIM_POSTURE_H

#include "hooks.h"
#include "policy.h"

#include <stdbool.h>

enum posture {
    POSTURE_INERT,  /* no policy restricts this process */
    POSTURE_ACTIVE, /* a policy does */
    POSTURE_REFUSE  /* a policy is there and cannot be applied: CUDA is refused */
};

struct posture_decision {
    enum posture posture;
    unsigned int needs; /* bits of enum hook_when; 0 when inert */
    size_t layer_count;
    struct policy_settings layers[POLICY_LAYERS_MAX]; /* outermost first */
    struct text_line refusal;                         /* why, when POSTURE_REFUSE */
};

/* Decides if need be. The decision stays where it is for the life of the process; NULL while this
 * very thread is still deciding (a look-up of a name service that came back to us): treat as inert.
 */
const struct posture_decision *posture(void);

/* The bits of `when` for which this process needs hooks. */
unsigned int posture_needs(unsigned int when);

#endif
