/* symbols.c -- what a release exports, and that cuGetProcAddress gives the same addresses
 * (driver.md, P1 and P3).
 *
 * Run once for each release: SIMCUDA_LIBRARY.
 */
#include "client.h"

#include <dlfcn.h>
#include <string.h>

struct row {
    const char *base;
    int version, stream;
    const char *symbol;
};

static const struct row rows[] = {
#define API(base, version, stream, symbol, served, when, takes) {#base, version, stream, #symbol},
#define STUB(base, version, stream, symbol) {#base, version, stream, #symbol},
#include "api.def"
#undef API
#undef STUB
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static int driver_version;

static int load(void **state)
{
    (void)state;
    client_load();
    return (int)cuda.cuDriverGetVersion(&driver_version);
}

static cuuint64_t flags_of(const struct row *row) { return (cuuint64_t)row->stream; }

static void test_exports(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        int exported = dlsym(cuda.library, rows[i].symbol) != NULL;
        if (exported != (rows[i].version <= driver_version))
            fail_msg("%s is %sexported", rows[i].symbol, exported ? "" : "not ");
    }
}

static void test_same_address(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS && cuda.cuGetProcAddress_v2; i++) {
        CUdriverProcAddressQueryResult status;
        void *function;
        if (rows[i].version > driver_version)
            continue;
        ok(cuda.cuGetProcAddress_v2(rows[i].base, &function, rows[i].version, flags_of(&rows[i]),
                                    &status));
        assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
        if (function != dlsym(cuda.library, rows[i].symbol))
            fail_msg("%s %d %d is not %s", rows[i].base, rows[i].version, rows[i].stream,
                     rows[i].symbol);
    }
}

static void test_first_form(void **state)
{
    void *function = &driver_version;

    (void)state;
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].version <= driver_version) {
            void *found = NULL;
            ok(cuda.cuGetProcAddress(rows[i].base, &found, rows[i].version, flags_of(&rows[i])));
            assert_ptr_equal(found, dlsym(cuda.library, rows[i].symbol));
        }
    fails(CUDA_ERROR_NOT_FOUND, cuda.cuGetProcAddress("cuNothing", &function, 12000, 0));
    assert_ptr_equal(function, &driver_version); /* left alone */
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGetProcAddress("cuInit", &function, 12000, 4));
}

static void test_not_found(void **state)
{
    static const struct {
        const char *base;
        int version;
        CUdriverProcAddressQueryResult status;
    } cases[] = {
        {"", 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
        {"cuNothing", 12000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
        {"cuMemAlloc_v2", 12000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
        {"cuMemAllocAsync", 11010, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
        {"cuMemAlloc", 1000, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
    };
    void *function;

    (void)state;
    if (!cuda.cuGetProcAddress_v2)
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
        function = &driver_version;
        ok(cuda.cuGetProcAddress_v2(cases[i].base, &function, cases[i].version, 0, &status));
        assert_null(function);
        assert_int_equal(status, cases[i].status);
        ok(cuda.cuGetProcAddress_v2(cases[i].base, &function, cases[i].version, 0, NULL));
    }
    fails(CUDA_ERROR_INVALID_VALUE, cuda.cuGetProcAddress_v2("cuInit", &function, 12000, 4, NULL));
    assert_null(function);
}

/* The greatest version that was asked for wins; per-thread streams where there are any. */
static void test_variants(void **state)
{
    static const struct {
        const char *base;
        int version;
        cuuint64_t flags;
        const char *symbol;
    } cases[] = {
        {"cuMemAlloc", 3010, 0, "cuMemAlloc"},
        {"cuMemAlloc", 11080, 0, "cuMemAlloc_v2"},
        {"cuMemAlloc", 99999, 0, "cuMemAlloc_v2"},
        {"cuMemAlloc", 11080, 2, "cuMemAlloc_v2"},
        {"cuMemcpyDtoD", 11080, 2, "cuMemcpyDtoD_v2_ptds"},
        {"cuMemcpyDtoD", 6000, 2, "cuMemcpyDtoD_v2"},
        {"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
        {"cuMemAllocAsync", 11080, 1, "cuMemAllocAsync"},
        {"cuMemAllocAsync", 11080, 2, "cuMemAllocAsync_ptsz"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        void *function = NULL;
        ok(cuda.cuGetProcAddress(cases[i].base, &function, cases[i].version, cases[i].flags));
        assert_ptr_equal(function, dlsym(cuda.library, cases[i].symbol));
    }
}

/* Exports have no version names, yet a version that isn't there is not found, like the real
 * library's. */
static void test_no_version_names(void **state)
{
    (void)state;
    assert_null(dlvsym(cuda.library, "cuInit", "GPUSHIM"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exports),    cmocka_unit_test(test_same_address),
        cmocka_unit_test(test_first_form), cmocka_unit_test(test_not_found),
        cmocka_unit_test(test_variants),   cmocka_unit_test(test_no_version_names),
    };

    return cmocka_run_group_tests(tests, load, NULL);
}
