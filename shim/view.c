/* view.c -- see view.h. */
#include "view.h"
#include "account.h"
#include "driver.h"
#include "environment.h"
#include "granted.h"
#include "log.h"
#include "once.h"
#include "posture.h"
#include "visible.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN = -1, UUID_HEX = 32 };
static const char VARIABLE[] = "CUDA_VISIBLE_DEVICES=";

/* Written by the one thread that runs view_init(), read after it has succeeded. */
static struct once once;
static const struct granted *granted; /* the machine's; or `own`, where its order does not matter */
static struct granted own;            /* CUDA's own devices in CUDA's own order */
static struct visible_device {
    int index; /* nvidia-smi's, of a MIG device its GPU's, or UNKNOWN */
    bool is_mig;
    const char *uuid; /* in `granted` */
    CUuuid cuda_uuid;
    size_t cap_layer;
    uint32_t cap_line;
} devices[POLICY_GPUS_MAX];
static int device_count;
static char variable[sizeof VARIABLE + POLICY_GPUS_MAX * sizeof own.gpus[0].uuid];
static int refusal_logged;

static CUresult refuse(const struct text_line *why)
{
    struct text_line line;
    if (__atomic_exchange_n(&refusal_logged, 1, __ATOMIC_RELAXED) == 0) {
        log_start(&line);
        text_add(&line, "CUDA refused: ");
        text_add_bytes(&line, why->bytes, why->length);
        log_write(POLICY_LOG_ERROR, &line);
    }
    return CUDA_ERROR_NOT_PERMITTED;
}

static CUresult refuse_because(const char *what, const struct text_line *detail)
{
    struct text_line why;
    text_start(&why);
    text_add(&why, what);
    if (detail)
        text_add_bytes(&why, detail->bytes, detail->length);
    return refuse(&why);
}

static bool uuid_of_device(CUdevice device, CUuuid *uuid)
{
    if (real.cuDeviceGetUuid_v2 && real.cuDeviceGetUuid_v2(uuid, device) == CUDA_SUCCESS)
        return true;
    return real.cuDeviceGetUuid && real.cuDeviceGetUuid(uuid, device) == CUDA_SUCCESS;
}

/* Compares the digits; "GPU-" and "MIG-" are not in CUDA's bytes. Drivers whose MIG devices have no
 * UUID of their own call them "MIG-GPU-UUID/GI/CI", and give their GPU's UUID. */
static bool is_uuid(const CUuuid *uuid, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    int nibble = 0;
    if (strncmp(text, "MIG-GPU-", 8) == 0)
        text += 4;
    for (text += strcspn(text, "-"); *text && *text != '/' && nibble <= UUID_HEX; text++) {
        if (*text == '-')
            continue;
        if (nibble == UUID_HEX)
            return false;
        unsigned char byte = (unsigned char)uuid->bytes[nibble / 2];
        if (*text != digits[nibble % 2 ? byte & 15 : byte >> 4])
            return false;
        nibble++;
    }
    return nibble == UUID_HEX;
}

/* Where the two differ, the first is that of the GPU of which the device is a MIG device. */
static bool is_mig_device(CUdevice device)
{
    CUuuid first, second;
    return real.cuDeviceGetUuid && real.cuDeviceGetUuid_v2 &&
           real.cuDeviceGetUuid(&first, device) == CUDA_SUCCESS &&
           real.cuDeviceGetUuid_v2(&second, device) == CUDA_SUCCESS &&
           memcmp(&first, &second, sizeof first) != 0;
}

/* As NVML has it. */
static void format_uuid(const CUuuid *uuid, bool is_mig, char *text)
{
    static const char digits[] = "0123456789abcdef";
    memcpy(text, is_mig ? "MIG-" : "GPU-", 4);
    text += 4;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *text++ = '-';
        *text++ = digits[(unsigned char)uuid->bytes[i] >> 4];
        *text++ = digits[(unsigned char)uuid->bytes[i] & 15];
    }
    *text = '\0';
}

/* The cap of one visible device, which stands at this position of the grant. */
static CUresult set_cap(CUdevice device, size_t position)
{
    size_t total = 0;
    if (!real.cuDeviceTotalMem_v2 || real.cuDeviceTotalMem_v2(&total, device) != CUDA_SUCCESS)
        return refuse_because("the driver does not say how much memory a GPU has", NULL);
    account_set_cap(device, granted_cap(granted, position, total, &devices[device].cap_layer,
                                        &devices[device].cap_line));
    return CUDA_SUCCESS;
}

