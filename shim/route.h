/* route.h -- how look-ups by dlsym and dlvsym reach us, and what they get.
 *
 * Knows: which names are ours, the search rules of dlsym. Must not know: what a hook does.
 * Thread-safe, fork-safe; for names that are not ours also async-signal-safe, and freestanding.
 */
#ifndef GPUSHIM_SHIM_ROUTE_H
#define GPUSHIM_SHIM_ROUTE_H

/* What the assembly of route_*.S does next: jump to `target` with the caller's own arguments and
 * return address, so that RTLD_NEXT, RTLD_DEFAULT and dlerror keep their meaning; or, where it is
 * NULL, return `result`. */
struct route_step {
    void *target;
    void *result;
};

/* Called by the exported dlsym and dlvsym (route_*.S). `caller` is the return address. */
__attribute__((visibility("hidden"))) struct route_step route_dlsym(void *handle, const char *name,
                                                                    const void *caller);
__attribute__((visibility("hidden"))) struct route_step
route_dlvsym(void *handle, const char *name, const char *version, const void *caller);

/* What a caller gets for an address: where it is a function of the real library that a rule needs
 * us for, our hook; else the address itself (route_owned.c). For cuGetProcAddress too. */
__attribute__((visibility("hidden"))) void *route_replaced(void *address);

/* The same for a name that is ours (route_owned.c); `version` NULL for dlsym. */
__attribute__((visibility("hidden"))) struct route_step
route_owned(int row, void *handle, const char *name, const char *version, const void *caller);

#endif
