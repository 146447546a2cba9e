/* route_test.c -- every row of hooks.def, looked up by every route, in three modes:
 *
 *   bare    without the shim: what the driver itself answers
 *   inert   with the shim and no policy: the very same pointers
 *   hooked  with a policy that needs every hook: our function, and only for what the driver has
 */
#include "cmocka_all.h"
#include "cuda_abi.h"
#include "nvml_abi.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef CUresult get_v1(const char *symbol, void **pfn, int version, cuuint64_t flags);
typedef CUresult get_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status);

struct row {
    const char *symbol, *base;
    int version, stream;
};

static const struct row rows[] = {
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)                    \
    {#symbol, #base, version, stream},
#define NVML_HOOK(symbol, when, parameters, arguments)
#define RUNTIME_HOOK(symbol, parameters, arguments)
#define DRIVER_CALL(symbol, parameters)
#define NVML_CALL(symbol, parameters)
#include "hooks.def"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static bool hooked, bare;
static void *driver;
static int driver_version;

static const char *home_of(const void *address)
{
    Dl_info info;
    if (!address || !dladdr(address, &info))
        return "nothing";
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

static bool is_there(const struct row *row) { return row->version <= driver_version; }

/* What any route must give for this row. */
static void check(const struct row *row, const char *route, void *got)
{
    const char *home = home_of(got);
    const char *right = !is_there(row) ? "nothing" : hooked ? "libgpushim.so" : "libcuda.so.1";
    if (strcmp(home, right) != 0)
        fail_msg("%s by %s is of %s, not of %s", row->symbol, route, home, right);
}

static void test_handle(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        check(&rows[i], "dlsym", dlsym(driver, rows[i].symbol));
        assert_true(is_there(&rows[i]) || dlerror());
    }
}

/* The oldest version of the C library's symbols, which each architecture has its own of. */
#ifdef __x86_64__
#define OLDEST_GLIBC "GLIBC_2.2.5"
#else
#define OLDEST_GLIBC "GLIBC_2.17"
#endif

/* Real drivers export without versions, and like them this one has a table of versions for what it
 * needs of others: asked for a version it answers nothing, and that must not become a hook or the
 * original. */
static void test_dlvsym(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++)
        assert_null(dlvsym(driver, rows[i].symbol, "ANY_1.0"));
    void *plain = dlsym(RTLD_NEXT, "pthread_create");
    assert_non_null(plain);
    assert_non_null(dlvsym(RTLD_NEXT, "pthread_create", OLDEST_GLIBC));
    assert_null(dlvsym(RTLD_DEFAULT, "strlen", "NO_SUCH_1.0"));
    assert_non_null(strstr(dlerror(), "strlen"));
}

/* The program's handle and the two special ones. Here libcuda is not in the global scope (dlopen
 * with RTLD_LOCAL), so a bare program finds nothing; under a policy the hook is the answer. */
static void test_default_scope(void **state)
{
    (void)state;
    void *self = dlopen(NULL, RTLD_NOW);
    for (int i = 0; i < ROWS; i++) {
        void *by[] = {dlsym(RTLD_DEFAULT, rows[i].symbol), dlsym(RTLD_NEXT, rows[i].symbol),
                      dlsym(self, rows[i].symbol)};
        for (int k = 0; k < 3; k++) {
            if (bare)
                assert_null(by[k]);
            else
                check(&rows[i],
                      k == 0   ? "RTLD_DEFAULT"
                      : k == 1 ? "RTLD_NEXT"
                               : "the program's handle",
                      by[k]);
        }
    }
}

static void *by_address_of(const struct row *row, int version, bool old)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    void *got = NULL;
    if (old) {
        get_v1 *get = (get_v1 *)(uintptr_t)dlsym(driver, "cuGetProcAddress");
        CUresult rc = get(row->base, &got, version, (cuuint64_t)row->stream);
        assert_true(rc == CUDA_SUCCESS || rc == CUDA_ERROR_NOT_FOUND);
    } else {
        get_v2 *get = (get_v2 *)(uintptr_t)dlsym(driver, "cuGetProcAddress_v2");
        assert_int_equal(get(row->base, &got, version, (cuuint64_t)row->stream, &status),
                         CUDA_SUCCESS);
        assert_int_equal(got == NULL, status != CU_GET_PROC_ADDRESS_SUCCESS);
    }
    return got;
}

static void test_proc_address(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        if (!is_there(&rows[i]))
            continue;
        check(&rows[i], "cuGetProcAddress", by_address_of(&rows[i], rows[i].version, true));
        void *direct = dlsym(driver, rows[i].symbol);
        assert_ptr_equal(by_address_of(&rows[i], rows[i].version, true), direct);
        if (driver_version >= 12000) {
            assert_ptr_equal(by_address_of(&rows[i], rows[i].version, false), direct);
            check(&rows[i], "cuGetProcAddress_v2", by_address_of(&rows[i], driver_version, false));
        }
    }
}