/* Of MIG devices the driver shows the first only, whatever else it was asked for. */
static bool ends_at_mig(const uint8_t *chosen, size_t chosen_count, size_t count)
{
    return count > 0 && count < chosen_count &&
           (granted->gpus[granted->grants[chosen[count - 1]].gpu].is_mig ||
            granted->gpus[granted->grants[chosen[count]].gpu].is_mig);
}

/* After a successful cuInit: what does the driver show? `chosen` are positions in `granted` by
 * ordinal, or NULL where there is no view and ordinals are found by UUID. */
static CUresult adopt(const uint8_t *chosen, size_t chosen_count)
{
    int count = 0;
    if (!real.cuDeviceGetCount || real.cuDeviceGetCount(&count) != CUDA_SUCCESS)
        return refuse_because("the driver does not say how many GPUs it shows", NULL);
    if (count > POLICY_GPUS_MAX || (chosen && (size_t)count != chosen_count &&
                                    !ends_at_mig(chosen, chosen_count, (size_t)count)))
        return refuse_because("the driver shows other GPUs than the policy asked it for", NULL);
    for (int i = 0; i < count; i++) {
        CUuuid uuid;
        if (!uuid_of_device(i, &uuid))
            return refuse_because("the driver does not say which GPUs it shows", NULL);
        size_t position = chosen ? chosen[i] : 0;
        while (!chosen && position < granted->count &&
               !is_uuid(&uuid, granted_uuid(granted, position)))
            position++;
        if (position == granted->count || !is_uuid(&uuid, granted_uuid(granted, position)))
            return refuse_because("the driver shows other GPUs than the policy asked it for", NULL);
        devices[i].index = granted == &own ? UNKNOWN : granted_card(granted, position);
        devices[i].is_mig = granted->gpus[granted->grants[position].gpu].is_mig;
        devices[i].uuid = granted_uuid(granted, position);
        devices[i].cuda_uuid = uuid;
        CUresult rc = set_cap(i, position);
        if (rc != CUDA_SUCCESS)
            return rc;
    }
    device_count = count;
    return CUDA_SUCCESS;
}

/* cuInit with the driver's own filter set to what stands in `variable`. */
static CUresult init_with_variable(unsigned int flags)
{
    struct environment_swap swap;
    if (!environment_swap_in(&swap, variable))
        return refuse_because("no memory to hand CUDA_VISIBLE_DEVICES to the driver", NULL);
    CUresult rc = real.cuInit(flags);
    environment_swap_out(&swap);
    return rc;
}

/* Set to the chosen GPUs. */
static CUresult init_filtered(unsigned int flags, const uint8_t *chosen, size_t chosen_count)
{
    char *end = variable + strlen(VARIABLE);
    memcpy(variable, VARIABLE, sizeof VARIABLE);
    for (size_t i = 0; i < chosen_count; i++) {
        const char *uuid = granted_uuid(granted, chosen[i]);
        if (i)
            *end++ = ',';
        memcpy(end, uuid, strlen(uuid) + 1);
        end += strlen(uuid);
    }
    return init_with_variable(flags);
}

/* What becomes of the integers in the program's variable; WITHIN where there is none. */
static enum policy_switch variable_rule(void)
{
    const struct posture_decision *decided = posture();
    return getenv("CUDA_VISIBLE_DEVICES")
               ? policy_cuda_visible_devices(decided->layers, decided->layer_count)
               : POLICY_WITHIN;
}

/* cuInit where all GPUs are granted, in CUDA's own order. A variable that is to be ignored is
 * replaced by one that lists all numbers there can be; the driver drops those beyond the last GPU.
 */
static CUresult init_unfiltered(unsigned int flags)
{
    struct text_line all;
    if (variable_rule() != POLICY_IGNORE)
        return real.cuInit(flags);
    text_start(&all);
    text_add(&all, VARIABLE);
    for (unsigned int i = 0; i < POLICY_GPUS_MAX; i++) {
        text_add(&all, i ? "," : "");
        text_add_number(&all, i);
    }
    memcpy(variable, all.bytes, all.length + 1);
    return init_with_variable(flags);
}

