/* objects.c -- see objects.h. */
#include "objects.h"
#include "freestanding.h"

#include <dlfcn.h>
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>

/* Weak: a strong reference would make the linker add a NEEDED ld-linux, which kills every program
 * of another C library; musl has no such symbol, and its list is found through DT_DEBUG. */
extern struct r_debug _r_debug __attribute__((weak));
/* Our own dynamic section; the linker defines it. */
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

struct symbol_table {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    const uint32_t *sysv_hash;
};

/* Pointers of a dynamic section are relocated by glibc, except in the vDSO; musl never does it. */
static const void *at(const struct link_map *object, uintptr_t pointer)
{
    if (pointer < object->l_addr)
        pointer += object->l_addr;
    return (
        const void *)pointer; /* NOLINT(performance-no-int-to-ptr): an address from the ELF file */
}

static void read_symbol_table(const struct link_map *object, struct symbol_table *table)
{
    *table = (struct symbol_table){NULL, NULL, NULL, NULL};
    for (const ElfW(Dyn) *entry = object->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            table->symbols = at(object, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_STRTAB)
            table->strings = at(object, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_GNU_HASH)
            table->gnu_hash = at(object, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_HASH)
            table->sysv_hash = at(object, entry->d_un.d_ptr);
    }
}

static void *defined(const struct link_map *object, const struct symbol_table *table,
                     uint32_t number, const char *name)
{
    const ElfW(Sym) *symbol = &table->symbols[number];
    unsigned char bind = symbol->st_info >> 4;
    unsigned char type = symbol->st_info & 15;
    if (symbol->st_shndx == SHN_UNDEF || (bind != STB_GLOBAL && bind != STB_WEAK) ||
        (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE) ||
        (symbol->st_other & 3) == STV_HIDDEN || (symbol->st_other & 3) == STV_INTERNAL ||
        !same_string(table->strings + symbol->st_name, name))
        return NULL;
    return (void *)(object->l_addr + symbol->st_value); /* NOLINT(performance-no-int-to-ptr) */
}

static void *find_gnu(const struct link_map *object, const struct symbol_table *table,
                      const char *name)
{
    uint32_t hash = 5381;
    for (const char *c = name; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    const uint32_t bucket_count = table->gnu_hash[0], first = table->gnu_hash[1];
    const uint32_t bloom_words = table->gnu_hash[2], bloom_shift = table->gnu_hash[3];
    const ElfW(Addr) *bloom = (const ElfW(Addr) *)(const void *)(table->gnu_hash + 4);
    const uint32_t *buckets = (const uint32_t *)(const void *)(bloom + bloom_words);
    const uint32_t *chain = buckets + bucket_count;
    const unsigned int bits = 8 * sizeof(ElfW(Addr));
    if (bucket_count == 0 || bloom_words == 0)
        return NULL;
    ElfW(Addr) word = bloom[(hash / bits) % bloom_words];
    if (!((word >> (hash % bits)) & (word >> ((hash >> bloom_shift) % bits)) & 1))
        return NULL;
    uint32_t number = buckets[hash % bucket_count];
    if (number < first)
        return NULL;
    for (;; number++) {
        uint32_t link = chain[number - first];
        if ((link | 1) == (hash | 1)) {
            void *found = defined(object, table, number, name);
            if (found)
                return found;
        }
        if (link & 1)
            return NULL;
    }
}

static void *find_sysv(const struct link_map *object, const struct symbol_table *table,
                       const char *name)
{
    uint32_t hash = 0;
    for (const char *c = name; *c; c++) {
        hash = (hash << 4) + (unsigned char)*c;
        uint32_t high = hash & 0xf0000000U;
        hash ^= high >> 24;
        hash &= ~high;
    }
    const uint32_t bucket_count = table->sysv_hash[0];
    const uint32_t *buckets = table->sysv_hash + 2, *chain = buckets + bucket_count;
    if (bucket_count == 0)
        return NULL;
    for (uint32_t number = buckets[hash % bucket_count]; number; number = chain[number]) {
        void *found = defined(object, table, number, name);
        if (found)
            return found;
    }
    return NULL;
}

void *objects_symbol(const struct link_map *object, const char *name)
{
    struct symbol_table table;
    read_symbol_table(object, &table);
    if (!table.symbols || !table.strings)
        return NULL;
    if (table.gnu_hash)
        return find_gnu(object, &table, name);
    return table.sysv_hash ? find_sysv(object, &table, name) : NULL;
}

/* The program's own DT_DEBUG, which every System V linker fills in. */
static struct r_debug *debug_of_program(void)
{
    const ElfW(Phdr) *headers =
        (const ElfW(Phdr) *)getauxval(AT_PHDR); /* NOLINT(performance-no-int-to-ptr) */
    unsigned long count = getauxval(AT_PHNUM);
    const ElfW(Phdr) *dynamic = NULL;
    ElfW(Addr) base = 0;
    for (unsigned long i = 0; headers && i < count; i++) {
        if (headers[i].p_type == PT_PHDR)
            base = (ElfW(Addr))headers - headers[i].p_vaddr;
        else if (headers[i].p_type == PT_DYNAMIC)
            dynamic = &headers[i];
    }
    if (!dynamic)
        return NULL;
    const ElfW(Dyn) *entry =
        (const ElfW(Dyn) *)(base + dynamic->p_vaddr); /* NOLINT(performance-no-int-to-ptr) */
    for (; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_DEBUG)
            return (struct r_debug *)entry->d_un.d_ptr; /* NOLINT(performance-no-int-to-ptr) */
    }
    return NULL;
}

