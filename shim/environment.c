/* environment.c -- see environment.h. */
#include "environment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The slot of the first string that begins with the same "NAME=" as `string`, or that is `string`
 * itself where `exact`. */
static char **slot_of(const char *string, bool exact)
{
    char **slot = __atomic_load_n(&environ, __ATOMIC_ACQUIRE);
    const size_t name = (size_t)(strchr(string, '=') - string) + 1;
    for (; slot && *slot; slot++) {
        if (exact ? *slot == string : strncmp(*slot, string, name) == 0)
            return slot;
    }
    return NULL;
}

bool environment_swap_in(struct environment_swap *swap, char *name_and_value)
{
    char **slot = slot_of(name_and_value, false);
    swap->ours = name_and_value;
    swap->previous = slot ? *slot : NULL;
    if (!slot)
        return putenv(name_and_value) == 0;
    __atomic_store_n(slot, name_and_value, __ATOMIC_RELEASE);
    return true;
}

void environment_swap_out(const struct environment_swap *swap)
{
    char name[64];
    char **slot = slot_of(swap->ours, true); /* wherever the array is now */
    const size_t length = (size_t)(strchr(swap->ours, '=') - swap->ours);
    if (!slot)
        return; /* another thread has set the variable anew */
    if (swap->previous) {
        char *ours = swap->ours;
        __atomic_compare_exchange_n(slot, &ours, swap->previous, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED);
    } else if (length < sizeof name) {
        memcpy(name, swap->ours, length);
        name[length] = '\0';
        unsetenv(name);
    }
}