/* cudart replaces its resolver by the resolver's own answer: if that escapes, everything after
 * does. */
static void test_resolver_of_resolver(void **state)
{
    (void)state;
    static const struct row self = {"cuGetProcAddress", "cuGetProcAddress", 11030, 0};
    assert_ptr_equal(by_address_of(&self, 11030, true), dlsym(driver, "cuGetProcAddress"));
    if (driver_version >= 12000)
        assert_ptr_equal(by_address_of(&self, 12000, false), dlsym(driver, "cuGetProcAddress_v2"));
}

static void test_odd_questions(void **state)
{
    (void)state;
    void *got = &got, *mark = got;
    get_v1 *get = (get_v1 *)(uintptr_t)dlsym(driver, "cuGetProcAddress");
    assert_int_equal(get("cuMemAlloc_v2", &got, driver_version, 0),
                     CUDA_ERROR_NOT_FOUND); /* a suffixed name */
    assert_ptr_equal(got, mark);
    if (driver_version >= 12000) {
        get_v2 *get2 = (get_v2 *)(uintptr_t)dlsym(driver, "cuGetProcAddress_v2");
        CUdriverProcAddressQueryResult status;
        assert_int_equal(get2("", &got, 0, 0, NULL), CUDA_SUCCESS); /* as cudart does first */
        assert_null(got);
        assert_int_equal(get2("cuMemCreate", &got, 2000, 0, &status), CUDA_SUCCESS);
        assert_null(got);
        assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
        assert_int_equal(get2("cuNoSuchThing", &got, 13000, 0, &status), CUDA_SUCCESS);
        assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    }
}

/* What no rule looks at is the driver's own in every mode. */
static void test_others_are_untouched(void **state)
{
    (void)state;
    static const char *const names[] = {"cuLaunchKernel",          "cuMemsetD8_v2",
                                        "cuStreamWriteValue32_v2", "cuEventCreate",
                                        "cuCtxSetCurrent",         "cuDriverGetVersion"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_string_equal(home_of(dlsym(driver, names[i])), "libcuda.so.1");
}

static void test_foreign_names(void **state)
{
    (void)state;
    assert_null(dlsym(RTLD_DEFAULT, "curl_easy_init"));
    assert_non_null(strstr(dlerror(), "curl_easy_init"));
    assert_null(dlerror());
    assert_ptr_equal(dlsym(RTLD_DEFAULT, "strlen"), dlsym(RTLD_NEXT, "strlen"));
    assert_null(dlsym(driver, "cuNoSuchThing"));
    assert_non_null(strstr(dlerror(), "cuNoSuchThing"));
    /* the runtime's two exports of ours are no answer to a question for the runtime */
    assert_null(dlsym(RTLD_DEFAULT, "cudaSetDevice"));
    assert_null(dlsym(dlopen(NULL, RTLD_NOW), "cudaGetDeviceCount"));
}

static void test_nvml(void **state)
{
    (void)state;
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    assert_string_equal(home_of(dlsym(nvml, "nvmlDeviceGetP2PStatus")),
                        hooked ? "libgpushim.so" : "libnvidia-ml.so.1");
    assert_string_equal(home_of(dlsym(nvml, "nvmlDeviceGetTemperature")), "libnvidia-ml.so.1");
}

/* Before the driver is there: nothing, and dlerror says which symbol. Runs first. */
static void test_no_driver_yet(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        assert_null(dlsym(RTLD_DEFAULT, rows[i].symbol));
        const char *error = dlerror();
        assert_non_null(error);
        assert_non_null(strstr(error, rows[i].symbol));
        assert_null(dlsym(RTLD_NEXT, rows[i].symbol));
    }
    assert_null(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)); /* looking did not load it */
    dlerror();
}

static int open_driver(void **state)
{
    (void)state;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    assert_non_null(driver);
    CUresult (*version)(int *) = (CUresult(*)(int *))(uintptr_t)dlsym(driver, "cuDriverGetVersion");
    return version(&driver_version) == CUDA_SUCCESS ? 0 : -1;
}

int main(int argc, char **argv)
{
    hooked = argc > 1 && strcmp(argv[1], "hooked") == 0;
    bare = argc > 1 && strcmp(argv[1], "bare") == 0;
    const struct CMUnitTest first[] = {cmocka_unit_test(test_no_driver_yet)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handle),
        cmocka_unit_test(test_dlvsym),
        cmocka_unit_test(test_default_scope),
        cmocka_unit_test(test_proc_address),
        cmocka_unit_test(test_resolver_of_resolver),
        cmocka_unit_test(test_odd_questions),
        cmocka_unit_test(test_others_are_untouched),
        cmocka_unit_test(test_foreign_names),
        cmocka_unit_test(test_nvml),
    };
    int failed = cmocka_run_group_tests(first, NULL, NULL);
    return failed + cmocka_run_group_tests(tests, open_driver, NULL);
}