struct link_map *objects_first(void)
{
    struct r_debug *debug = &_r_debug;
    if (!debug || !debug->r_map)
        debug = debug_of_program();
    return debug ? debug->r_map : NULL;
}

struct link_map *objects_self(void)
{
    struct link_map *object = objects_first();
    while (object && object->l_ld != _DYNAMIC)
        object = object->l_next;
    return object;
}

static struct link_map *last_of_start;

void objects_note_start(void)
{
    struct link_map *object = objects_first();
    while (object && object->l_next)
        object = object->l_next;
    last_of_start = object;
}

struct link_map *objects_first_opened(void) { return last_of_start ? last_of_start->l_next : NULL; }

bool objects_is_of_start(const struct link_map *object)
{
    const struct link_map *known = objects_first();
    for (; known; known = known == last_of_start ? NULL : known->l_next) {
        if (known == object)
            return true;
    }
    return false;
}

bool objects_is_before_self(const struct link_map *object)
{
    for (; object; object = object == last_of_start ? NULL : object->l_next) {
        if (object->l_ld == _DYNAMIC)
            return true;
    }
    return false;
}

void *objects_search(const struct link_map *from, const struct link_map *end, const char *name)
{
    for (; from && from != end; from = from->l_next) {
        void *found = from->l_ld == _DYNAMIC ? NULL : objects_symbol(from, name);
        if (found)
            return found;
    }
    return NULL;
}

/* After us first; an interposer before us that calls "the next" would otherwise call us for ever.
 */
static void *find_libc_function(const char *name)
{
    struct link_map *self = objects_self();
    void *found =
        objects_search(self ? self->l_next : objects_first(), objects_first_opened(), name);
    return found ? found : objects_search(objects_first(), self, name);
}

const struct objects_libc *objects_libc(void)
{
    static struct objects_libc libc;
    static int ready;
    if (__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
        return &libc;
        /* Threads that meet here store the same values. */
#define FIND(function)                                                                             \
    do {                                                                                           \
        union {                                                                                    \
            void *object;                                                                          \
            __typeof__(libc.function) function;                                                    \
        } found = {find_libc_function(#function)};                                                 \
        __atomic_store_n(&libc.function, found.function, __ATOMIC_RELAXED);                        \
    } while (0)
    FIND(dlopen);
    FIND(dlsym);
    FIND(dlvsym);
    FIND(dlclose);
    FIND(dlerror);
    FIND(dladdr);
    FIND(dladdr1);
#undef FIND
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    return &libc;
}

/* Asked of the C library, which knows where it mapped what; takes the linker's lock for reading. */
struct link_map *objects_holding(const void *address)
{
    const struct objects_libc *libc = objects_libc();
    Dl_info info;
    void *object = NULL;
    if (libc->dladdr1)
        return libc->dladdr1(address, &info, &object, RTLD_DL_LINKMAP) ? object : NULL;
    if (!libc->dladdr || !libc->dladdr(address, &info))
        return NULL;
    struct link_map *map = objects_first(); /* musl: the name is the list's own string */
    while (map && map->l_name != info.dli_fname)
        map = map->l_next;
    return map;
}
