/* track.c -- see track.h. */
#include "track.h"

#include <sched.h>
#include <sys/mman.h>

enum {
    BUCKET_KEYS = 8,
    FIRST_LEVEL_BUCKETS = 512, /* each level has eight times the one before */
};

/* Key words. A stored key is the caller's + FIRST_KEY. */
static const uint64_t FREE = 0, BUSY = 1, FIRST_KEY = 2, ASIDE = (uint64_t)1 << 63;

/* Written only by the thread that holds the key word BUSY or ASIDE; read elsewhere as a hint. */
struct value {
    uint64_t bytes, owner;
    uint16_t device, kind;
    uint32_t count;
};

struct track_bucket {
    uint64_t keys[BUCKET_KEYS]; /* one cache line */
    struct value values[BUCKET_KEYS];
};

static size_t level_buckets(int level) { return (size_t)FIRST_LEVEL_BUCKETS << (3 * level); }

static struct track_bucket *level_at(struct track_table *table, int level)
{
    return __atomic_load_n(&table->levels[level], __ATOMIC_ACQUIRE);
}

static struct track_bucket *add_level(struct track_table *table, int level)
{
    const size_t bytes = level_buckets(level) * sizeof(struct track_bucket);
    struct track_bucket *fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct track_bucket *present = NULL;
    if (fresh == MAP_FAILED)
        return NULL;
    if (__atomic_compare_exchange_n(&table->levels[level], &present, fresh, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return fresh;
    munmap(fresh, bytes); /* another thread was first */
    return present;
}

static uint64_t mix(uint64_t key)
{
    key ^= key >> 32;
    key *= 0xD6E8FEB86659FD93U;
    key ^= key >> 32;
    key *= 0xD6E8FEB86659FD93U;
    return key ^ key >> 32;
}

/* The two buckets of a key in a level; their numbers come from different halves of its hash. */
static struct track_bucket *choice(struct track_bucket *level, int number, uint64_t hash, int which)
{
    uint64_t half = which ? hash >> 32 : hash & 0xFFFFFFFFU;
    return &level[half & (level_buckets(number) - 1)];
}

static bool put_in(struct track_bucket *bucket, const struct track_entry *entry)
{
    for (int i = 0; i < BUCKET_KEYS; i++) {
        uint64_t word = FREE;
        if (__atomic_load_n(&bucket->keys[i], __ATOMIC_RELAXED) != FREE ||
            !__atomic_compare_exchange_n(&bucket->keys[i], &word, BUSY, false, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED))
            continue;
        struct value *value = &bucket->values[i];
        __atomic_store_n(&value->bytes, entry->bytes, __ATOMIC_RELAXED);
        __atomic_store_n(&value->owner, entry->owner, __ATOMIC_RELAXED);
        __atomic_store_n(&value->device, entry->device, __ATOMIC_RELAXED);
        __atomic_store_n(&value->kind, entry->kind, __ATOMIC_RELAXED);
        __atomic_store_n(&value->count, entry->count, __ATOMIC_RELAXED);
        __atomic_store_n(&bucket->keys[i], entry->key + FIRST_KEY, __ATOMIC_RELEASE);
        return true;
    }
    return false;
}

static void read_value(const struct track_bucket *bucket, int i, uint64_t word,
                       struct track_entry *entry)
{
    const struct value *value = &bucket->values[i];
    entry->key = (word & ~ASIDE) - FIRST_KEY;
    entry->bytes = __atomic_load_n(&value->bytes, __ATOMIC_RELAXED);
    entry->owner = __atomic_load_n(&value->owner, __ATOMIC_RELAXED);
    entry->device = __atomic_load_n(&value->device, __ATOMIC_RELAXED);
    entry->kind = __atomic_load_n(&value->kind, __ATOMIC_RELAXED);
    entry->count = __atomic_load_n(&value->count, __ATOMIC_RELAXED);
}

bool track_put(struct track_table *table, const struct track_entry *entry)
{
    const uint64_t hash = mix(entry->key);
    int top = TRACK_LEVELS - 1;
    if (entry->key >= ASIDE - FIRST_KEY)
        return false;
    while (top > 0 && !level_at(table, top))
        top--;
    for (; top < TRACK_LEVELS; top++) {
        struct track_bucket *level = level_at(table, top);
        if (!level && !(level = add_level(table, top)))
            return false;
        if (put_in(choice(level, top, hash, 0), entry) ||
            put_in(choice(level, top, hash, 1), entry))
            return true;
    }
    return false;
}

/* Which entries of a key are taken: those in place, or those that are or were set aside. The bits
 * of a key word that tell. */
static const uint64_t IN_PLACE = UINT64_MAX, ONCE_ASIDE = ~ASIDE;

/* `*busy`: a slot changed hands meanwhile, and may hold the key now. */
static bool take_from(struct track_bucket *bucket, uint64_t key, uint64_t which,
                      struct track_entry *entry, bool *busy)
{
    for (int i = 0; i < BUCKET_KEYS; i++) {
        uint64_t word = __atomic_load_n(&bucket->keys[i], __ATOMIC_RELAXED);
        *busy |= word == BUSY;
        if ((word & which) != key + FIRST_KEY)
            continue;
        if (!__atomic_compare_exchange_n(&bucket->keys[i], &word, BUSY, false, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED)) {
            *busy = true;
            continue;
        }
        read_value(bucket, i, word, entry);
        if (which == IN_PLACE || entry->count != 0) {
            __atomic_store_n(&bucket->keys[i], FREE, __ATOMIC_RELEASE);
            return true;
        }
        __atomic_store_n(&bucket->keys[i], word, __ATOMIC_RELEASE);
    }
    return false;
}

static bool take(struct track_table *table, uint64_t key, uint64_t which, struct track_entry *entry)
{
    const uint64_t hash = mix(key);
    bool busy = false;
    if (key >= ASIDE - FIRST_KEY)
        return false;
    do {
        if (busy)
            sched_yield();
        busy = false;
        for (int top = TRACK_LEVELS - 1; top >= 0; top--) {
            struct track_bucket *level = level_at(table, top);
            if (level && (take_from(choice(level, top, hash, 0), key, which, entry, &busy) ||
                          take_from(choice(level, top, hash, 1), key, which, entry, &busy)))
                return true;
        }
    } while (busy);
    return false;
}

bool track_take(struct track_table *table, uint64_t key, struct track_entry *entry)
{
    return take(table, key, IN_PLACE, entry);
}

bool track_take_aside(struct track_table *table, uint64_t key, struct track_entry *entry)
{
    return take(table, key, ONCE_ASIDE, entry);
}

/* The slot of a key, or -1. */
static int slot_of(struct track_bucket *bucket, uint64_t key)
{
    for (int i = 0; i < BUCKET_KEYS; i++) {
        if (__atomic_load_n(&bucket->keys[i], __ATOMIC_ACQUIRE) == key + FIRST_KEY)
            return i;
    }
    return -1;
}

static struct track_bucket *bucket_of(struct track_table *table, uint64_t key, int *slot)
{
    const uint64_t hash = mix(key);
    for (int top = TRACK_LEVELS - 1; key < ASIDE - FIRST_KEY && top >= 0; top--) {
        struct track_bucket *level = level_at(table, top);
        for (int which = 0; level && which < 2; which++) {
            struct track_bucket *bucket = choice(level, top, hash, which);
            if ((*slot = slot_of(bucket, key)) >= 0)
                return bucket;
        }
    }
    return NULL;
}

bool track_find(struct track_table *table, uint64_t key, struct track_entry *entry)
{
    struct track_bucket *bucket;
    int slot;
    while ((bucket = bucket_of(table, key, &slot)) != NULL) {
        uint64_t word = key + FIRST_KEY;
        read_value(bucket, slot, word, entry);
        /* an exchange, which the reads cannot come after */
        if (__atomic_compare_exchange_n(&bucket->keys[slot], &word, word, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return true; /* else it was taken meanwhile */
    }
    return false;
}

void track_recount(struct track_table *table, uint64_t key, uint32_t count)
{
    int slot;
    struct track_bucket *bucket = bucket_of(table, key, &slot);
    if (bucket)
        __atomic_store_n(&bucket->values[slot].count, count, __ATOMIC_RELAXED);
}

/* Calls `act` for every slot that is not free. */
static void walk(struct track_table *table,
                 void (*act)(struct track_bucket *bucket, int i, uint64_t word, void *context),
                 void *context)
{
    for (int number = 0; number < TRACK_LEVELS; number++) {
        struct track_bucket *level = level_at(table, number);
        for (size_t b = 0; level && b < level_buckets(number); b++) {
            for (int i = 0; i < BUCKET_KEYS; i++) {
                uint64_t word = __atomic_load_n(&level[b].keys[i], __ATOMIC_ACQUIRE);
                if (word != FREE && word != BUSY)
                    act(&level[b], i, word, context);
            }
        }
    }
}

static bool is_among(struct track_owners owners, uint64_t owner)
{
    return owner >= owners.first && owner <= owners.last;
}

struct setting_aside {
    struct track_owners owners;
    uint32_t tag;
};

static void set_aside(struct track_bucket *bucket, int i, uint64_t word, void *context)
{
    const struct setting_aside *wanted = context;
    struct value *value = &bucket->values[i];
    if (word & ASIDE || !is_among(wanted->owners, __atomic_load_n(&value->owner, __ATOMIC_RELAXED)))
        return;
    /* BUSY until the tag is there, since another's settling may pass by. */
    uint64_t found = word;
    if (!__atomic_compare_exchange_n(&bucket->keys[i], &found, BUSY, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return;
    /* Now ours to read. It may be another entry of the same address that came in between. */
    if (is_among(wanted->owners, __atomic_load_n(&value->owner, __ATOMIC_RELAXED))) {
        __atomic_store_n(&value->count, wanted->tag, __ATOMIC_RELAXED);
        word |= ASIDE;
    }
    __atomic_store_n(&bucket->keys[i], word, __ATOMIC_RELEASE);
}

void track_set_aside(struct track_table *table, struct track_owners owners, uint32_t tag)
{
    struct setting_aside wanted = {owners, tag};
    walk(table, set_aside, &wanted);
}

struct settling {
    struct track_owners owners;
    uint32_t tag;
    bool (*visit)(const struct track_entry *entry);
};

static void settle(struct track_bucket *bucket, int i, uint64_t word, void *context)
{
    const struct settling *settling = context;
    struct track_entry entry;
    if (!(word & ASIDE) ||
        !is_among(settling->owners, __atomic_load_n(&bucket->values[i].owner, __ATOMIC_RELAXED)) ||
        __atomic_load_n(&bucket->values[i].count, __ATOMIC_RELAXED) != settling->tag)
        return;
    uint64_t found = word;
    if (!__atomic_compare_exchange_n(&bucket->keys[i], &found, BUSY, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return;
    read_value(bucket, i, word, &entry);
    if (!is_among(settling->owners, entry.owner) || entry.count != settling->tag) {
        __atomic_store_n(&bucket->keys[i], word, __ATOMIC_RELEASE);
        return;
    }
    const bool keep = !settling->visit || settling->visit(&entry);
    __atomic_store_n(&bucket->keys[i], keep ? word & ~ASIDE : FREE, __ATOMIC_RELEASE);
}

void track_settle(struct track_table *table, struct track_owners owners, uint32_t tag,
                  bool (*visit)(const struct track_entry *entry))
{
    struct settling settling = {owners, tag, visit};
    walk(table, settle, &settling);
}

void track_forget(struct track_table *table)
{
    for (int level = 0; level < TRACK_LEVELS; level++) {
        if (table->levels[level])
            munmap(table->levels[level], level_buckets(level) * sizeof(struct track_bucket));
        table->levels[level] = NULL;
    }
}
