/* hook_array.c -- CUDA arrays and mipmapped arrays.
 *
 * Knows: what each takes from the card, and that it goes with its context. Must not know: how
 * texels lie in memory (array_size.h), what is mapped into arrays that take no memory themselves
 * (hook_sparse.c). Levels of a mipmapped array, planes, and arrays of other libraries' memory are
 * not made here and not in the table.
 */
#include "array_size.h"
#include "copy.h"
#include "fork.h"
#include "hook.h"
#include "posture.h"
#include "track.h"

/* Handle -> bytes, device, context (owner). Handles are addresses of the driver's own memory; a
 * table of their own keeps them from ever meeting an allocation's address. */
static struct track_table arrays;

/* An array that is about to be made. */
struct making {
    int home;     /* for the rule that looks at copies; else NO_DEVICE */
    bool counted; /* by a rule that looks at memory */
    CUDA_ARRAY3D_DESCRIPTOR shape;
    bool mipmapped;
    unsigned int levels; /* as asked for; 1 where it is not mipmapped */
    struct charge charge;
    uint64_t owner; /* its context, as a number */
};

static bool takes_no_memory(const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    return (shape->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0;
}

static CUresult ask_array(const CUDA_ARRAY3D_DESCRIPTOR *deferred, CUdevice device,
                          CUDA_ARRAY_MEMORY_REQUIREMENTS *needs)
{
    CUarray probe;
    if (!real.cuArrayGetMemoryRequirements || !real.cuArray3DCreate_v2 || !real.cuArrayDestroy)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult rc = real.cuArray3DCreate_v2(&probe, deferred);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuArrayGetMemoryRequirements(needs, probe, device);
    real.cuArrayDestroy(probe);
    return rc;
}

static CUresult ask_mipmapped(const CUDA_ARRAY3D_DESCRIPTOR *deferred, unsigned int levels,
                              CUdevice device, CUDA_ARRAY_MEMORY_REQUIREMENTS *needs)
{
    CUmipmappedArray probe;
    if (!real.cuMipmappedArrayGetMemoryRequirements || !real.cuMipmappedArrayDestroy)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult rc = real.cuMipmappedArrayCreate(&probe, deferred, levels);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuMipmappedArrayGetMemoryRequirements(needs, probe, device);
    real.cuMipmappedArrayDestroy(probe);
    return rc;
}

/* The driver tells what an array needs only of one whose memory is mapped later, and which takes
 * none until then: such a one of the same shape is made and destroyed. */
static uint64_t bytes_of(const struct making *making, CUdevice device)
{
    CUDA_ARRAY3D_DESCRIPTOR deferred = making->shape;
    CUDA_ARRAY_MEMORY_REQUIREMENTS needs = {0};
    struct capture_pause pause;
    deferred.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
    hook_pause_capture(&pause);
    CUresult rc = making->mipmapped ? ask_mipmapped(&deferred, making->levels, device, &needs)
                                    : ask_array(&deferred, device, &needs);
    hook_resume_capture(&pause);
    return account_granule(rc == CUDA_SUCCESS ? needs.size
                                              : array_size_most(&making->shape, making->levels));
}

/* CUDA_SUCCESS: make it, and say with made() how it went. The owner is found out first: an array
 * that is nobody's would never be given back. */
static CUresult make(struct making *making, const char *call)
{
    CUdevice device;
    making->charge = (struct charge){.device = NO_DEVICE};
    making->counted = posture_needs(WHEN_MEMORY) != 0;
    CUresult rc = array_home_now(&making->home);
    if (rc != CUDA_SUCCESS || !making->counted)
        return rc;
    rc = hook_capped_device(&device);
    if (rc != CUDA_SUCCESS || (device == NO_DEVICE && !takes_no_memory(&making->shape)))
        return rc;
    rc = hook_find_owner(&making->owner);
    if (rc != CUDA_SUCCESS || takes_no_memory(&making->shape))
        return rc;
    return hook_charge(&making->charge, device, call, bytes_of(making, device));
}

/* What takes no memory itself is remembered for what will be mapped into it. */
static CUresult keep_sparse(const struct making *making, void *array)
{
    const uint64_t key = (uint64_t)(uintptr_t)array, owner = making->owner;
    CUDA_ARRAY_SPARSE_PROPERTIES tiles = {0};
    struct capture_pause pause;
    CUresult rc = CUDA_ERROR_NOT_SUPPORTED;
    if (making->shape.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING)
        return sparse_keep(key, owner, NULL) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    hook_pause_capture(&pause);
    if (making->mipmapped && real.cuMipmappedArrayGetSparseProperties)
        rc = real.cuMipmappedArrayGetSparseProperties(&tiles, array);
    else if (!making->mipmapped && real.cuArrayGetSparseProperties)
        rc = real.cuArrayGetSparseProperties(&tiles, array);
    hook_resume_capture(&pause);
    if (rc != CUDA_SUCCESS)
        return rc;
    return sparse_keep(key, owner, &tiles) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult keep_counted(const struct making *making, const void *array)
{
    const struct track_entry entry = {.key = (uint64_t)(uintptr_t)array,
                                      .bytes = making->charge.bytes,
                                      .owner = making->owner,
                                      .device = (uint16_t)making->charge.device};
    return making->charge.device == NO_DEVICE || track_put(&arrays, &entry)
               ? CUDA_SUCCESS
               : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult undo(const struct making *making, void *array)
{
    return making->mipmapped ? real.cuMipmappedArrayDestroy(array) : real.cuArrayDestroy(array);
}

/* What cannot be remembered cannot be counted, and is destroyed again. Where the driver will not,
 * it is the caller's, and its charge stays for good. */
static CUresult made(const struct making *making, CUresult rc, void *array)
{
    if (rc == CUDA_SUCCESS) {
        if (making->counted)
            rc = takes_no_memory(&making->shape) ? keep_sparse(making, array)
                                                 : keep_counted(making, array);
        if (rc == CUDA_SUCCESS || undo(making, array) != CUDA_SUCCESS) {
            array_home_keep(array, making->home);
            return CUDA_SUCCESS;
        }
    }
    hook_refund(&making->charge);
    return rc;
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    HOOK_ENTER(cuArray3DCreate_v2, (array, shape));
    if (!array || !shape)
        return real.cuArray3DCreate_v2(array, shape);
    struct making making = {.shape = *shape, .levels = 1};
    CUresult rc = make(&making, "cuArray3DCreate");
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuArray3DCreate_v2(array, shape);
    return made(&making, rc, rc == CUDA_SUCCESS ? *array : NULL);
}

CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *shape)
{
    HOOK_ENTER(cuArray3DCreate, (array, shape));
    if (!array || !shape)
        return real.cuArray3DCreate(array, shape);
    struct making making = {.shape = {shape->Width, shape->Height, shape->Depth, shape->Format,
                                      shape->NumChannels, shape->Flags},
                            .levels = 1};
    CUresult rc = make(&making, "cuArray3DCreate");
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuArray3DCreate(array, shape);
    return made(&making, rc, rc == CUDA_SUCCESS ? *array : NULL);
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *shape)
{
    HOOK_ENTER(cuArrayCreate_v2, (array, shape));
    if (!array || !shape)
        return real.cuArrayCreate_v2(array, shape);
    struct making making = {
        .shape = {shape->Width, shape->Height, 0, shape->Format, shape->NumChannels, 0},
        .levels = 1};
    CUresult rc = make(&making, "cuArrayCreate");
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuArrayCreate_v2(array, shape);
    return made(&making, rc, rc == CUDA_SUCCESS ? *array : NULL);
}

CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *shape)
{
    HOOK_ENTER(cuArrayCreate, (array, shape));
    if (!array || !shape)
        return real.cuArrayCreate(array, shape);
    struct making making = {
        .shape = {shape->Width, shape->Height, 0, shape->Format, shape->NumChannels, 0},
        .levels = 1};
    CUresult rc = make(&making, "cuArrayCreate");
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuArrayCreate(array, shape);
    return made(&making, rc, rc == CUDA_SUCCESS ? *array : NULL);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape,
                                unsigned int levels)
{
    HOOK_ENTER(cuMipmappedArrayCreate, (array, shape, levels));
    if (!array || !shape)
        return real.cuMipmappedArrayCreate(array, shape, levels);
    struct making making = {.shape = *shape, .mipmapped = true, .levels = levels};
    CUresult rc = make(&making, "cuMipmappedArrayCreate");
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuMipmappedArrayCreate(array, shape, levels);
    return made(&making, rc, rc == CUDA_SUCCESS ? *array : NULL);
}

/* An array that is about to go, of whichever kind. */
struct ending {
    uint64_t key;
    bool counted, sparse;
    struct track_entry entry;
    int home;
};

static void ends(struct ending *ending, const void *array)
{
    ending->key = (uint64_t)(uintptr_t)array;
    ending->counted = track_take(&arrays, ending->key, &ending->entry);
    ending->sparse = !ending->counted && sparse_take(ending->key, &ending->entry);
    ending->home = array_home_take(array);
}

/* Destroyed while an end of its context has it set aside, which the driver may yet refuse. */
static void ended_aside(uint64_t key)
{
    struct track_entry entry;
    if (track_take_aside(&arrays, key, &entry))
        account_refund(entry.device, entry.bytes);
    else if (sparse_take_aside(key, &entry))
        sparse_taken(&entry, true);
}

static void ended(const struct ending *ending, const void *array, bool gone)
{
    if (!gone)
        array_home_keep(array, ending->home);
    if (ending->sparse)
        sparse_taken(&ending->entry, gone);
    else if (ending->counted && gone)
        account_refund(ending->entry.device, ending->entry.bytes);
    else if (ending->counted)
        track_put(&arrays, &ending->entry); /* there is room: it was there */
    else if (gone)
        ended_aside(ending->key);
}

CUresult cuArrayDestroy(CUarray array)
{
    struct ending ending;
    HOOK_ENTER(cuArrayDestroy, (array));
    ends(&ending, array);
    CUresult rc = real.cuArrayDestroy(array);
    ended(&ending, array, rc == CUDA_SUCCESS);
    return rc;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
    struct ending ending;
    HOOK_ENTER(cuMipmappedArrayDestroy, (array));
    ends(&ending, array);
    CUresult rc = real.cuMipmappedArrayDestroy(array);
    ended(&ending, array, rc == CUDA_SUCCESS);
    return rc;
}

void array_owner_ends(uint64_t owner, uint32_t end)
{
    if (!owner)
        return;
    track_set_aside(&arrays, track_owner(owner), end);
    sparse_owner_ends(owner, end);
}

static bool give_back(const struct track_entry *entry)
{
    account_refund(entry->device, entry->bytes);
    return false;
}

void array_owner_ended(uint64_t owner, uint32_t end, bool gone)
{
    if (!owner)
        return;
    track_settle(&arrays, track_owner(owner), end, gone ? give_back : NULL);
    sparse_owner_ended(owner, end, gone);
}

void array_forget(void) { track_forget(&arrays); }
