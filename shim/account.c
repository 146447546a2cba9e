/* account.c -- see account.h. */
#include "account.h"

/* One cache line a device: threads on different devices do not meet. */
static struct account {
    uint64_t cap;  /* bytes + 1; 0 is no cap, so that zeroed memory means "not capped" */
    uint64_t held; /* `overhead` included */
    uint64_t overhead;
    uint64_t ignored;
    uint64_t changes; /* of `held`, while there are watchers */
    char padding[24];
} accounts[ACCOUNT_DEVICES_MAX] __attribute__((aligned(64)));

static bool is_device(int device) { return device >= 0 && device < ACCOUNT_DEVICES_MAX; }

static int watchers;

void account_watch(bool on) { __atomic_fetch_add(&watchers, on ? 1 : -1, __ATOMIC_SEQ_CST); }

uint64_t account_changes(int device)
{
    return is_device(device) ? __atomic_load_n(&accounts[device].changes, __ATOMIC_SEQ_CST) : 0;
}

static void count_change(int device)
{
    if (__atomic_load_n(&watchers, __ATOMIC_RELAXED) != 0)
        __atomic_fetch_add(&accounts[device].changes, 1, __ATOMIC_SEQ_CST);
}

void account_set_cap(int device, uint64_t cap_bytes)
{
    if (is_device(device))
        __atomic_store_n(&accounts[device].cap, cap_bytes + 1, __ATOMIC_RELEASE);
}

uint64_t account_cap(int device)
{
    if (!is_device(device))
        return ACCOUNT_NO_CAP;
    return __atomic_load_n(&accounts[device].cap, __ATOMIC_RELAXED) - 1;
}

bool account_is_capped(int device) { return account_cap(device) != ACCOUNT_NO_CAP; }

uint64_t account_held(int device)
{
    return is_device(device) ? __atomic_load_n(&accounts[device].held, __ATOMIC_RELAXED) : 0;
}

uint64_t account_overhead(int device)
{
    return is_device(device) ? __atomic_load_n(&accounts[device].overhead, __ATOMIC_RELAXED) : 0;
}

uint64_t account_tracked(int device) { return account_held(device) - account_overhead(device); }

void account_set_overhead(int device, uint64_t bytes)
{
    if (!is_device(device))
        return;
    account_correct(device, account_overhead(device), bytes);
    __atomic_store_n(&accounts[device].overhead, bytes, __ATOMIC_RELAXED);
}

void account_ignore(int device, uint64_t bytes)
{
    if (!is_device(device))
        return;
    count_change(device);
    __atomic_fetch_add(&accounts[device].ignored, bytes, __ATOMIC_RELAXED);
}

void account_ignore_no_more(int device, uint64_t bytes) { account_ignore(device, -bytes); }

uint64_t account_ignored(int device)
{
    return is_device(device) ? __atomic_load_n(&accounts[device].ignored, __ATOMIC_RELAXED) : 0;
}

bool account_charge(int device, uint64_t bytes)
{
    const uint64_t cap = account_cap(device);
    if (!is_device(device))
        return true;
    uint64_t held = account_held(device);
    do {
        if (held > cap || bytes > cap - held)
            return false;
    } while (!__atomic_compare_exchange_n(&accounts[device].held, &held, held + bytes, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    count_change(device);
    return true;
}

void account_refund(int device, uint64_t bytes)
{
    if (!is_device(device))
        return;
    count_change(device);
    __atomic_fetch_sub(&accounts[device].held, bytes, __ATOMIC_RELAXED);
}

void account_correct(int device, uint64_t before, uint64_t after)
{
    if (!is_device(device))
        return;
    count_change(device);
    __atomic_fetch_add(&accounts[device].held, after - before, __ATOMIC_RELAXED);
}

uint64_t account_granule(uint64_t bytes)
{
    const uint64_t small = 512, large = (uint64_t)2 << 20, border = (uint64_t)1 << 20;
    const uint64_t granule = bytes < border ? small : large;
    if (bytes > UINT64_MAX - granule)
        return UINT64_MAX - UINT64_MAX % granule;
    return (bytes + granule - 1) / granule * granule;
}

uint64_t account_chunks(uint64_t bytes)
{
    const uint64_t chunk = (uint64_t)32 << 20;
    return bytes > UINT64_MAX - chunk ? bytes : (bytes + chunk - 1) / chunk * chunk;
}

void account_limit_to(uint64_t cap, uint64_t held, uint64_t *free, uint64_t *total)
{
    const uint64_t left = held < cap ? cap - held : 0;
    if (*total > cap)
        *total = cap;
    if (*free > left)
        *free = left;
}

void account_limit(int device, uint64_t *free, uint64_t *total)
{
    account_limit_to(account_cap(device), account_held(device), free, total);
}

void account_forget(void)
{
    watchers = 0;
    for (int device = 0; device < ACCOUNT_DEVICES_MAX; device++) {
        __atomic_store_n(&accounts[device].held, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&accounts[device].overhead, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&accounts[device].ignored, 0, __ATOMIC_RELAXED);
    }
}
