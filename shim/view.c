/* view.c -- see view.h. */
#include "view.h"
#include "account.h"
#include "driver.h"
#include "environment.h"
#include "log.h"
#include "machine.h"
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
static struct policy_gpu gpus[POLICY_GPUS_MAX]; /* of the machine, or CUDA's own without a view */
static struct policy_grant grants[POLICY_GPUS_MAX]; /* in the order granted */
static size_t grant_count;
static struct visible_device {
    int index; /* nvidia-smi's, or UNKNOWN */
    size_t cap_layer;
    uint32_t cap_line;
} devices[POLICY_GPUS_MAX];
static int device_count;
static char variable[sizeof VARIABLE + POLICY_GPUS_MAX * sizeof gpus[0].uuid];
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

/* Does any text cap GPUs by their number? Then the machine's numbering must be known. */
static bool caps_by_position(const struct posture_decision *decided)
{
    for (size_t i = 0; i < decided->layer_count; i++) {
        if (policy_caps_by_position(&decided->layers[i]))
            return true;
    }
    return false;
}

/* Fills `grants` from the texts, for `count` GPUs in `gpus`. */
static CUresult grant(const struct posture_decision *decided, size_t count)
{
    struct policy_error error;
    size_t layer = 0;
    struct text_line why;
    int granted =
        policy_grant(decided->layers, decided->layer_count, gpus, count, grants, &error, &layer);
    if (granted < 0) {
        text_start(&why);
        policy_describe_error(&why, decided->layers[layer].source, &error);
        return refuse(&why);
    }
    grant_count = (size_t)granted;
    return CUDA_SUCCESS;
}

static bool uuid_of_device(CUdevice device, CUuuid *uuid)
{
    if (real.cuDeviceGetUuid_v2 && real.cuDeviceGetUuid_v2(uuid, device) == CUDA_SUCCESS)
        return true;
    return real.cuDeviceGetUuid && real.cuDeviceGetUuid(uuid, device) == CUDA_SUCCESS;
}

