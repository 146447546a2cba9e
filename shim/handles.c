/* handles.c -- see handles.h. */
#include "handles.h"
#include "once.h"

#include <string.h>

enum kind {
    MEMORY = 1,  /* charged */
    EXPORTED,    /* the same, and may have been imported again */
    OWN_PERHAPS, /* an import that may be exported memory of ours */
    NOT_CHARGED  /* other processes' memory, multicast objects */
};

/* Handle -> device, bytes, kind, references (count), mappings (owner). */
static struct track_table handles;

static uint32_t exported[ACCOUNT_DEVICES_MAX];   /* live handles of that kind */
static uint64_t kept_bytes[ACCOUNT_DEVICES_MAX]; /* whose handles are gone, imports perhaps not */
static uint32_t
    imports[HANDLES_EVERYWHERE + 1U]; /* OWN_PERHAPS, by where; and those on their way */

enum { BINDINGS_MAX = 1024 };
enum binding_state { FREE, BOUND, LEAVING };
static struct binding {
    uint64_t object, offset, memory;
    struct handles_leave leave; /* of the memory, while LEAVING */
    int device;
    enum binding_state state;
} bindings[BINDINGS_MAX];
static int bindings_used; /* none has this number or a higher one */

static struct short_lock lock;

/* All that follows up to handles_enter() is called under the lock. */

static bool is_device(int where) { return where >= 0 && where < ACCOUNT_DEVICES_MAX; }

static void import_ends(int where)
{
    imports[where]--;
    if (imports[HANDLES_EVERYWHERE] > 0)
        return;
    for (int i = 0; i < ACCOUNT_DEVICES_MAX; i++) {
        if (imports[i] == 0 && kept_bytes[i] > 0) {
            account_refund(i, kept_bytes[i]);
            kept_bytes[i] = 0;
        }
    }
}

static void end(const struct track_entry *entry)
{
    if (entry->kind == OWN_PERHAPS)
        import_ends(entry->device);
    if (entry->kind == EXPORTED)
        exported[entry->device]--;
    if (entry->kind == EXPORTED && (imports[entry->device] > 0 || imports[HANDLES_EVERYWHERE] > 0))
        kept_bytes[entry->device] += entry->bytes;
    else if (entry->kind == EXPORTED || entry->kind == MEMORY)
        account_refund(entry->device, entry->bytes);
}

static bool add(uint64_t handle, enum handles_by by)
{
    struct track_entry entry;
    if (!track_take(&handles, handle, &entry))
        return false;
    if (by == HANDLES_REFERENCE)
        entry.count++;
    else
        entry.owner++;
    track_put(&handles, &entry); /* its place may not have been filled since: there is room */
    return true;
}

static void take_off(struct handles_leave *leave, uint64_t handle, enum handles_by by)
{
    struct track_entry *entry = &leave->entry;
    leave->handle = handle;
    leave->by = by;
    leave->gone = false;
    leave->known = track_take(&handles, handle, entry);
    if (!leave->known)
        return;
    if (by == HANDLES_REFERENCE)
        entry->count--; /* below none where the program has none: the driver refuses, it comes back
                         */
    else
        entry->owner--;
    leave->gone = entry->count == 0 && entry->owner == 0;
    if (!leave->gone)
        track_put(&handles, entry);
}

static void put_back(const struct handles_leave *leave)
{
    struct track_entry entry = leave->entry;
    if (!leave->gone) {
        add(leave->handle, leave->by);
        return;
    }
    entry.count = leave->by == HANDLES_REFERENCE;
    entry.owner = leave->by == HANDLES_MAPPING;
    track_put(&handles, &entry);
}

static void settle(const struct handles_leave *leave, bool done)
{
    if (leave->known && !done)
        put_back(leave);
    else if (leave->gone)
        end(&leave->entry);
}

static void binding_leaves(struct binding *binding)
{
    take_off(&binding->leave, binding->memory, HANDLES_MAPPING);
    binding->state = LEAVING;
}

static void binding_left(struct binding *binding, bool done)
{
    settle(&binding->leave, done);
    binding->state = done ? FREE : BOUND;
}

bool handles_enter(uint64_t handle, int device, uint64_t bytes)
{
    const struct track_entry entry = {.key = handle,
                                      .bytes = bytes,
                                      .device = (uint16_t)device,
                                      .kind = bytes ? MEMORY : NOT_CHARGED,
                                      .count = 1};
    short_lock_take(&lock);
    bool entered = track_put(&handles, &entry);
    short_lock_drop(&lock);
    return entered;
}

