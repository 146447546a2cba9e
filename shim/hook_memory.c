/* hook_memory.c -- linear memory: cuMemAlloc, Pitch and Managed, and cuMemFree.
 *
 * Knows: what each takes from the card. Must not know: pools' reserves, handles and mappings.
 * Frees of any pointer are forwarded, and the driver's answer is returned as it is.
 */
#include "fork.h"
#include "hook.h"
#include "log.h"
#include "pools.h"
#include "posture.h"

static struct track_table memory;

static void take_back(const struct charge *charge, enum memory_kind kind)
{
    if (kind == MEMORY_IGNORED)
        account_ignore_no_more(charge->device, charge->bytes);
    else
        hook_refund(charge);
}

CUresult memory_keep(const struct charge *charge, CUresult rc, uint64_t address, uint64_t owner,
                     enum memory_kind kind)
{
    if (charge->device == NO_DEVICE)
        return rc;
    if (rc != CUDA_SUCCESS) {
        take_back(charge, kind);
        return rc;
    }
    const struct track_entry entry = {.key = address,
                                      .bytes = charge->bytes,
                                      .owner = owner,
                                      .device = (uint16_t)charge->device,
                                      .kind = (uint16_t)kind};
    if (track_put(&memory, &entry))
        return CUDA_SUCCESS;
    /* What cannot be remembered cannot be counted. */
    real.cuMemFree_v2(address);
    take_back(charge, kind);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static bool give_back(const struct track_entry *entry)
{
    if (entry->kind == MEMORY_COUNTED)
        account_refund(entry->device, entry->bytes);
    else if (entry->kind == MEMORY_IGNORED)
        account_ignore_no_more(entry->device, entry->bytes);
    else
        pools_gave(pools_of_owner(entry->owner));
    return false;
}

void memory_leaves(struct memory_leaving *leaving, uint64_t address)
{
    leaving->address = address;
    leaving->known = address != 0 && track_take(&memory, address, &leaving->entry);
}

/* What an end of its owner has set aside is freed all the same, while the driver has not ended it,
 * or refuses to. */
void memory_left(const struct memory_leaving *leaving, CUresult rc)
{
    struct track_entry entry;
    if (leaving->known && rc == CUDA_SUCCESS)
        give_back(&leaving->entry);
    else if (leaving->known)
        track_put(&memory, &leaving->entry); /* there is room: it was there */
    else if (leaving->address != 0 && rc == CUDA_SUCCESS) {
        if (track_take_aside(&memory, leaving->address, &entry))
            give_back(&entry);
        graph_memory_freed();
    }
}

uint32_t memory_end(void)
{
    static uint32_t last;
    return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

void memory_owners_end(struct track_owners owners, uint32_t end)
{
    track_set_aside(&memory, owners, end);
}

void memory_owners_ended(struct track_owners owners, uint32_t end, bool gone)
{
    track_settle(&memory, owners, end, gone ? give_back : NULL);
}

void memory_forget(void) { track_forget(&memory); }

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytes)
{
    struct charge charge;
    HOOK_ENTER(cuMemAlloc_v2, (dptr, bytes));
    if (!dptr || !bytes)
        return real.cuMemAlloc_v2(dptr, bytes);
    CUresult rc = hook_charge_current(&charge, "cuMemAlloc", account_granule(bytes));
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuMemAlloc_v2(dptr, bytes);
    return memory_keep(&charge, rc, rc == CUDA_SUCCESS ? *dptr : 0, charge.owner, MEMORY_COUNTED);
}

CUresult cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytes)
{
    struct charge charge;
    HOOK_ENTER(cuMemAlloc, (dptr, bytes));
    if (!dptr || !bytes)
        return real.cuMemAlloc(dptr, bytes);
    CUresult rc = hook_charge_current(&charge, "cuMemAlloc", account_granule(bytes));
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuMemAlloc(dptr, bytes);
    return memory_keep(&charge, rc, rc == CUDA_SUCCESS ? *dptr : 0, charge.owner, MEMORY_COUNTED);
}

static uint64_t rows_of(uint64_t pitch, uint64_t height)
{
    uint64_t bytes;
    return __builtin_mul_overflow(pitch, height, &bytes) ? UINT64_MAX : bytes;
}

/* The driver chooses the pitch; before the call it is taken to be a multiple of 512 bytes. */
static uint64_t likely_pitched_bytes(uint64_t width, uint64_t height)
{
    const uint64_t alignment = 512;
    if (width > UINT64_MAX - alignment)
        return UINT64_MAX;
    return account_granule(rows_of((width + alignment - 1) / alignment * alignment, height));
}

static CUresult fail(const struct charge *charge, CUresult rc)
{
    return memory_keep(charge, rc, 0, 0, MEMORY_COUNTED);
}

