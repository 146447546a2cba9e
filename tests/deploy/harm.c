/* harm.c -- what gpushim-site must not let into every program: a library that prints, or (ENDING)
 * one that ends shells. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void at_load(void)
{
#ifdef ENDING
    if (strcmp(program_invocation_short_name, "sh") == 0)
        _exit(99);
#else
    if (write(2, "noise\n", 6) != 6)
        _exit(98);
#endif
}
