/* api.h -- api.def as declarations: an index for each export, a prototype for each function that
 * serves it.
 *
 * Knows: the table's columns. Must not know: anything else.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_API_H
#define GPUSHIM_TESTS_SIMCUDA_API_H

#include "abi_more.h"

enum api_index {
#define API(base, version, stream, symbol, served, when, takes) API_##symbol,
#define STUB(base, version, stream, symbol) API_##symbol,
#include "api.def"
#undef API
#undef STUB
    API_COUNT
};

struct api_row {
    const char *base;
    int version;
    int stream;
    const char *symbol;
    void (*function)(void);
};

extern const struct api_row api_rows[API_COUNT]; /* in exports.c */

/* PARAMETERS_##takes declares the parameters a, b, c ...; ARGUMENTS_##takes passes them on. */
#define PARAMETERS_TAKES0() (void)
#define PARAMETERS_TAKES1(A) (A a)
#define PARAMETERS_TAKES2(A, B) (A a, B b)
#define PARAMETERS_TAKES3(A, B, C) (A a, B b, C c)
#define PARAMETERS_TAKES4(A, B, C, D) (A a, B b, C c, D d)
#define PARAMETERS_TAKES5(A, B, C, D, E) (A a, B b, C c, D d, E e)
#define PARAMETERS_TAKES6(A, B, C, D, E, F) (A a, B b, C c, D d, E e, F f)
#define PARAMETERS_TAKES7(A, B, C, D, E, F, G) (A a, B b, C c, D d, E e, F f, G g)
#define PARAMETERS_TAKES8(A, B, C, D, E, F, G, H) (A a, B b, C c, D d, E e, F f, G g, H h)
#define PARAMETERS_TAKES9(A, B, C, D, E, F, G, H, I) (A a, B b, C c, D d, E e, F f, G g, H h, I i)
#define PARAMETERS_TAKES10(A, B, C, D, E, F, G, H, I, J)                                           \
    (A a, B b, C c, D d, E e, F f, G g, H h, I i, J j)
#define PARAMETERS_TAKES11(A, B, C, D, E, F, G, H, I, J, K)                                        \
    (A a, B b, C c, D d, E e, F f, G g, H h, I i, J j, K k)

#define ARGUMENTS_TAKES0() ()
#define ARGUMENTS_TAKES1(A) (a)
#define ARGUMENTS_TAKES2(A, B) (a, b)
#define ARGUMENTS_TAKES3(A, B, C) (a, b, c)
#define ARGUMENTS_TAKES4(A, B, C, D) (a, b, c, d)
#define ARGUMENTS_TAKES5(A, B, C, D, E) (a, b, c, d, e)
#define ARGUMENTS_TAKES6(A, B, C, D, E, F) (a, b, c, d, e, f)
#define ARGUMENTS_TAKES7(A, B, C, D, E, F, G) (a, b, c, d, e, f, g)
#define ARGUMENTS_TAKES8(A, B, C, D, E, F, G, H) (a, b, c, d, e, f, g, h)
#define ARGUMENTS_TAKES9(A, B, C, D, E, F, G, H, I) (a, b, c, d, e, f, g, h, i)
#define ARGUMENTS_TAKES10(A, B, C, D, E, F, G, H, I, J) (a, b, c, d, e, f, g, h, i, j)
#define ARGUMENTS_TAKES11(A, B, C, D, E, F, G, H, I, J, K) (a, b, c, d, e, f, g, h, i, j, k)

#define API(base, version, stream, symbol, served, when, takes)                                    \
    CUresult sim_##served PARAMETERS_##takes;
#define STUB(base, version, stream, symbol)
#include "api.def"
#undef API
#undef STUB

#endif
