/* route_owned.c -- dlsym and dlvsym for the names in hooks.def.
 *
 * Knows: the search rules of dlsym, and that only a function that *is* the real library's is
 * replaced: another library's function of that name (a stub, a translation layer, a program's own)
 * is left alone. Must not know: what a hook does.
 */
#include "driver.h"
#include "hooks.h"
#include "objects.h"
#include "posture.h"
#include "route.h"

#include <dlfcn.h>

static bool library_open(enum hook_library library)
{
    return library == HOOK_OF_NVML ? nvml_open(false) : driver_open(false);
}

void *route_replaced(void *address)
{
    struct hook_info info;
    const int row = driver_row_at(address);
    if (row < 0)
        return address;
    hook_describe(row, &info);
    return posture_needs(info.when) ? info.hook : address;
}

/* The library that holds the caller, opened again, so that its own dependencies are searched too.
 */
static void *in_scope_of(const struct link_map *caller, const char *name, const void *hook)
{
    const struct objects_libc *libc = objects_libc();
    if (!caller || caller == objects_first() || !caller->l_name[0] || !libc->dlopen)
        return NULL;
    void *handle = libc->dlopen(caller->l_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        return NULL;
    void *found = libc->dlsym(handle, name);
    libc->dlclose(handle);
    return found == hook ? NULL : found;
}

/* The definition that RTLD_DEFAULT or RTLD_NEXT would meet if we were not loaded, or NULL. A
 * library that was opened later and asks for the next one is answered from its own scope alone:
 * nothing. */
static void *without_us(void *handle, const char *name, const void *hook, const void *address)
{
    struct link_map *self = objects_self(), *caller = objects_holding(address);
    struct link_map *from = objects_first(), *end = objects_first_opened();
    void *found = NULL;
    if (handle == RTLD_NEXT)
        from = caller && objects_is_of_start(caller) ? caller->l_next : NULL;
    if (from == end)
        from = NULL;
    if (from && objects_is_before_self(from)) {
        found = objects_search(from, self, name);
        if (!found) /* the rest of the global scope, as the C library sees it from us */
            found = objects_libc()->dlsym(RTLD_NEXT, name);
    } else if (from) {
        found = objects_search(from, end, name);
    }
    if (!found && handle == RTLD_DEFAULT)
        found = in_scope_of(caller, name, hook);
    return found;
}

/* A success leaves no error of a look-up of ours behind, as the C library's own would not. */
static void *succeed(void *found)
{
    if (found && objects_libc()->dlerror)
        (void)objects_libc()->dlerror();
    return found;
}

static void *by_scope(int row, const struct hook_info *info, void *handle, const void *caller)
{
    void *found = without_us(handle, info->symbol, info->hook, caller);
    if (info->library == HOOK_OF_RUNTIME)
        return succeed(found);
    bool open = library_open(info->library);
    if (found && !(open && driver_row_at(found) >= 0))
        return succeed(found); /* another library's */
    if (!open) {
        /* Sets dlerror to the symbol's name, as the C library would have. */
        return objects_libc()->dlsym(RTLD_NEXT, info->symbol);
    }
    return route_replaced(driver_look_up(row));
}

struct route_step route_owned(int row, void *handle, const char *name, const char *version,
                              const void *caller)
{
    const struct objects_libc *libc = objects_libc();
    struct hook_info info;
    hook_describe(row, &info);
    void *found = NULL;
    if (!version && (handle == RTLD_DEFAULT || handle == RTLD_NEXT))
        return (struct route_step){NULL, by_scope(row, &info, handle, caller)};
    /* Before the look-up, whose error, if it is one, is to be the last. */
    const bool open = info.library != HOOK_OF_RUNTIME && library_open(info.library);
    if (!version)
        found = libc->dlsym(handle, name);
    else if (libc->dlvsym)
        found = libc->dlvsym(handle, name, version);
    if (found == info.hook) /* the handle of the whole program, where we come first */
        return (struct route_step){NULL, by_scope(row, &info, RTLD_DEFAULT, caller)};
    return (struct route_step){NULL, open ? route_replaced(found) : found};
}