/* Compares the digits; "GPU-" and "MIG-" are not in CUDA's bytes. */
static bool is_uuid(const CUuuid *uuid, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    int nibble = 0;
    for (text += strcspn(text, "-"); *text && nibble <= UUID_HEX; text++) {
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

static void format_uuid(const CUuuid *uuid, char *text)
{
    static const char digits[] = "0123456789abcdef";
    memcpy(text, "GPU-", 4);
    text += 4;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *text++ = '-';
        *text++ = digits[(unsigned char)uuid->bytes[i] >> 4];
        *text++ = digits[(unsigned char)uuid->bytes[i] & 15];
    }
    *text = '\0';
}

/* The cap of one visible device: the tighter of the absolute size and the share of the card. */
static CUresult set_cap(CUdevice device, const struct policy_grant *grant_of_it)
{
    const struct posture_decision *decided = posture();
    size_t total = 0;
    uint64_t cap = ACCOUNT_NO_CAP;
    if (grant_of_it->cap.kind == POLICY_SIZE_BYTES) {
        cap = grant_of_it->cap.value;
        devices[device].cap_layer = grant_of_it->cap_layer;
        devices[device].cap_line = grant_of_it->cap.line;
    }
    if (grant_of_it->share.kind == POLICY_SIZE_PERCENT) {
        if (!real.cuDeviceTotalMem_v2 || real.cuDeviceTotalMem_v2(&total, device) != CUDA_SUCCESS)
            return refuse_because("the driver does not say how much memory a GPU has", NULL);
        uint64_t share =
            total / 100 * grant_of_it->share.value + total % 100 * grant_of_it->share.value / 100;
        if (share < cap) {
            cap = share;
            devices[device].cap_layer = grant_of_it->share_layer;
            devices[device].cap_line = grant_of_it->share.line;
        }
    }
    if (decided->needs & WHEN_MEMORY)
        account_set_cap(device, cap);
    return CUDA_SUCCESS;
}

/* After a successful cuInit: what does the driver show? `chosen` are positions in `grants` by
 * ordinal, or NULL where there is no view and ordinals are found by UUID. */
static CUresult adopt(const uint8_t *chosen, size_t chosen_count)
{
    int count = 0;
    if (!real.cuDeviceGetCount || real.cuDeviceGetCount(&count) != CUDA_SUCCESS)
        return refuse_because("the driver does not say how many GPUs it shows", NULL);
    if (count > POLICY_GPUS_MAX || (chosen && (size_t)count != chosen_count))
        return refuse_because("the driver shows other GPUs than the policy asked it for", NULL);
    for (int i = 0; i < count; i++) {
        CUuuid uuid;
        if (!uuid_of_device(i, &uuid))
            return refuse_because("the driver does not say which GPUs it shows", NULL);
        size_t position = chosen ? chosen[i] : 0;
        while (!chosen && position < grant_count &&
               !is_uuid(&uuid, gpus[grants[position].gpu].uuid))
            position++;
        if (position == grant_count || !is_uuid(&uuid, gpus[grants[position].gpu].uuid))
            return refuse_because("the driver shows other GPUs than the policy asked it for", NULL);
        devices[i].index = grants[position].gpu;
        CUresult rc = set_cap(i, &grants[position]);
        if (rc != CUDA_SUCCESS)
            return rc;
    }
    device_count = count;
    return CUDA_SUCCESS;
}

/* cuInit with the driver's own filter set to the chosen GPUs. */
static CUresult init_filtered(unsigned int flags, const uint8_t *chosen, size_t chosen_count)
{
    struct environment_swap swap;
    char *end = variable + strlen(VARIABLE);
    memcpy(variable, VARIABLE, sizeof VARIABLE);
    for (size_t i = 0; i < chosen_count; i++) {
        const char *uuid = gpus[grants[chosen[i]].gpu].uuid;
        if (i)
            *end++ = ',';
        memcpy(end, uuid, strlen(uuid) + 1);
        end += strlen(uuid);
    }
    if (!environment_swap_in(&swap, variable))
        return refuse_because("no memory to hand CUDA_VISIBLE_DEVICES to the driver", NULL);
    CUresult rc = real.cuInit(flags);
    environment_swap_out(&swap);
    return rc;
}

/* Without a view the ordinals are CUDA's own; with caps that are the same everywhere, so is the
 * list. */
static CUresult list_own_devices(const struct posture_decision *decided)
{
    int count = 0;
    if (!real.cuDeviceGetCount || real.cuDeviceGetCount(&count) != CUDA_SUCCESS ||
        count > POLICY_GPUS_MAX)
        return refuse_because("the driver does not say how many GPUs it shows", NULL);
    for (int i = 0; i < count; i++) {
        CUuuid uuid;
        if (!uuid_of_device(i, &uuid))
            return refuse_because("the driver does not say which GPUs it shows", NULL);
        format_uuid(&uuid, gpus[i].uuid);
    }
    return grant(decided, (size_t)count);
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
        view_add_device(&line, i);
        text_add(&line, ", ");
        if (real.cuDeviceGetName && real.cuDeviceGetName(name, (int)sizeof name, i) == CUDA_SUCCESS)
            text_add(&line, name);
        text_add(&line, ", ");
        text_add(&line, gpus[devices[i].index == UNKNOWN ? i : devices[i].index].uuid);
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
    const char *value = getenv("CUDA_VISIBLE_DEVICES");
    size_t count = visible_choose(value, gpus, grants, grant_count, chosen);
    if (grant_count == 0)
        return refuse_all_devices();
    CUresult rc = init_filtered(flags, chosen, count);
    return rc == CUDA_SUCCESS ? adopt(chosen, count) : rc;
}

static CUresult init_under_policy(unsigned int flags)
{
    const struct posture_decision *decided = posture();
    const bool view = decided->needs & WHEN_VIEW;
    struct text_line why;
    CUresult rc = CUDA_SUCCESS;
    if (decided->posture == POSTURE_REFUSE)
        return refuse(&decided->refusal);
    for (size_t i = 0; i < decided->layer_count; i++) {
        if (policy_grants_none(&decided->layers[i]))
            return refuse_all_devices();
    }
    if (view || caps_by_position(decided)) {
        text_start(&why);
        int count = machine_list(gpus, &why);
        if (count < 0)
            return init_unlisted(flags, &why);
        rc = grant(decided, (size_t)count);
        if (rc == CUDA_SUCCESS && view)
            return init_with_view(flags);
        if (rc == CUDA_SUCCESS)
            rc = real.cuInit(flags);
        return rc == CUDA_SUCCESS ? adopt(NULL, 0) : rc;
    }
    rc = real.cuInit(flags);
    if (rc == CUDA_SUCCESS)
        rc = list_own_devices(decided);
    if (rc == CUDA_SUCCESS)
        rc = adopt(NULL, 0);
    for (int i = 0; rc == CUDA_SUCCESS && i < device_count; i++)
        devices[i].index = UNKNOWN; /* CUDA's order is not nvidia-smi's */
    return rc;
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

int view_count(void) { return once_is_done(&once) ? device_count : 0; }

void view_add_device(struct text_line *line, int ordinal)
{
    bool known = ordinal >= 0 && ordinal < device_count && devices[ordinal].index != UNKNOWN;
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
