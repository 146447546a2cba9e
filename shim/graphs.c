/* graphs.c -- see graphs.h.
 *
 * How much may the reserve grow at a launch? Never by more than the graph maps; and never beyond
 * what can be bound at once, since the driver takes new memory only where what it has is bound to
 * something else. On one stream, graphs run one after the other, and so at most the widest of them
 * is bound, and all that they leave unfreed; on several, all that have been launched. This is
 * counted from the last trim on, with what it could not give back; and from the one before, since
 * what it could not give back may be what the same graphs will map again. The lower bound counts.
 */
#include "graphs.h"
#include "once.h"
#include "track.h"

#include <string.h>

static const uint64_t NO_STREAM = 0;

/* What can be bound at once, of graphs launched since some trim. */
struct window {
    uint64_t rest;     /* bytes that the trim left */
    uint64_t stream;   /* of the launches since; or NO_STREAM, GRAPHS_ANY_STREAM */
    uint64_t widest;   /* of them, without what they leave unfreed */
    uint64_t unfreed;  /* what they leave, together */
    uint64_t launched; /* all of them together */
};

static struct device {
    uint64_t reserved; /* bytes, as charged */
    uint64_t ticket;   /* of that reading */
    struct window now, before;
    uint32_t window;                  /* the number of `now` */
    uint32_t trims;                   /* begun */
    uint64_t flying;                  /* bytes of launches between begin and end */
    uint64_t outstanding, precharged; /* sums of theirs */
    uint64_t foreseen;                /* the reserve does not grow beyond it */
    int in_use;
} devices[ACCOUNT_DEVICES_MAX];
static int any_in_use;
static uint64_t last_ticket;
static struct short_lock lock;

/* An entry for each device of an executable graph: owner is what it leaves unfreed, kind how many
 * entries there are, count when it was launched last. */
static struct track_table graphs;

enum { HANDLE_BITS = 48 }; /* an address of user space */

static uint64_t key_of(uint64_t exec, int i) { return exec | (uint64_t)i << HANDLE_BITS; }

static void use(int device)
{
    __atomic_store_n(&devices[device].in_use, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&any_in_use, 1, __ATOMIC_RELAXED);
}

bool graphs_keep(uint64_t exec, const struct graph_demands *demands)
{
    graphs_drop(exec);
    for (int i = 0; i < demands->count; i++) {
        const struct graph_demand *demand = &demands->each[i];
        const struct track_entry entry = {.key = key_of(exec, i),
                                          .bytes = demand->bytes,
                                          .owner = demand->unfreed,
                                          .device = (uint16_t)demand->device,
                                          .kind = (uint16_t)demands->count,
                                          .count = demand->claimed};
        use(demand->device);
        if (exec >> HANDLE_BITS || !track_put(&graphs, &entry)) {
            graphs_drop(exec);
            return false;
        }
    }
    return true;
}

bool graphs_allocates(uint64_t exec)
{
    struct track_entry entry;
    return graphs_any_in_use() && track_find(&graphs, exec, &entry);
}

void graphs_read(uint64_t exec, struct graph_demands *demands)
{
    struct track_entry entry;
    demands->count = 0;
    while (demands->count < ACCOUNT_DEVICES_MAX &&
           track_find(&graphs, key_of(exec, demands->count), &entry)) {
        demands->each[demands->count++] = (struct graph_demand){.device = entry.device,
                                                                .claimed = entry.count,
                                                                .bytes = entry.bytes,
                                                                .unfreed = entry.owner};
        if (demands->count == entry.kind)
            break;
    }
}

void graphs_drop(uint64_t exec)
{
    struct track_entry entry;
    int count = 1;
    for (int i = 0; i < count && graphs_any_in_use(); i++) {
        if (!track_take(&graphs, key_of(exec, i), &entry))
            break;
        count = entry.kind;
    }
}

static uint64_t larger(uint64_t one, uint64_t other) { return one > other ? one : other; }
static uint64_t smaller(uint64_t one, uint64_t other) { return one < other ? one : other; }

/* A window's number in an entry; 0 there is "never". */
static uint32_t mark(uint32_t window) { return window + 1; }

static void launch_in(struct window *window, const struct graph_demand *demand, uint64_t stream,
                      bool counted)
{
    if (window->stream == NO_STREAM)
        window->stream = stream;
    else if (window->stream != stream)
        window->stream = GRAPHS_ANY_STREAM;
    if (counted)
        return;
    window->widest = larger(window->widest, demand->bytes - demand->unfreed);
    window->unfreed += demand->unfreed;
    window->launched += demand->bytes;
}

