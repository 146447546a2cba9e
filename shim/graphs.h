/* graphs.h -- the books of graph memory: which executable graphs allocate, how much a launch may
 * need, and what is charged for a device's graph memory.
 *
 * Knows: handles and streams as numbers. Must not know: the driver's calls, nodes.
 * The driver keeps graph memory per device, apart from pools: it is mapped at a launch or an upload
 * for the whole graph, shared by graphs that do not run at the same time, kept after the graph's
 * destruction and given back by a trim ("CUDA Programming Guide", graph memory nodes, physical
 * memory management). It is charged by what the driver says is reserved; before a launch is charged
 * by how much the reserve may grow. Thread-safe; the lock is never held across a call out of here.
 */
#ifndef GPUSHIM_SHIM_GRAPHS_H
#define GPUSHIM_SHIM_GRAPHS_H

#include "account.h"

/* Of one executable graph on one device. */
struct graph_demand {
    int device;
    uint32_t claimed;    /* of the books: when it was launched last */
    uint64_t bytes;      /* what it has mapped while it runs */
    uint64_t unfreed;    /* of these, what outlives it until freed elsewhere */
    uint64_t precharged; /* between begin and end: what the caller has charged for it */
    uint64_t
        outstanding; /* likewise, of the books: what a trim meanwhile may make it need beyond */
};
struct graph_demands {
    int count; /* 0: a graph that allocates nothing */
    struct graph_demand each[ACCOUNT_DEVICES_MAX];
};

/* Remembers an executable graph, in the place of what was known by its handle. False, and nothing
 * remembered, where memory for the table cannot be had. */
bool graphs_keep(uint64_t exec, const struct graph_demands *demands);
/* One look-up, without a lock: does this one allocate? */
bool graphs_allocates(uint64_t exec);
void graphs_read(uint64_t exec, struct graph_demands *demands);
/* Forgets it. */
void graphs_drop(uint64_t exec);

/* A launch or upload of demands->each[i] on a stream (a number that two streams never share, or
 * GRAPHS_ANY_STREAM) begins. 0: it has. Otherwise what must have been precharged for it, which is
 * more than has been: charge it and ask again. `exec` is 0 before it has a handle. */
#define GRAPHS_ANY_STREAM UINT64_MAX
uint64_t graphs_begin(uint64_t exec, struct graph_demands *demands, int i, uint64_t stream);
/* After the driver's call; a reading is to be published next, and then the precharge given back. */
void graphs_end(const struct graph_demand *demand);

/* Has a graph that allocates on this device ever been seen? Without one, there is nothing to read.
 */
bool graphs_in_use(int device);
bool graphs_any_in_use(void);

/* A reading of what the driver reserves on a device begins with a ticket; of two, the one that
 * began later counts. */
uint64_t graphs_ticket(void);
/* True where the reserve has grown by more than launches on their way were precharged for. */
bool graphs_publish(int device, uint64_t ticket, uint64_t reserved_bytes);

/* The two halves of a trim. What is left afterwards may be bound to graphs that run. */
uint32_t graphs_trim_begins(int device);
void graphs_trimmed(int device, uint32_t trim, uint64_t reserved_bytes);

/* In a child of fork: no graphs. */
void graphs_forget(void);

#endif
