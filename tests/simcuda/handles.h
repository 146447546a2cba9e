/* handles.h -- the driver's objects behind opaque pointers: which are alive, of what kind, in which
 * context.
 *
 * Knows: addresses and kinds. Must not know: what the objects are. A stale or invented pointer is
 * recognised without being looked into. Under the driver's lock.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_HANDLES_H
#define GPUSHIM_TESTS_SIMCUDA_HANDLES_H

#include <stddef.h>

struct CUctx_st;

enum handle_kind {
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_MODULE,
    HANDLE_LIBRARY,
    HANDLE_FUNCTION,
    HANDLE_KERNEL,
    HANDLE_LINKER,
    HANDLE_ARRAY,
    HANDLE_MIPMAPPED_ARRAY,
    HANDLE_POOL,
    HANDLE_GRAPH,
    HANDLE_NODE,
    HANDLE_EXECUTABLE_GRAPH,
    HANDLE_USER_OBJECT,
    HANDLE_PHYSICAL,
    HANDLE_GREEN,
    HANDLE_EXTERNAL
};

struct handle { /* first member of every object */
    enum handle_kind kind;
    struct CUctx_st *context; /* that it goes with; NULL: none */
    struct handle *next, *previous;
};

/* A zeroed object of `bytes` bytes that begins with a struct handle. */
void *handle_new(enum handle_kind kind, size_t bytes, struct CUctx_st *context);
int handle_is(const void *object, enum handle_kind kind);
void handle_delete(void *object);

/* The newest live object of a kind in a context (NULL: of none); NULL if there is none. For
 * emptying. */
void *handle_any(enum handle_kind kind, const struct CUctx_st *context);

/* All live objects, the newest first; NULL at the end. */
struct handle *handle_first(void);
struct handle *handle_after(const struct handle *handle);

#endif
