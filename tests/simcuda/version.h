/* version.h -- which driver this is. Knows: the number. Must not know: anything else. */
#ifndef GPUSHIM_TESTS_SIMCUDA_VERSION_H
#define GPUSHIM_TESTS_SIMCUDA_VERSION_H

/* 1000 * major + 10 * minor: SIMCUDA_DRIVER, else the library's own. */
int version_reported(void);

#endif