/* The GPUs that CUDA shows anyway, in its own order. */
static CUresult list_own_devices(void)
{
    int count = 0;
    struct text_line why;
    if (!real.cuDeviceGetCount || real.cuDeviceGetCount(&count) != CUDA_SUCCESS ||
        count > POLICY_GPUS_MAX)
        return refuse_because("the driver does not say how many GPUs it shows", NULL);
    for (int i = 0; i < count; i++) {
        CUuuid uuid;
        if (!uuid_of_device(i, &uuid))
            return refuse_because("the driver does not say which GPUs it shows", NULL);
        format_uuid(&uuid, is_mig_device(i), own.gpus[i].uuid);
    }
    text_start(&why);
    granted = &own;
    own.gpu_count = (size_t)count;
    return granted_of(&own, &why) == GRANTED_OK ? CUDA_SUCCESS : refuse(&why);
}

/* Without a view nvidia-smi's numbers have not been needed so far. */
static void add_nvidia_smi_device(struct text_line *line, int ordinal)
{
    const struct granted *machine;
    struct text_line why;
    if (devices[ordinal].index == UNKNOWN && granted_on_machine(&machine, &why) == GRANTED_OK) {
        for (size_t i = 0; i < machine->gpu_count; i++) {
            if (!is_uuid(&devices[ordinal].cuda_uuid, machine->gpus[i].uuid))
                continue;
            text_add(line, machine->gpus[i].is_mig ? "a MIG device of GPU " : "GPU ");
            text_add_number(line, machine->gpus[i].is_mig ? machine->gpus[i].parent : i);
            return;
        }
    }
    view_add_device(line, ordinal);
}

static void log_mapping(void)
{
    struct text_line line;
    for (int i = 0; i < device_count && log_wants(POLICY_LOG_INFO); i++) {
        char name[128] = "";
        log_start(&line);
        text_add(&line, "CUDA device ");
        text_add_number(&line, (uint64_t)i);
        text_add(&line, " = ");
        add_nvidia_smi_device(&line, i);
        text_add(&line, ", ");
        if (real.cuDeviceGetName && real.cuDeviceGetName(name, (int)sizeof name, i) == CUDA_SUCCESS)
            text_add(&line, name);
        text_add(&line, ", ");
        text_add(&line, devices[i].uuid);
        if (real.cuDeviceGetPCIBusId &&
            real.cuDeviceGetPCIBusId(name, (int)sizeof name, i) == CUDA_SUCCESS) {
            text_add(&line, ", ");
            text_add(&line, name);
        }
        text_add(&line, ", memory cap ");
        if (account_is_capped(i))
            text_add_size(&line, account_cap(i));
        else
            text_add(&line, "none");
        log_write(POLICY_LOG_INFO, &line);
    }
}

static CUresult refuse_all_devices(void)
{
    struct text_line line;
    if (!log_first_refusal("devices", "cuInit", UNKNOWN, UNKNOWN))
        return CUDA_ERROR_NO_DEVICE;
    log_start(&line);
    text_add(&line, "no GPU for this process: ");
    view_add_rule(&line);
    text_add(&line, " grants none");
    log_write(POLICY_LOG_WARN, &line);
    return CUDA_ERROR_NO_DEVICE;
}

/* The machine cannot be listed. Most often there is no working driver, which cuInit says best. */
static CUresult init_unlisted(unsigned int flags, const struct text_line *why)
{
    CUresult rc = real.cuInit(flags);
    if (rc != CUDA_SUCCESS)
        return rc;
    return refuse_because("the GPUs of this machine cannot be listed: ", why);
}

static CUresult init_with_view(unsigned int flags)
{
    uint8_t chosen[POLICY_GPUS_MAX];
    const enum policy_switch rule = variable_rule();
    if (granted->count == 0 && posture_needs(WHEN_VIEW))
        return refuse_all_devices();
    size_t count = visible_choose(rule == POLICY_IGNORE ? NULL : getenv("CUDA_VISIBLE_DEVICES"),
                                  rule == POLICY_PHYSICAL, granted->gpus, granted->grants,
                                  granted->count, chosen);
    CUresult rc = init_filtered(flags, chosen, count);
    return rc == CUDA_SUCCESS ? adopt(chosen, count) : rc;
}

