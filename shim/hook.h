/* hook.h -- how every hook of a driver function begins, and what memory hooks share.
 *
 * For hook_*.c only. Hooks speak the driver's types and codes; rooms below them do not.
 */
#ifndef GPUSHIM_SHIM_HOOK_H
#define GPUSHIM_SHIM_HOOK_H

#include "account.h"
#include "hooks.h"
#include "text.h"
#include "track.h"

#include <stdbool.h>

enum hook_entry {
    HOOK_ABSENT,  /* there is no driver */
    HOOK_FORWARD, /* no rule concerns this call */
    HOOK_ACT
};

/* Makes any entry point a valid first call: decides the posture, opens the driver. */
enum hook_entry hook_enter(unsigned int when);

#define HOOK_WHEN(symbol) HOOK_WHEN_##symbol
enum hook_when_of {
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)                    \
    HOOK_WHEN_##symbol = (when),
#define NVML_HOOK(symbol, when, parameters, arguments) HOOK_WHEN_##symbol = (when),
#define RUNTIME_HOOK(symbol, parameters, arguments)
#define DRIVER_CALL(symbol, parameters)
#define NVML_CALL(symbol, parameters)
#include "hooks.def"
#undef DRIVER_HOOK
#undef NVML_HOOK
#undef RUNTIME_HOOK
#undef DRIVER_CALL
#undef NVML_CALL
};

/* The first statement of a hook: returns for it where there is no driver or no such function, and
 * forwards where no rule concerns it (link-time callers get our function whatever the policy). */
#define HOOK_ENTER(symbol, arguments)                                                              \
    do {                                                                                           \
        const enum hook_entry hook_entered = hook_enter(HOOK_WHEN(symbol));                        \
        if (hook_entered == HOOK_ABSENT)                                                           \
            return CUDA_ERROR_STUB_LIBRARY;                                                        \
        if (!real.symbol)                                                                          \
            return CUDA_ERROR_NOT_SUPPORTED;                                                       \
        if (hook_entered == HOOK_FORWARD)                                                          \
            return real.symbol arguments;                                                          \
    } while (0)

/* What a call has been charged for. `device` is NO_DEVICE where nothing is counted: no cap there,
 * or nothing that the driver will grant anyway (no context). */
enum { NO_DEVICE = -1 };
struct charge {
    int device;
    uint64_t bytes;
    uint64_t owner; /* the current context as a number, of hook_charge_current() */
};

/* Charges `bytes` on a device, or on the device of the current context. CUDA_SUCCESS: go on, also
 * where nothing is counted; else what the hook must answer. `call` is a literal, for the message.
 */
CUresult hook_charge(struct charge *charge, int device, const char *call, uint64_t bytes);
CUresult hook_charge_current(struct charge *charge, const char *call, uint64_t bytes);
void hook_refund(const struct charge *charge);

/* Likewise before a size is known that costs something to find out: `*device` is the current
 * context's where memory on it is capped, else NO_DEVICE. */
CUresult hook_capped_device(CUdevice *device);

/* Whether the driver, asked about something, says that there is no such thing (context, device,
 * stream, mapping): then the call that has to do with it is the driver's to refuse. Any other
 * failure is the hook's answer: what cannot be asked can be neither counted nor guarded. */
bool hook_says_nothing_there(CUresult rc);

/* The current context's device; NO_DEVICE where there is none. Otherwise what the hook must answer.
 */
CUresult hook_find_device(int *device);
/* The same of any context, which is made current for the question; NO_DEVICE if it is none. */
CUresult hook_context_device(CUcontext context, int *device);
/* Handle, as a number, of the context that memory allocated now belongs to: the current one, or,
 * for a green context, its device's primary one. 0 without one, or, with the second, where the
 * driver does not say. */
CUresult hook_find_owner(uint64_t *owner);
uint64_t hook_current_context(void);
uint64_t context_owner(uint64_t context); /* the same of any context (hook_context.c) */

/* The line of a request that would pass the cap of a device; `bytes` 0: not known. */
void hook_say_over_cap(const char *call, int device, uint64_t bytes);

/* Starts "gpushim: CALL" for a refused act. True if it is to be written (the first of its kind). */
bool hook_start_refusal(struct text_line *line, const char *rule, const char *call, int device,
                        int other);

/* Is this stream recording a graph? `per_thread`: of a _ptsz entry point. */
bool hook_is_capturing(CUstream stream, bool per_thread);

