/* freestanding.h -- what code that may not call the C library needs of it (names.c, objects.c).
 * Pure; safe before constructors, inside malloc and in signal handlers.
 */
#ifndef GPUSHIM_SHIM_FREESTANDING_H
#define GPUSHIM_SHIM_FREESTANDING_H

#include <stdbool.h>

static inline bool same_string(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

#endif
