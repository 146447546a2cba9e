/* track.h -- a table of live things by address: allocations, mappings, handles, contexts.
 *
 * Knows: keys and a few numbers beside each. Must not know: what they stand for, devices' caps,
 * CUDA.
 *
 * O(1) at any number of entries, no lock, no malloc: buckets of eight keys in one cache line, two
 * choices a key, and a further, eight times larger level (from mmap, committed as it is touched)
 * when both are full. Levels are never given back. Thread-safe: an entry is taken by exactly one
 * thread, and none that is in the table is missed. A key is in the table at most once, since the
 * driver gives an address out once and the entry is taken before the driver gets it back. Fork: the
 * child sees a copy; track_forget() empties it.
 */
#ifndef GPUSHIM_SHIM_TRACK_H
#define GPUSHIM_SHIM_TRACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRACK_LEVELS = 8 };

struct track_entry {
    uint64_t key; /* an address or handle; below 2^63 - 2 */
    uint64_t bytes;
    uint64_t owner; /* what it belongs to: a context, a pool, a handle; 0: none */
    uint16_t device;
    uint16_t kind; /* the caller's */
    uint32_t count;
};

struct track_bucket;
struct track_table {
    struct track_bucket *levels[TRACK_LEVELS]; /* all zero: empty */
};

/* False where memory for a larger level cannot be had, or the key is out of range. */
bool track_put(struct track_table *table, const struct track_entry *entry);
/* Removes and returns the entry. */
bool track_take(struct track_table *table, uint64_t key, struct track_entry *entry);

/* Reads the entry, which stays. */
bool track_find(struct track_table *table, uint64_t key, struct track_entry *entry);
/* Sets the count of the entry, if it is there; of two that do so, one is last. */
void track_recount(struct track_table *table, uint64_t key, uint32_t count);

/* Sets the entries of some owners aside: they are no longer found by track_take, so that their
 * addresses may be handed out again. track_settle() then visits each that was set aside with this
 * tag: what the visitor returns false for is dropped, the rest is back in place, as all of it is
 * without a visitor (NULL: they did not end after all). An owner's name
 * may be another's by then, who sets entries aside too: the tag, not 0, tells them apart. It lies
 * in `count`, and stays there. Linear in the size of the table: for the end of a context or a
 * device. */
struct track_owners {
    uint64_t first, last;
};
static inline struct track_owners track_owner(uint64_t owner)
{
    return (struct track_owners){owner, owner};
}
void track_set_aside(struct track_table *table, struct track_owners owners, uint32_t tag);
void track_settle(struct track_table *table, struct track_owners owners, uint32_t tag,
                  bool (*visit)(const struct track_entry *entry));
/* Removes and returns an entry that is set aside, or has been and is back in place: it is over
 * before the rest is settled. An entry whose count is 0 is another one, of the same key. */
bool track_take_aside(struct track_table *table, uint64_t key, struct track_entry *entry);

/* Empties the table; no other thread may use it. */
void track_forget(struct track_table *table);

#endif
