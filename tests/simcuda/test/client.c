/* client.c -- see client.h. */
#include "client.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct driver cuda;

static void find(void *function, const char *symbol)
{
    void *address = dlsym(cuda.library, symbol);

    memcpy(function, &address, sizeof address);
}

void client_load(void)
{
    const char *path = getenv("SIMCUDA_LIBRARY");

    cuda.library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!cuda.library) {
        fprintf(stderr, "%s\n", dlerror());
        abort();
    }
#define API(base, version, stream, symbol, served, when, takes) find(&cuda.symbol, #symbol);
#define STUB(base, version, stream, symbol) find(&cuda.symbol, #symbol);
#include "api.def"
#undef API
#undef STUB
    find(&cuda.live_bytes, "simcuda_live_bytes");
    find(&cuda.context_bytes, "simcuda_context_bytes");
    find(&cuda.calls, "simcuda_calls");
}

int client_start(void **state)
{
    CUcontext context;

    (void)state;
    client_load();
    ok(cuda.cuInit(0));
    ok(cuda.cuDevicePrimaryCtxRetain(&context, 0));
    ok(cuda.cuCtxSetCurrent(context));
    return 0;
}

uint64_t client_live(void) { return cuda.live_bytes(CARD_OF_DEVICE_0, SIMCUDA_THIS_PROCESS); }
