/* account.h -- how much device memory this process holds on each device, and its caps.
 *
 * Knows: numbers per device ordinal, the granule. Must not know: which call takes what.
 * A charge is taken before the driver is asked and never passes the cap: a compare-and-swap, so
 * that a request that fits is not refused because of a doomed one beside it. Thread-safe; no lock
 * is held when these return.
 */
#ifndef GPUSHIM_SHIM_ACCOUNT_H
#define GPUSHIM_SHIM_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ACCOUNT_DEVICES_MAX = 64 };

#define ACCOUNT_NO_CAP UINT64_MAX

/* Before the device is used; `cap_bytes` or ACCOUNT_NO_CAP. */
void account_set_cap(int device, uint64_t cap_bytes);
uint64_t account_cap(int device);
bool account_is_capped(int device);
uint64_t account_held(int device);

/* Of what is held: bytes that no call asked for (overhead.h), and the rest. */
uint64_t account_overhead(int device);
uint64_t account_tracked(int device);
/* By one thread at a time. May pass the cap. */
void account_set_overhead(int device, uint64_t bytes);

/* Bytes on the device that are not held, since a rule lets them pass: known so that they are not
 * taken for overhead. */
void account_ignore(int device, uint64_t bytes);
void account_ignore_no_more(int device, uint64_t bytes);
uint64_t account_ignored(int device);

/* Whether anything was charged or given back while a figure was read elsewhere: changes are counted
 * while somebody watches. */
void account_watch(bool on);
uint64_t account_changes(int device);

/* False, and nothing taken, where held + bytes would pass the cap. */
bool account_charge(int device, uint64_t bytes);
void account_refund(int device, uint64_t bytes);
/* What the driver has already given or taken back, known afterwards: may pass the cap. */
void account_correct(int device, uint64_t before, uint64_t after);

/* What an allocation of this many bytes takes from the card: below 1 MiB a multiple of 512 bytes,
 * from there on of 2 MiB; saturates. Assumed, to be settled on hardware; this is the one place. */
uint64_t account_granule(uint64_t bytes);

/* What a pool's reserve, or a device's graph memory, grows by for a request: multiples of 32 MiB;
 * saturates. Assumed likewise. */
uint64_t account_chunks(uint64_t bytes);

/* What CUDA may report, given the driver's figures: total = min(total, cap), free = min(free, cap -
 * held). */
void account_limit(int device, uint64_t *free, uint64_t *total);

/* The same for a cap and a figure that the caller knows. */
void account_limit_to(uint64_t cap, uint64_t held, uint64_t *free, uint64_t *total);

/* In a child of fork: nothing is held. */
void account_forget(void);

#endif
