/* script.h -- calls of the driver as text, so that a table can hold calls of any function:
 *
 *     cuMemAlloc_v2 &a 1M; cuMemFree_v2 a
 *
 *     12 0x1f 4K 1M 2G max null   a number; max is all ones, null is 0
 *     1|2                         1 in the low half of the word, 2 in the high one
 *     a                           what variable `a` holds
 *     &a                          where it holds it: 64 bytes
 *     [a]                         these 64 bytes, by value; at most one in a call
 *     {1|0 3 a {2}}               the address of a structure of these words, with zeros behind; a
 * word that is a structure is its address 'text'                      the address of a string
 *
 * A name is found as a program finds it: by dlsym on libcuda.so.1 or libnvidia-ml.so.1, the
 * runtime's by the linker. Each argument is one 64-bit word, as the ABIs of x86-64 and aarch64 pass
 * what the driver takes; a missing one is 0. A script that cannot be read ends the program.
 *
 * Knows: this language. Must not know: what any function does. Not thread-safe: one thread at a
 * time; variables live for the process, and its children have copies.
 */
#ifndef GPUSHIM_TESTS_DOORS_SCRIPT_H
#define GPUSHIM_TESTS_DOORS_SCRIPT_H

#include <stdint.h>
#include <stdio.h>

/* Makes the calls one after the other until one fails; the last call's result. */
int script_run(const char *script);

/* Makes all of them, whatever they answer. */
void script_try(const char *script);

/* One call, of `symbol` with the arguments in `text`, which ends at the first ';' or its end. With
 * `report`, prints the result and what became of all storage that was passed: `.` for a word as it
 * was, its value, or `x` for what differs from process to process (addresses). */
int script_call(const char *symbol, const char *text, FILE *report);

/* The word of this number of a variable. */
void script_set(const char *variable, uint64_t value); /* its first */
uint64_t script_get(const char *variable, int word);
/* What a word of a script is. */
uint64_t script_word(const char *text);

#endif
