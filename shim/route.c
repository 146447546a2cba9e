/* route.c -- the filter in front of every dlsym and dlvsym of the process.
 *
 * Knows: the shape of the names that are ours. Must not know: anything that needs libc.
 * Freestanding: sanitizer run-times and allocators call dlsym before any constructor and inside
 * malloc. A name that is not ours leaves by a tail jump (route_*.S).
 */
#include "route.h"
#include "hooks.h"
#include "objects.h"

/* First letters only: cuXxx, cuda[SG]..., nvmlXxx. Rejects curl_*, custom_* and nearly all else in
 * three comparisons. */
static bool may_be_ours(const char *name)
{
    if (name[0] == 'c' && name[1] == 'u')
        return (name[2] >= 'A' && name[2] <= 'Z') || (name[2] == 'd' && name[3] == 'a');
    return name[0] == 'n' && name[1] == 'v' && name[2] == 'm' && name[3] == 'l';
}

struct route_step route_dlsym(void *handle, const char *name, const void *caller)
{
    int row = name && may_be_ours(name) ? hook_find(name) : -1;
    if (row < 0)
        return (struct route_step){(void *)(uintptr_t)objects_libc()->dlsym, NULL};
    return route_owned(row, handle, name, NULL, caller);
}

struct route_step route_dlvsym(void *handle, const char *name, const char *version,
                               const void *caller)
{
    int row = name && may_be_ours(name) ? hook_find(name) : -1;
    if (row < 0)
        return (struct route_step){(void *)(uintptr_t)objects_libc()->dlvsym, NULL};
    return route_owned(row, handle, name, version, caller);
}
