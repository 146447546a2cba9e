/* version.c -- the one object that differs between the libraries; SIMCUDA_VERSION comes from
 * CMakeLists.txt. */
#include "version.h"

#include "settings.h"

int version_reported(void) { return settings_driver() ? settings_driver() : SIMCUDA_VERSION; }
