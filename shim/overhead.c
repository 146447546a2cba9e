/* overhead.c -- see overhead.h. */
#include "overhead.h"
#include "fork.h"
#include "hook.h"
#include "log.h"
#include "once.h"
#include "posture.h"
#include "view.h"

#include <time.h>

enum { LOOK_EVERY_MS = 100, TRIES = 3 };

/* How this process's part is known: decided when its first context has been made. */
static enum way { WAY_UNDECIDED, WAY_LISTED, WAY_GROWTH, WAY_NONE } way;

static struct {
    int contexts;
    unsigned int whole; /* of these, those with memory of their own */
    uint64_t fixed;     /* bytes charged, where the policy names a size */
    uint64_t each;      /* what a context takes, seen when nothing else was there */
    bool mixed;         /* there may be modules */
    uint64_t ticket;    /* of the measurement that holds; the one that began last */
    uint64_t looked_ms;
} devices[ACCOUNT_DEVICES_MAX];
static uint64_t last_ticket;
static struct short_lock lock;

void overhead_forget(void)
{
    lock = (struct short_lock){0};
    way = WAY_UNDECIDED;
    for (int i = 0; i < ACCOUNT_DEVICES_MAX; i++) {
        devices[i].contexts = 0;
        devices[i].whole = 0;
        devices[i].fixed = 0;
    }
}

static enum way current_way(void) { return __atomic_load_n(&way, __ATOMIC_RELAXED); }

static struct policy_size wanted(void)
{
    const struct posture_decision *decided = posture();
    return policy_overhead(decided->layers, decided->layer_count);
}