/* What the driver reserves by itself on a device, for pools and for graphs: read again what it is;
 * give what is idle of it back to the card (true if anything went). */
void hook_refresh(int device);
bool hook_trim(int device);

/* Our own calls into the driver must not break a stream capture of the caller's. */
struct capture_pause {
    CUstreamCaptureMode mode;
    bool swapped;
};
void hook_pause_capture(struct capture_pause *pause);
void hook_resume_capture(const struct capture_pause *pause);

/* After cudaErrorInvalidDevice or its like: one line that says which ordinals there are and why.
 * Silent where no rule narrows the view or the ordinal is in it (hook_init.c). */
void hook_explain_ordinal(const char *call, int ordinal);

/* Linear memory's table (hook_memory.c). */
enum memory_kind {
    MEMORY_COUNTED = 1, /* charged by its own bytes */
    MEMORY_POOLED = 2,  /* its pool, whose number is the owner, is charged by what it reserves */
    MEMORY_IGNORED = 3  /* known, and charged for nothing */
};
/* Ends an allocation (what is pooled is charged for nothing): keeps what was charged under its
 * address, or gives it back where `rc` is an error. Returns `rc`; or, where the table cannot grow,
 * frees the memory and says so. */
CUresult memory_keep(const struct charge *charge, CUresult rc, uint64_t address, uint64_t owner,
                     enum memory_kind kind);
/* managed = deny, ignore or count: whether managed memory counts, or the refusal. */
CUresult managed_rule(const char *call, bool *counts);
/* The two halves of a free: before the driver's, since the address may be handed out again at once,
 * and after it. */
struct memory_leaving {
    struct track_entry entry;
    uint64_t address;
    bool known;
};
void memory_leaves(struct memory_leaving *leaving, uint64_t address);
void memory_left(const struct memory_leaving *leaving, CUresult rc);
/* Likewise for the end of owners, contexts or pools: what they held is then given back. `end` is
 * this end's number, from memory_end(): once the driver has ended a context, another may have its
 * handle. */
uint32_t memory_end(void);
void memory_owners_end(struct track_owners owners, uint32_t end);
void memory_owners_ended(struct track_owners owners, uint32_t end, bool gone);

/* The same for the arrays of a context (hook_array.c), and for those among them that take no memory
 * themselves, by handle, with what is mapped into them (hook_sparse.c). */
void array_owner_ends(uint64_t owner, uint32_t end);
void array_owner_ended(uint64_t owner, uint32_t end, bool gone);
void sparse_owner_ends(uint64_t owner, uint32_t end);
void sparse_owner_ended(uint64_t owner, uint32_t end, bool gone);
/* False where it cannot be remembered. `tiles`: their extent; NULL where the array is mapped as a
 * whole. */
bool sparse_keep(uint64_t array, uint64_t owner, const CUDA_ARRAY_SPARSE_PROPERTIES *tiles);
/* The two halves of its destruction; the first says whether it is one of them, the second whether
 * it is one that an end of its context has set aside. */
bool sparse_take(uint64_t array, struct track_entry *entry);
bool sparse_take_aside(uint64_t array, struct track_entry *entry);
void sparse_taken(const struct track_entry *entry, bool gone);

/* Likewise for all that is alive in the pools of a device, destroyed ones too. */
void pool_memory_ends(int device, uint32_t end);
void pool_memory_ended(int device, uint32_t end, bool gone);

/* ipc = deny (hook_ipc.c) and peer_access = deny (hook_peer.c), for doors that are counted too:
 * asked first; the answer of a refused act, with its line. */
bool ipc_is_denied(void);
CUresult ipc_refuse(const char *call);
bool peer_is_denied(void);
CUresult peer_refuse(const char *call);

/* The parts of hook_refresh() and hook_trim() (hook_pool.c, hook_graph.c). */
void pool_refresh(int device);
bool pool_trim(int device);
void graph_refresh(int device);
bool graph_trim(int device);
/* After the free of memory that no table of ours knows, which may be a graph's. */
void graph_memory_freed(void);

/* What the launch of this graph may need (graph_walk.c): asked of its nodes and its children's, for
 * the devices that have a cap. The driver's error if they cannot be read. */
struct graph_demands;
CUresult graph_walk(CUgraph graph, struct graph_demands *demands);

#endif
