/* modules.h -- modules of contexts, libraries of the process, and their functions and variables.
 *
 * Knows: names. Must not know: code; images are not read, and every name is found.
 * Under the driver's lock.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_MODULES_H
#define GPUSHIM_TESTS_SIMCUDA_MODULES_H

#include "abi_more.h"
#include "handles.h"

struct CUfunc_st {
    struct handle handle;
    CUmodule module;
    char *name;
    int dynamic_shared_bytes, carveout;
    CUfunction next;
};

struct CUmod_st {
    struct handle handle;
    CUlibrary library; /* that it is part of; NULL: none */
    CUfunction functions;
    struct variable *variables;
    uint64_t code_bytes; /* charged with the context */
};

/* A module in a live context: 0, 2, or 200 for no image. The library may be NULL. */
CUresult module_new(CUcontext context, CUlibrary library, const void *image, CUmodule *out);
void module_delete(CUmodule module);
CUfunction module_function(CUmodule module, const char *name);
/* A variable's memory: 64 KiB each, taken when first asked for. */
CUresult module_variable(CUmodule module, const char *name, CUdeviceptr *address, size_t *bytes);
void modules_empty(CUcontext context);

/* Makes a kernel's module in the current context; a plain function is there already. 400: neither.
 */
CUresult function_prepare(CUfunction function_or_kernel);

#endif