static uint64_t now_ms(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* What calls have asked for, whether it counts or is let pass. */
static uint64_t asked_for(int device) { return account_tracked(device) + account_ignored(device); }

static bool fits(int device) { return account_held(device) <= account_cap(device); }

/* One measurement; true if nothing was charged or given back meanwhile. Else the two figures are of
 * different moments, and nothing follows from them. A request that is on its way all the time does
 * not show, and makes the figure too low; so contexts count at least what they took when nothing
 * else was there. */
static bool measure_once(int device)
{
    struct usage usage;
    short_lock_take(&lock);
    const uint64_t ticket = ++last_ticket;
    account_watch(true);
    const uint64_t before = account_changes(device);
    short_lock_drop(&lock);
    usage_ask(view_uuid(device), &usage);
    short_lock_take(&lock);
    const uint64_t asked = asked_for(device);
    const bool steady = account_changes(device) == before;
    account_watch(false);
    if (!usage.known) {
        short_lock_drop(&lock);
        return true;
    }
    uint64_t overhead = steady && usage.own > asked ? usage.own - asked : 0;
    const uint64_t whole = devices[device].whole;
    if (steady && asked == 0 && !devices[device].mixed && whole &&
        overhead / whole > devices[device].each)
        devices[device].each = overhead / whole;
    if (overhead < devices[device].each * whole)
        overhead = devices[device].each * whole;
    if (ticket > devices[device].ticket && (steady || overhead > account_overhead(device))) {
        devices[device].ticket = ticket;
        account_set_overhead(device, overhead);
    }
    short_lock_drop(&lock);
    return steady;
}

static void measure(int device)
{
    __atomic_store_n(&devices[device].looked_ms, now_ms(), __ATOMIC_RELAXED);
    hook_refresh(device); /* what is tracked must be true for the rest to be */
    for (int i = 0; i < TRIES && !measure_once(device); i++)
        continue;
}

static void say_growth(void)
{
    struct text_line line;
    log_start(&line);
    text_add(&line, "NVML does not list this process (a container, MPS): its contexts are counted "
                    "by how much the card's use grows while they are made, and modules are not");
    log_write(POLICY_LOG_WARN, &line);
}

static void say_none(void)
{
    struct text_line line;
    log_start(&line);
    text_add(&line, "NVML cannot be asked: what contexts and modules take is not counted");
    log_write(POLICY_LOG_INFO, &line);
}

/* Our process id may be another process's in NVML's eyes, if that lives in a container beside us:
 * it is ours if it appeared with our first context. */
static enum way decide(const struct overhead_birth *birth, const struct usage *after)
{
    enum way found = WAY_UNDECIDED, none = WAY_UNDECIDED;
    if (!after->known || !birth->before.known)
        found = WAY_NONE;
    else if (after->listed && !birth->before.listed)
        found = WAY_LISTED;
    else if (birth->first)
        found = WAY_GROWTH;
    if (found == WAY_UNDECIDED ||
        !__atomic_compare_exchange_n(&way, &none, found, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return current_way();
    if (found == WAY_GROWTH)
        say_growth();
    if (found == WAY_NONE)
        say_none();
    return found;
}

/* The card's growth, less what this process took by calls meanwhile. */
static void add_growth(const struct overhead_birth *birth, const struct usage *after)
{
    const int device = birth->device;
    short_lock_take(&lock);
    const uint64_t before = birth->before.card - birth->asked;
    const int64_t growth = (int64_t)(after->card - asked_for(device) - before);
    if (growth > 0)
        account_set_overhead(device, account_overhead(device) + (uint64_t)growth);
    short_lock_drop(&lock);
}

/* Under the lock. */
static bool charge_fixed(int device, uint64_t bytes)
{
    if (devices[device].contexts > 0)
        return true;
    if (!account_charge(device, bytes))
        return false;
    devices[device].fixed = bytes;
    return true;
}

static bool begin(struct overhead_birth *birth, int device, uint64_t fixed)
{
    short_lock_take(&lock);
    birth->first = true;
    for (int i = 0; i < ACCOUNT_DEVICES_MAX; i++)
        birth->first &= devices[i].contexts == 0;
    bool may = fixed == 0 || charge_fixed(device, fixed);
    if (may) {
        devices[device].contexts++;
        devices[device].whole += birth->whole;
    }
    short_lock_drop(&lock);
    return may;
}

bool overhead_context_begins(struct overhead_birth *birth, int device, bool whole)
{
    const struct policy_size size = wanted();
    const uint64_t fixed = size.kind == POLICY_SIZE_BYTES ? size.value : 0;
    birth->device = NO_DEVICE;
    if (size.kind == POLICY_SIZE_NONE || device < 0 || device >= view_count() ||
        !account_is_capped(device))
        return true;
    birth->whole = whole;
    if (!begin(birth, device, fixed) && !(hook_trim(device) && begin(birth, device, fixed)))
        return false;
    birth->device = device;
    birth->before = (struct usage){0};
    birth->asked = asked_for(device);
    if (size.kind == POLICY_SIZE_MEASURED && current_way() != WAY_LISTED)
        usage_ask(view_uuid(device), &birth->before);
    return true;
}

void overhead_context_failed(const struct overhead_birth *birth)
{
    if (birth->device != NO_DEVICE)
        overhead_context_ended(birth->device, birth->whole);
}

bool overhead_context_made(const struct overhead_birth *birth)
{
    struct usage after = {0};
    enum way how = current_way();
    if (birth->device == NO_DEVICE || wanted().kind != POLICY_SIZE_MEASURED)
        return true;
    if (how != WAY_LISTED)
        usage_ask(view_uuid(birth->device), &after);
    if (how == WAY_UNDECIDED)
        how = decide(birth, &after);
    if (how == WAY_LISTED)
        measure(birth->device);
    else if (how == WAY_GROWTH && after.known && birth->before.known)
        add_growth(birth, &after);
    return fits(birth->device) || (hook_trim(birth->device) && fits(birth->device));
}

void overhead_context_ended(int device, bool whole)
{
    short_lock_take(&lock);
    const bool counted = devices[device].contexts > 0;
    devices[device].whole -= whole && devices[device].whole > 0;
    const bool last = counted && --devices[device].contexts == 0;
    if (last && devices[device].fixed) {
        account_refund(device, devices[device].fixed);
        devices[device].fixed = 0;
    }
    if (last && current_way() == WAY_GROWTH)
        account_set_overhead(device, 0);
    short_lock_drop(&lock);
    if (counted && current_way() == WAY_LISTED)
        measure(device);
}

static bool ask_free(size_t *free_bytes)
{
    struct capture_pause pause;
    size_t total;
    if (!real.cuMemGetInfo_v2)
        return false;
    hook_pause_capture(&pause);
    CUresult rc = real.cuMemGetInfo_v2(free_bytes, &total);
    hook_resume_capture(&pause);
    return rc == CUDA_SUCCESS;
}

void overhead_watch(struct overhead_watch *watch)
{
    watch->device = NO_DEVICE;
    if (current_way() != WAY_LISTED)
        return;
    int device;
    if (hook_find_device(&device) == CUDA_SUCCESS && device != NO_DEVICE &&
        account_is_capped(device) && ask_free(&watch->free_bytes))
        watch->device = device;
}

bool overhead_watched(const struct overhead_watch *watch)
{
    const int device = watch->device;
    size_t free_bytes;
    if (device == NO_DEVICE || (ask_free(&free_bytes) && free_bytes == watch->free_bytes))
        return true;
    __atomic_store_n(&devices[device].mixed, true, __ATOMIC_RELAXED);
    measure(device);
    return fits(device) || (hook_trim(device) && fits(device));
}

void overhead_look(int device, uint64_t bytes)
{
    if (current_way() != WAY_LISTED)
        return;
    const uint64_t cap = account_cap(device), near = cap - cap / 8, held = account_held(device);
    if (held <= near && bytes <= near - held)
        return;
    if (now_ms() - __atomic_load_n(&devices[device].looked_ms, __ATOMIC_RELAXED) >= LOOK_EVERY_MS)
        measure(device);
}
