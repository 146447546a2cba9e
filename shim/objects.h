/* objects.h -- the objects loaded into this process, read from the dynamic linker's own list.
 *
 * Knows: link maps and symbol tables (System V ABI, GNU hash). Must not know: CUDA, our hooks.
 * Freestanding and read-only: no libc call, no lock, no allocation; usable before constructors and
 * inside malloc. The list is walked without the linker's lock, and so only over the objects of
 * the start of the program, which are never removed.
 */
#ifndef GPUSHIM_SHIM_OBJECTS_H
#define GPUSHIM_SHIM_OBJECTS_H

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>

/* The dl* functions of the C library (libc, an older glibc's libdl, or musl's loader): the first
 * definition after us in the list of objects, so that another interposer after us is not passed by.
 * A function that this C library lacks is NULL. */
struct objects_libc {
    void *(*dlopen)(const char *path, int flags);
    void *(*dlsym)(void *handle, const char *name);
    void *(*dlvsym)(void *handle, const char *name, const char *version);
    int (*dlclose)(void *handle);
    char *(*dlerror)(void);
    int (*dladdr)(const void *address, Dl_info *info);
    int (*dladdr1)(const void *address, Dl_info *info, void **extra, int flags);
};

const struct objects_libc *objects_libc(void);

/* The first object of the list (the program), or NULL where the list cannot be found. */
struct link_map *objects_first(void);
/* Our own object. */
struct link_map *objects_self(void);
/* The object that holds this address, or NULL. The one function here that calls the C library, and
 * may wait for the linker's lock: for look-ups of driver names only. */
struct link_map *objects_holding(const void *address);
/* Was this object loaded at the start of the program? Such objects are the global scope, in the
 * order of the list, and are never removed. */
bool objects_is_of_start(const struct link_map *object);
/* Does it stand before us in the list? For objects of the start. */
bool objects_is_before_self(const struct link_map *object);
/* The first object that was opened after the start; NULL if there is none. */
struct link_map *objects_first_opened(void);
/* Called once, as we are loaded: the list then ends with the last object of the start. */
void objects_note_start(void);

/* The address of a function or variable that `object` itself defines and exports, or NULL. */
void *objects_symbol(const struct link_map *object, const char *name);
/* The first definition in the objects from `from` on (inclusive), up to but without `end` (NULL: to
 * the last), our own object left out. */
void *objects_search(const struct link_map *from, const struct link_map *end, const char *name);

#endif