bool handles_hold(uint64_t handle, enum handles_by by)
{
    short_lock_take(&lock);
    bool known = add(handle, by);
    short_lock_drop(&lock);
    return known;
}

/* What was bound to an object goes with it. */
void handles_leave(struct handles_leave *leave, uint64_t handle, enum handles_by by)
{
    short_lock_take(&lock);
    take_off(leave, handle, by);
    for (int i = 0; leave->gone && i < bindings_used; i++) {
        if (bindings[i].state == BOUND && bindings[i].object == handle)
            binding_leaves(&bindings[i]);
    }
    short_lock_drop(&lock);
}

void handles_left(const struct handles_leave *leave, bool done)
{
    short_lock_take(&lock);
    settle(leave, done);
    for (int i = 0; leave->gone && i < bindings_used; i++) {
        if (bindings[i].state == LEAVING && bindings[i].object == leave->handle)
            binding_left(&bindings[i], done);
    }
    short_lock_drop(&lock);
}

void handles_drop(uint64_t handle, enum handles_by by)
{
    struct handles_leave leave;
    handles_leave(&leave, handle, by);
    handles_left(&leave, true);
}

void handles_export(uint64_t handle)
{
    struct track_entry entry;
    short_lock_take(&lock);
    if (track_take(&handles, handle, &entry)) {
        if (entry.kind == MEMORY) {
            entry.kind = EXPORTED;
            exported[entry.device]++;
        }
        track_put(&handles, &entry);
    }
    short_lock_drop(&lock);
}

void handles_import_begins(void)
{
    short_lock_take(&lock);
    imports[HANDLES_EVERYWHERE]++;
    short_lock_drop(&lock);
}

void handles_import_failed(void)
{
    short_lock_take(&lock);
    import_ends(HANDLES_EVERYWHERE);
    short_lock_drop(&lock);
}

static bool may_be_ours(int where)
{
    bool may = false;
    for (int i = 0; i < ACCOUNT_DEVICES_MAX; i++) {
        if (i == where || where == HANDLES_EVERYWHERE)
            may = may || exported[i] > 0 || kept_bytes[i] > 0;
    }
    return may;
}

bool handles_imported(uint64_t handle, int where)
{
    struct track_entry entry = {
        .key = handle, .device = (uint16_t)where, .kind = NOT_CHARGED, .count = 1};
    short_lock_take(&lock);
    bool kept = add(handle, HANDLES_REFERENCE);
    if (!kept) {
        if (may_be_ours(where))
            entry.kind = OWN_PERHAPS;
        kept = track_put(&handles, &entry);
        if (kept && entry.kind == OWN_PERHAPS)
            imports[where]++;
    }
    import_ends(HANDLES_EVERYWHERE);
    short_lock_drop(&lock);
    return kept;
}

bool handles_bind(uint64_t object, uint64_t offset, uint64_t memory)
{
    struct track_entry entry;
    int i = 0;
    short_lock_take(&lock);
    while (i < bindings_used && bindings[i].state != FREE)
        i++;
    bool bound = i < BINDINGS_MAX && track_find(&handles, memory, &entry);
    if (bound) {
        bindings[i] = (struct binding){.object = object,
                                       .offset = offset,
                                       .memory = memory,
                                       .device = entry.device,
                                       .state = BOUND};
        if (i == bindings_used)
            bindings_used++;
    }
    short_lock_drop(&lock);
    return bound;
}

int handles_unbind(uint64_t object, int device, uint64_t offset)
{
    int found = HANDLES_NO_BINDING;
    short_lock_take(&lock);
    for (int i = 0; i < bindings_used && found == HANDLES_NO_BINDING; i++) {
        struct binding *binding = &bindings[i];
        if (binding->state == BOUND && binding->object == object && binding->offset == offset &&
            (binding->device == device || !is_device(binding->device))) {
            binding_leaves(binding);
            found = i;
        }
    }
    short_lock_drop(&lock);
    return found;
}

void handles_unbound(int binding, bool done)
{
    if (binding == HANDLES_NO_BINDING)
        return;
    short_lock_take(&lock);
    binding_left(&bindings[binding], done);
    short_lock_drop(&lock);
}

void handles_forget(void)
{
    lock = (struct short_lock){0};
    track_forget(&handles);
    memset(exported, 0, sizeof exported);
    memset(kept_bytes, 0, sizeof kept_bytes);
    memset(imports, 0, sizeof imports);
    memset(bindings, 0, sizeof bindings[0] * (size_t)bindings_used);
    bindings_used = 0;
}
