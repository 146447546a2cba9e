/* view.h -- which GPUs this process sees, by which ordinals, under which caps.
 *
 * Knows: cuInit, the grant, the driver's own filter. Must not know: allocations.
 * The driver itself hides and orders GPUs (it reads CUDA_VISIBLE_DEVICES in cuInit); faked answers
 * would make the runtime refuse every call (cudaErrorSoftwareValidityNotEstablished).
 */
#ifndef GPUSHIM_SHIM_VIEW_H
#define GPUSHIM_SHIM_VIEW_H

#include "cuda_abi.h"
#include "policy.h"

#include <stdbool.h>

/* cuInit under the policy. The first call of a process runs alone, others wait for it; until one
 * has succeeded every call runs whole. Thread-safe. CUDA_ERROR_NOT_PERMITTED, with one line at
 * error, where the policy cannot be applied. */
CUresult view_init(unsigned int flags);

/* True when the caps of all ordinals are known. Where the driver was initialised behind our back it
 * is brought under the policy first. `*refusal` is what an allocation must answer if the answer is
 * false: CUDA_SUCCESS (the driver is not initialised, let it say so) or CUDA_ERROR_NOT_PERMITTED.
 */
bool view_ready(CUresult *refusal);

/* The ordinal of the visible GPU with this UUID ("GPU-..."), or -1. */
int view_ordinal_of(const char *uuid);

/* The UUID of a visible GPU ("GPU-..."); `ordinal` is in [0, view_count()). Lives as long as the
 * process. */
const char *view_uuid(int ordinal);

/* Number of visible GPUs; 0 before view_init() has succeeded. */
int view_count(void);

/* Appends "GPU 3" (nvidia-smi's number of an ordinal), or "device 0" where it is not known. */
void view_add_device(struct text_line *line, int ordinal);
/* Appends "this process sees 2 GPUs: 0 = GPU 3, 1 = GPU 1 (nvidia-smi's numbers)". */
void view_add_mapping(struct text_line *line);
/* Appends the rule that sets the view, or the memory cap of an ordinal: "rule NAME of FILE:LINE".
 */
void view_add_rule(struct text_line *line);
void view_add_cap_rule(struct text_line *line, int ordinal);

#endif
