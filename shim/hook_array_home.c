/* hook_array_home.c -- on which GPU an array was made, for the rule that looks at copies.
 *
 * Knows: handles and devices. Must not know: what arrays take (hook_array.c, which says what is
 * made and destroyed). No call of the driver tells where an array is, so it is remembered. What is
 * not remembered, for want of memory or because it was made by another door, is looked for where it
 * is used.
 *
 * The table keeps what its context or its mipmapped array took along: such a handle is not used any
 * more, and whatever is made under it later replaces it.
 */
#include "copy.h"
#include "fork.h"
#include "hook.h"
#include "posture.h"
#include "track.h"

static struct track_table homes;

static uint64_t key_of(const void *array) { return (uint64_t)(uintptr_t)array; }

CUresult array_home(const void *array, int *device)
{
    struct track_entry entry;
    if (!track_find(&homes, key_of(array), &entry))
        return hook_find_device(device);
    *device = entry.device;
    return CUDA_SUCCESS;
}

CUresult array_home_now(int *device)
{
    *device = NO_DEVICE;
    return posture_needs(WHEN_COPIES) ? hook_find_device(device) : CUDA_SUCCESS;
}

void array_home_keep(const void *array, int device)
{
    struct track_entry before;
    if (device == NO_DEVICE)
        return;
    if (track_find(&homes, key_of(array), &before) && before.device == device)
        return; /* a level or plane again, which another thread may be copying */
    track_take(&homes, key_of(array), &before);
    track_put(&homes, &(struct track_entry){.key = key_of(array), .device = (uint16_t)device});
}

int array_home_take(const void *array)
{
    struct track_entry entry;
    return track_take(&homes, key_of(array), &entry) ? entry.device : NO_DEVICE;
}

void array_home_forget(void) { track_forget(&homes); }

CUresult cuMipmappedArrayGetLevel(CUarray *level, CUmipmappedArray array, unsigned int number)
{
    int device;
    HOOK_ENTER(cuMipmappedArrayGetLevel, (level, array, number));
    CUresult rc = array_home(array, &device);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuMipmappedArrayGetLevel(level, array, number);
    if (rc == CUDA_SUCCESS)
        array_home_keep(*level, device);
    return rc;
}

CUresult cuArrayGetPlane(CUarray *plane, CUarray array, unsigned int number)
{
    int device;
    HOOK_ENTER(cuArrayGetPlane, (plane, array, number));
    CUresult rc = array_home(array, &device);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = real.cuArrayGetPlane(plane, array, number);
    if (rc == CUDA_SUCCESS)
        array_home_keep(*plane, device);
    return rc;
}
