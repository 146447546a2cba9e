/* linked_test.c -- the route of programs that are linked to the driver: every row of hooks.def that
 * the driver has binds to us at load, whatever the policy; without the shim, to the driver.
 * argv[1]: the library that the names are to be of.
 */
#include "cmocka_all.h"
#include "cuda_abi.h"

#include <dlfcn.h>
#include <string.h>

#define NVML_HOOK(symbol, when, parameters, arguments)
#define RUNTIME_HOOK(symbol, parameters, arguments)
#define DRIVER_CALL(symbol, parameters)
#define NVML_CALL(symbol, parameters)
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)                    \
    CUresult symbol parameters;
#include "hooks.def"
#undef DRIVER_HOOK

static const char *right;

static void check(const char *name, const void *address)
{
    Dl_info info;
    assert_true(dladdr(address, &info));
    const char *slash = strrchr(info.dli_fname, '/');
    if (strcmp(slash ? slash + 1 : info.dli_fname, right) != 0)
        fail_msg("%s is of %s, not of %s", name, info.dli_fname, right);
}

static void test_every_name(void **state)
{
    (void)state;
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)                    \
    check(#symbol, (const void *)(uintptr_t)symbol);
#include "hooks.def"
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_name)};
    right = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests(tests, NULL, NULL);
}