/* Once the pitch is known: corrects the charge, or takes the memory back where it does not fit. */
static CUresult settle_pitch(struct charge *charge, uint64_t address, uint64_t pitch,
                             uint64_t height)
{
    const uint64_t actual = account_granule(rows_of(pitch, height));
    if (charge->device != NO_DEVICE && actual > charge->bytes &&
        !account_charge(charge->device, actual - charge->bytes)) {
        if (real.cuMemFree_v2(address) == CUDA_SUCCESS)
            return fail(charge, CUDA_ERROR_OUT_OF_MEMORY);
        account_correct(charge->device, charge->bytes, actual); /* it is there */
    } else if (charge->device != NO_DEVICE && actual < charge->bytes) {
        account_refund(charge->device, charge->bytes - actual);
    }
    charge->bytes = actual;
    return memory_keep(charge, CUDA_SUCCESS, address, charge->owner, MEMORY_COUNTED);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pitch, size_t width, size_t height,
                            unsigned int element_bytes)
{
    struct charge charge;
    HOOK_ENTER(cuMemAllocPitch_v2, (dptr, pitch, width, height, element_bytes));
    if (!dptr || !pitch || !width || !height)
        return real.cuMemAllocPitch_v2(dptr, pitch, width, height, element_bytes);
    CUresult rc =
        hook_charge_current(&charge, "cuMemAllocPitch", likely_pitched_bytes(width, height));
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuMemAllocPitch_v2(dptr, pitch, width, height, element_bytes);
    return rc == CUDA_SUCCESS ? settle_pitch(&charge, *dptr, *pitch, height) : fail(&charge, rc);
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pitch, unsigned int width,
                         unsigned int height, unsigned int element_bytes)
{
    struct charge charge;
    HOOK_ENTER(cuMemAllocPitch, (dptr, pitch, width, height, element_bytes));
    if (!dptr || !pitch || !width || !height)
        return real.cuMemAllocPitch(dptr, pitch, width, height, element_bytes);
    CUresult rc =
        hook_charge_current(&charge, "cuMemAllocPitch", likely_pitched_bytes(width, height));
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuMemAllocPitch(dptr, pitch, width, height, element_bytes);
    return rc == CUDA_SUCCESS ? settle_pitch(&charge, *dptr, *pitch, height) : fail(&charge, rc);
}

CUresult managed_rule(const char *call, bool *counts)
{
    struct text_line line;
    size_t layer;
    const struct posture_decision *decided = posture();
    struct policy_choice managed = policy_managed(decided->layers, decided->layer_count, &layer);
    *counts = managed.value != POLICY_IGNORE;
    if (managed.value != POLICY_DENY)
        return CUDA_SUCCESS;
    if (hook_start_refusal(&line, "managed", call, NO_DEVICE, NO_DEVICE)) {
        text_add(&line, " refused: ");
        policy_describe_rule(&line, &decided->layers[layer], managed.line);
        text_add(&line, " says managed = deny; use cudaMalloc instead of cudaMallocManaged");
        log_write(POLICY_LOG_WARN, &line);
    }
    return CUDA_ERROR_NOT_PERMITTED;
}

/* managed = ignore: what cannot be asked is no reason to refuse. */
static void ignore_current(struct charge *charge, uint64_t bytes)
{
    *charge = (struct charge){.device = NO_DEVICE, .bytes = bytes};
    if (hook_capped_device(&charge->device) != CUDA_SUCCESS ||
        hook_find_owner(&charge->owner) != CUDA_SUCCESS)
        charge->device = NO_DEVICE;
    account_ignore(charge->device, bytes);
}

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytes, unsigned int flags)
{
    struct charge charge;
    bool counts;
    HOOK_ENTER(cuMemAllocManaged, (dptr, bytes, flags));
    CUresult rc = managed_rule("cuMemAllocManaged", &counts);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (!dptr || !bytes)
        return real.cuMemAllocManaged(dptr, bytes, flags);
    if (counts)
        rc = hook_charge_current(&charge, "cuMemAllocManaged", account_granule(bytes));
    else
        ignore_current(&charge, account_granule(bytes));
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuMemAllocManaged(dptr, bytes, flags);
    return memory_keep(&charge, rc, rc == CUDA_SUCCESS ? *dptr : 0, charge.owner,
                       counts ? MEMORY_COUNTED : MEMORY_IGNORED);
}

CUresult cuMemFree_v2(CUdeviceptr dptr)
{
    struct memory_leaving leaving;
    HOOK_ENTER(cuMemFree_v2, (dptr));
    memory_leaves(&leaving, dptr);
    CUresult rc = real.cuMemFree_v2(dptr);
    memory_left(&leaving, rc);
    return rc;
}

CUresult cuMemFree(CUdeviceptr_v1 dptr)
{
    struct memory_leaving leaving;
    HOOK_ENTER(cuMemFree, (dptr));
    memory_leaves(&leaving, dptr);
    CUresult rc = real.cuMemFree(dptr);
    memory_left(&leaving, rc);
    return rc;
}