/* Where GPUs are named, or capped by their numbers: the machine's list decides. */
static CUresult init_on_machine(unsigned int flags, bool view)
{
    struct text_line why;
    enum granted_status status = granted_on_machine(&granted, &why);
    if (status == GRANTED_UNLISTED)
        return init_unlisted(flags, &why);
    if (status == GRANTED_REFUSED)
        return refuse(&why);
    if (view)
        return init_with_view(flags);
    CUresult rc = init_unfiltered(flags);
    return rc == CUDA_SUCCESS ? adopt(NULL, 0) : rc;
}

static CUresult init_under_policy(unsigned int flags)
{
    const struct posture_decision *decided = posture();
    if (decided->posture == POSTURE_REFUSE)
        return refuse(&decided->refusal);
    const bool view = decided->needs & WHEN_VIEW || variable_rule() == POLICY_PHYSICAL;
    bool by_number = view;
    for (size_t i = 0; i < decided->layer_count; i++) {
        if (policy_grants_none(&decided->layers[i]))
            return refuse_all_devices();
        by_number |= policy_caps_by_position(&decided->layers[i]);
    }
    if (by_number)
        return init_on_machine(flags, view);
    CUresult rc = init_unfiltered(flags);
    if (rc == CUDA_SUCCESS)
        rc = list_own_devices();
    return rc == CUDA_SUCCESS ? adopt(NULL, 0) : rc;
}

CUresult view_init(unsigned int flags)
{
    bool done;
    if (once_is_done(&once) || !once_begin(&once, &done))
        return real.cuInit(flags);
    int saved_errno = errno;
    CUresult rc = init_under_policy(flags);
    if (rc == CUDA_SUCCESS) {
        once_done(&once);
        log_mapping();
    } else {
        once_undo(&once);
    }
    errno = saved_errno;
    return rc;
}

bool view_ready(CUresult *refusal)
{
    int count;
    *refusal = CUDA_SUCCESS;
    if (once_is_done(&once))
        return true;
    if (!real.cuDeviceGetCount || real.cuDeviceGetCount(&count) != CUDA_SUCCESS)
        return false;
    /* Initialised by someone who did not meet our cuInit. */
    if (view_init(0) != CUDA_SUCCESS)
        *refusal = CUDA_ERROR_NOT_PERMITTED;
    return once_is_done(&once);
}

int view_ordinal_of(const char *uuid)
{
    for (int i = 0; i < view_count(); i++) {
        if (is_uuid(&devices[i].cuda_uuid, uuid))
            return i;
    }
    return UNKNOWN;
}

const char *view_uuid(int ordinal) { return devices[ordinal].uuid; }

int view_count(void) { return once_is_done(&once) ? device_count : 0; }

void view_add_device(struct text_line *line, int ordinal)
{
    bool known = ordinal >= 0 && ordinal < device_count && devices[ordinal].index != UNKNOWN;
    if (known && devices[ordinal].is_mig)
        text_add(line, "a MIG device of ");
    text_add(line, known ? "GPU " : "CUDA device ");
    text_add_signed(line, known ? devices[ordinal].index : ordinal);
}

void view_add_mapping(struct text_line *line)
{
    text_add(line, "this process sees ");
    text_add_number(line, (uint64_t)device_count);
    text_add(line, device_count == 1 ? " GPU: " : " GPUs: ");
    for (int i = 0; i < device_count; i++) {
        text_add(line, i ? ", " : "");
        text_add_number(line, (uint64_t)i);
        text_add(line, " = ");
        view_add_device(line, i);
    }
    text_add(line, " of nvidia-smi");
}

void view_add_rule(struct text_line *line)
{
    const struct posture_decision *decided = posture();
    for (size_t i = decided->layer_count; i-- > 0;) { /* the innermost that narrows */
        if (!policy_grants_all(&decided->layers[i])) {
            policy_describe_rule(line, &decided->layers[i], decided->layers[i].devices_line);
            return;
        }
    }
}

void view_add_cap_rule(struct text_line *line, int ordinal)
{
    const struct posture_decision *decided = posture();
    if (ordinal >= 0 && ordinal < POLICY_GPUS_MAX &&
        devices[ordinal].cap_layer < decided->layer_count)
        policy_describe_rule(line, &decided->layers[devices[ordinal].cap_layer],
                             devices[ordinal].cap_line);
}
