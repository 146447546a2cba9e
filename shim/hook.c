/* hook.c -- see hook.h: the shared beginning of hooks, charges and refusals. */
#include "hook.h"
#include "driver.h"
#include "fork.h"
#include "log.h"
#include "overhead.h"
#include "posture.h"
#include "view.h"

/* The posture's needs, with ENTERED set once the driver is open too: one load on the hot path. */
static unsigned int entered;
static const unsigned int ENTERED = 1U << 31;

static enum hook_entry enter_first(unsigned int when)
{
    const struct posture_decision *decided = posture();
    if (!driver_open(true))
        return HOOK_ABSENT;
    if (!decided)
        return HOOK_FORWARD; /* a call that came back while this thread is deciding */
    if (decided->posture != POSTURE_INERT)
        fork_watch();
    __atomic_store_n(&entered, decided->needs | ENTERED, __ATOMIC_RELEASE);
    return decided->needs & when ? HOOK_ACT : HOOK_FORWARD;
}

enum hook_entry hook_enter(unsigned int when)
{
    const unsigned int needs = __atomic_load_n(&entered, __ATOMIC_ACQUIRE);
    if (!(needs & ENTERED))
        return enter_first(when);
    return needs & when ? HOOK_ACT : HOOK_FORWARD;
}

bool hook_says_nothing_there(CUresult rc)
{
    switch ((int)rc) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_INVALID_HANDLE:
        return true;
    default:
        return false;
    }
}

CUresult hook_find_device(int *device)
{
    CUdevice current = NO_DEVICE;
    const CUresult rc =
        real.cuCtxGetDevice ? real.cuCtxGetDevice(&current) : CUDA_ERROR_NOT_SUPPORTED;
    *device = rc == CUDA_SUCCESS ? current : NO_DEVICE;
    return hook_says_nothing_there(rc) ? CUDA_SUCCESS : rc;
}

CUresult hook_context_device(CUcontext context, int *device)
{
    CUcontext popped;
    *device = NO_DEVICE;
    if (!context || !real.cuCtxPushCurrent_v2 || !real.cuCtxPopCurrent_v2)
        return CUDA_SUCCESS;
    CUresult rc = real.cuCtxPushCurrent_v2(context);
    if (rc != CUDA_SUCCESS)
        return hook_says_nothing_there(rc) ? CUDA_SUCCESS : rc;
    rc = hook_find_device(device);
    real.cuCtxPopCurrent_v2(&popped);
    return rc;
}

CUresult hook_find_owner(uint64_t *owner)
{
    CUcontext context = NULL;
    CUresult rc = real.cuCtxGetCurrent ? real.cuCtxGetCurrent(&context) : CUDA_ERROR_NOT_SUPPORTED;
    *owner = rc == CUDA_SUCCESS ? context_owner((uint64_t)(uintptr_t)context) : 0;
    return rc;
}

uint64_t hook_current_context(void)
{
    uint64_t owner;
    (void)hook_find_owner(&owner);
    return owner;
}

bool hook_start_refusal(struct text_line *line, const char *rule, const char *call, int device,
                        int other)
{
    if (!log_wants(POLICY_LOG_WARN) || !log_first_refusal(rule, call, device, other))
        return false;
    log_start(line);
    text_add(line, call);
    return true;
}

/* One line for a device, then silence: the call is not part of the kind. */
void hook_say_over_cap(const char *call, int device, uint64_t bytes)
{
    struct text_line line;
    if (!hook_start_refusal(&line, "memory", "", device, NO_DEVICE))
        return;
    text_add(&line, call);
    if (bytes) {
        text_add(&line, " of ");
        text_add_size(&line, bytes);
    }
    text_add(&line, " on ");
    view_add_device(&line, device);
    text_add(&line, " refused, out of memory: ");
    const uint64_t held = account_held(device), cap = account_cap(device);
    if (held > cap) /* it was made, measured and undone */
        text_add(&line, "with it ");
    text_add(&line, "this process holds ");
    text_add_size(&line, held);
    text_add(&line, " of the ");
    text_add_size(&line, cap);
    text_add(&line, " that ");
    view_add_cap_rule(&line, device);
    text_add(&line, " allows; free memory, use less, or ask for a larger cap");
    log_write(POLICY_LOG_WARN, &line);
}

CUresult hook_charge(struct charge *charge, int device, const char *call, uint64_t bytes)
{
    CUresult refusal;
    charge->device = NO_DEVICE;
    charge->bytes = bytes;
    charge->owner = 0;
    if (!view_ready(&refusal))
        return refusal;
    if (device < 0 || device >= view_count() || !account_is_capped(device))
        return CUDA_SUCCESS;
    overhead_look(device, bytes);
    if (!account_charge(device, bytes)) {
        hook_refresh(device);
        if (!account_charge(device, bytes) &&
            !(pool_trim(device) && account_charge(device, bytes)) &&
            !(graph_trim(device) && account_charge(device, bytes))) {
            hook_say_over_cap(call, device, bytes);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    charge->device = device;
    return CUDA_SUCCESS;
}

CUresult hook_charge_current(struct charge *charge, const char *call, uint64_t bytes)
{
    int device;
    CUresult rc = hook_find_device(&device);
    if (rc == CUDA_SUCCESS)
        rc = hook_charge(charge, device, call, bytes);
    if (rc != CUDA_SUCCESS || charge->device == NO_DEVICE)
        return rc;
    /* now, since afterwards it is too late for an error */
    rc = hook_find_owner(&charge->owner);
    if (rc != CUDA_SUCCESS)
        hook_refund(charge);
    return rc;
}

CUresult hook_capped_device(CUdevice *device)
{
    CUresult rc = hook_find_device(device);
    if (rc == CUDA_SUCCESS && *device != NO_DEVICE && view_ready(&rc) &&
        !account_is_capped(*device))
        *device = NO_DEVICE;
    return rc;
}

void hook_refund(const struct charge *charge) { account_refund(charge->device, charge->bytes); }

void hook_refresh(int device)
{
    pool_refresh(device);
    graph_refresh(device);
}

bool hook_trim(int device)
{
    const bool pools = pool_trim(device);
    return graph_trim(device) || pools;
}

bool hook_is_capturing(CUstream stream, bool per_thread)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult (*ask)(CUstream, CUstreamCaptureStatus *) =
        per_thread ? real.cuStreamIsCapturing_ptsz : real.cuStreamIsCapturing;
    return ask && ask(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void hook_pause_capture(struct capture_pause *pause)
{
    pause->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    pause->swapped = real.cuThreadExchangeStreamCaptureMode &&
                     real.cuThreadExchangeStreamCaptureMode(&pause->mode) == CUDA_SUCCESS;
}

void hook_resume_capture(const struct capture_pause *pause)
{
    CUstreamCaptureMode mode = pause->mode;
    if (pause->swapped)
        real.cuThreadExchangeStreamCaptureMode(&mode);
}
