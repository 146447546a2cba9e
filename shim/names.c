/* names.c -- is this name one of ours? A hash index over hooks.def.
 *
 * Knows: the list. Must not know: anything else; freestanding, since sanitizer and allocator
 * run-times call dlsym before any constructor and from inside malloc.
 * The tables are filled by code at the first question, not by the linker: a pointer table would
 * cost a relocation a row in every process of a machine. Threads that fill at the same time write
 * the same values, so no lock is needed that a signal handler could meet.
 */
#include "freestanding.h"
#include "hooks.h"

enum { INDEX_SLOTS = 1024 };

static struct hook_info rows[HOOK_ROWS];
static uint16_t index_of[INDEX_SLOTS]; /* row + 1; 0 is empty; linear probing */
static int filled;

_Static_assert(HOOK_ROWS < INDEX_SLOTS / 2, "the index is to stay at most half full");

static unsigned int hash(const char *name)
{
    unsigned int value = 2166136261U; /* FNV-1a */
    for (; *name; name++)
        value = (value ^ (unsigned char)*name) * 16777619U;
    return value ^ (value >> 15);
}

static void fill_row(int row, const char *symbol, void *hook, unsigned int when,
                     enum hook_library library)
{
    __atomic_store_n(&rows[row].symbol, symbol, __ATOMIC_RELAXED);
    __atomic_store_n(&rows[row].hook, hook, __ATOMIC_RELAXED);
    __atomic_store_n(&rows[row].when, when, __ATOMIC_RELAXED);
    __atomic_store_n(&rows[row].library, library, __ATOMIC_RELAXED);
    unsigned int slot = hash(symbol) % INDEX_SLOTS;
    for (;; slot = (slot + 1) % INDEX_SLOTS) {
        const uint16_t held = __atomic_load_n(&index_of[slot], __ATOMIC_RELAXED);
        if (held == 0 || held == row + 1)
            break;
    }
    __atomic_store_n(&index_of[slot], (uint16_t)(row + 1), __ATOMIC_RELAXED);
}

static void fill(void)
{
    if (__atomic_load_n(&filled, __ATOMIC_ACQUIRE))
        return;
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)                    \
    fill_row(HOOK_ROW_##symbol, #symbol, (void *)(uintptr_t)symbol, when, HOOK_OF_DRIVER);
#define NVML_HOOK(symbol, when, parameters, arguments)                                             \
    fill_row(HOOK_ROW_##symbol, #symbol, (void *)(uintptr_t)symbol, when, HOOK_OF_NVML);
#define RUNTIME_HOOK(symbol, parameters, arguments)                                                \
    fill_row(HOOK_ROW_##symbol, #symbol, (void *)(uintptr_t)symbol, 0, HOOK_OF_RUNTIME);
#define DRIVER_CALL(symbol, parameters)
#define NVML_CALL(symbol, parameters)
#include "hooks.def"
#undef DRIVER_HOOK
#undef NVML_HOOK
#undef RUNTIME_HOOK
#undef DRIVER_CALL
#undef NVML_CALL
    __atomic_store_n(&filled, 1, __ATOMIC_RELEASE);
}

int hook_find(const char *symbol)
{
    fill();
    unsigned int slot = hash(symbol) % INDEX_SLOTS;
    for (; index_of[slot]; slot = (slot + 1) % INDEX_SLOTS) {
        if (same_string(rows[index_of[slot] - 1].symbol, symbol))
            return index_of[slot] - 1;
    }
    return -1;
}

void hook_describe(int row, struct hook_info *info)
{
    fill();
    info->symbol = rows[row].symbol;
    info->hook = rows[row].hook;
    info->when = rows[row].when;
    info->library = rows[row].library;
}
