/* variant_test.c -- a driver of the future has a newer variant of everything: of each function that
 * the policy needs hooked it is withheld, by both resolvers, and of every other it passes.
 *
 *   variant_test [RULE ...]    which rules the policy has: memory, managed, peer, copies,
 * contexts, ipc, view
 *
 * Run on SIMCUDA_DRIVER=14000. Rows come from hooks.def.
 */
#include "cmocka_all.h"
#include "hooks.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

static const struct row {
    const char *symbol, *base;
    int stream;
    unsigned int when;
} rows[] = {
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)                    \
    {#symbol, #base, stream, (when)},
#define NVML_HOOK(symbol, when, parameters, arguments)
#define RUNTIME_HOOK(symbol, parameters, arguments)
#define DRIVER_CALL(symbol, parameters)
#define NVML_CALL(symbol, parameters)
#include "hooks.def"
};
enum { ROWS = sizeof rows / sizeof rows[0], FUTURE = 14000, VERSION_NOT_SUFFICIENT = 2 };

static unsigned int needs;
static CUresult (*get_v1)(const char *symbol, void **pfn, int version, cuuint64_t flags);
static CUresult (*get_v2)(const char *symbol, void **pfn, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *status);

/* A variant is to be withheld where any variant of its base that we know is hooked. */
static bool is_withheld(const char *base)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].base, base) == 0 && (rows[i].when & needs))
            return true;
    return false;
}

static void check(const char *base, int stream)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    char mark;
    void *got = &mark;
    const bool withheld = is_withheld(base);
    CUresult rc = get_v2(base, &got, FUTURE, (cuuint64_t)stream, &status);
    if (rc != CUDA_SUCCESS || (got == NULL) != withheld ||
        (int)status != (withheld ? VERSION_NOT_SUFFICIENT : 0))
        fail_msg("cuGetProcAddress_v2 of %s: %d, status %d, %s", base, (int)rc, (int)status,
                 got ? "a function" : "nothing");
    got = &mark;
    rc = get_v1(base, &got, FUTURE, (cuuint64_t)stream);
    if (rc != (withheld ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS) || (got == &mark) != withheld)
        fail_msg("cuGetProcAddress of %s: %d, %s", base, (int)rc,
                 got == &mark ? "the pointer as it was" : "another pointer");
}

static void test_every_hook(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++)
        check(rows[i].base, rows[i].stream);
}

static void test_others_pass(void **state)
{
    (void)state;
    check("cuLaunchKernel", 0);
    check("cuEventCreate", 0);
    check("cuMemsetD8", 2);
}

/* Without it every other answer here would be in vain. */
static void test_driver_is_of_the_future(void **state)
{
    int version;
    (void)state;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    CUresult (*ask)(int *) = (CUresult(*)(int *))(uintptr_t)dlsym(driver, "cuDriverGetVersion");
    assert_int_equal(ask(&version), CUDA_SUCCESS);
    assert_int_equal(version, FUTURE);
    void *found = dlsym(driver, "cuGetProcAddress");
    memcpy(&get_v1, &found, sizeof found);
    found = dlsym(driver, "cuGetProcAddress_v2");
    memcpy(&get_v2, &found, sizeof found);
}

static unsigned int needs_of(const char *rule)
{
    static const struct {
        const char *rule;
        unsigned int needs;
    } rules[] = {{"memory", WHEN_MEMORY | WHEN_OVERHEAD},
                 {"managed", WHEN_MANAGED},
                 {"peer", WHEN_PEER},
                 {"copies", WHEN_COPIES},
                 {"ipc", WHEN_IPC},
                 {"contexts", WHEN_CONTEXTS},
                 {"view", WHEN_VIEW}};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].rule, rule) == 0)
            return rules[i].needs | WHEN_ACTIVE;
    return 0;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        needs |= needs_of(argv[i]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_driver_is_of_the_future),
        cmocka_unit_test(test_every_hook),
        cmocka_unit_test(test_others_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