static uint64_t bound_in(const struct window *window)
{
    return window->rest + (window->stream == GRAPHS_ANY_STREAM ? window->launched
                                                               : window->widest + window->unfreed);
}

uint64_t graphs_begin(uint64_t exec, struct graph_demands *demands, int i, uint64_t stream)
{
    struct graph_demand *demand = &demands->each[i];
    struct device *device = &devices[demand->device];
    const uint64_t whole = account_chunks(demand->bytes);
    use(demand->device);
    short_lock_take(&lock);
    struct window now = device->now, before = device->before;
    const bool is_in_now = demand->claimed == mark(device->window);
    launch_in(&now, demand, stream, is_in_now);
    launch_in(&before, demand, stream, is_in_now || demand->claimed == mark(device->window - 1));
    const uint64_t bound = smaller(bound_in(&now), bound_in(&before));
    uint64_t need = bound > device->reserved ? account_chunks(bound - device->reserved) : 0;
    need = smaller(need, whole);
    if (need <= demand->precharged) {
        device->now = now;
        device->before = before;
        demand->claimed = mark(device->window);
        if (exec)
            track_recount(&graphs, key_of(exec, i), demand->claimed);
        demand->outstanding = whole - smaller(demand->precharged, whole);
        device->outstanding += demand->outstanding;
        device->flying += demand->bytes;
        device->precharged += demand->precharged;
        device->foreseen = larger(device->foreseen, device->reserved + device->precharged);
        need = 0;
    }
    short_lock_drop(&lock);
    return need;
}

void graphs_end(const struct graph_demand *demand)
{
    struct device *device = &devices[demand->device];
    short_lock_take(&lock);
    device->outstanding -= demand->outstanding;
    device->flying -= demand->bytes;
    device->precharged -= demand->precharged;
    short_lock_drop(&lock);
}

bool graphs_in_use(int device)
{
    return device >= 0 && device < ACCOUNT_DEVICES_MAX &&
           __atomic_load_n(&devices[device].in_use, __ATOMIC_RELAXED);
}

bool graphs_any_in_use(void) { return __atomic_load_n(&any_in_use, __ATOMIC_RELAXED); }

uint64_t graphs_ticket(void) { return __atomic_add_fetch(&last_ticket, 1, __ATOMIC_RELAXED); }

/* Under the lock: nothing has been launched in the window that begins, but what is on its way. A
 * window in which nothing was launched is not worth keeping. */
static void next_window(struct device *device)
{
    const uint64_t flying = device->flying;
    if (device->now.launched > 0) {
        if (bound_in(&device->now) < bound_in(&device->before))
            device->before = device->now;
        device->window++;
    }
    device->now = (struct window){.rest = device->reserved,
                                  .stream = flying ? GRAPHS_ANY_STREAM : NO_STREAM,
                                  .unfreed = flying,
                                  .launched = flying};
}

/* A trim may have taken memory away that a launch on its way counts on: that stays charged. */
bool graphs_publish(int number, uint64_t ticket, uint64_t reserved_bytes)
{
    struct device *device = &devices[number];
    bool more = false;
    short_lock_take(&lock);
    if (ticket > device->ticket) {
        more = reserved_bytes > device->foreseen;
        uint64_t charged = reserved_bytes;
        if (charged < device->reserved)
            charged = smaller(charged + device->outstanding, device->reserved);
        account_correct(number, device->reserved, charged);
        device->reserved = charged;
        device->ticket = ticket;
        device->foreseen = device->flying ? larger(device->foreseen, charged) : charged;
        if (reserved_bytes == 0 && device->flying == 0) { /* nothing is bound */
            device->now = device->before = (struct window){.rest = 0};
            device->window += 2;
        }
    }
    short_lock_drop(&lock);
    return more;
}

uint32_t graphs_trim_begins(int number)
{
    struct device *device = &devices[number];
    short_lock_take(&lock);
    next_window(device);
    const uint32_t trim = ++device->trims;
    short_lock_drop(&lock);
    return trim;
}

void graphs_trimmed(int number, uint32_t trim, uint64_t reserved_bytes)
{
    struct device *device = &devices[number];
    short_lock_take(&lock);
    if (trim == device->trims)
        device->now.rest = reserved_bytes;
    short_lock_drop(&lock);
}

void graphs_forget(void)
{
    lock = (struct short_lock){0};
    memset(devices, 0, sizeof devices);
    any_in_use = 0;
    track_forget(&graphs);
}
