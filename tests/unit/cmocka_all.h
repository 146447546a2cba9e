/* cmocka_all.h -- what cmocka.h expects to be included before it. */
#ifndef GPUSHIM_TESTS_CMOCKA_ALL_H
#define GPUSHIM_TESTS_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
