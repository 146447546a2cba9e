/* environment.h -- one variable of the process's environment, replaced for the length of one call.
 *
 * Knows: `environ`. Must not know: what the variable means.
 * Other threads may read and change the environment meanwhile, which C has never made safe; what is
 * done here adds no new hazard: a slot is swapped, an array is never put back, and nothing that
 * another thread stored is undone. One swap at a time: the caller holds off others.
 */
#ifndef GPUSHIM_SHIM_ENVIRONMENT_H
#define GPUSHIM_SHIM_ENVIRONMENT_H

#include <stdbool.h>

struct environment_swap {
    char *ours;     /* "NAME=value"; the caller's, must stay valid for the life of the process */
    char *previous; /* the string that was there; NULL: the variable was absent */
};

/* False where the variable was absent and there is no memory for a larger environment. */
bool environment_swap_in(struct environment_swap *swap, char *name_and_value);
void environment_swap_out(const struct environment_swap *swap);

#endif
