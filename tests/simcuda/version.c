/* version.c -- the one object that differs between the libraries; SIMCUDA_VERSION comes from CMakeLists.txt. */
#include "version.h"

const int version_of_library = SIMCUDA_VERSION;
