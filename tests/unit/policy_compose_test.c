/* policy_compose_test.c -- what holds over several texts; whose system policy is believed. */
#include "keys.h"
#include "policy_help.h"

#include <sys/stat.h>

struct row {
    const char *texts[POLICY_LAYERS_MAX];
    int value;
    size_t layer;
    uint32_t line;
};

static size_t read_layers(const char *const *texts, struct policy_settings *layers)
{
    size_t count = 0;
    for (; count < POLICY_LAYERS_MAX && texts[count]; count++)
        layers[count] = help_read(help_inline(texts[count]));
    return count;
}

static void test_peer_access(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {{NULL}, POLICY_ALLOW, 0, 0},
        {{""}, POLICY_ALLOW, 0, 0},
        {{"peer_access=allow"}, POLICY_ALLOW, 0, 1},
        {{";peer_access=deny"}, POLICY_DENY, 0, 2},
        {{"peer_access=deny", "peer_access=allow"}, POLICY_DENY, 0, 1},
        {{"peer_access=allow", ";peer_access=deny"}, POLICY_DENY, 1, 2},
        {{"", "", "peer_access=deny"}, POLICY_DENY, 2, 1},
        {{"", ";;peer_access=deny", "peer_access=deny"}, POLICY_DENY, 1, 3},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct policy_settings layers[POLICY_LAYERS_MAX];
        size_t layer = 99, count = read_layers(rows[i].texts, layers);
        struct policy_choice choice = policy_peer_access(layers, count, &layer);
        assert_int_equal(choice.value, rows[i].value);
        assert_int_equal(choice.line, rows[i].line);
        assert_int_equal(layer, rows[i].layer);
    }
}

static void test_cross_device_copy(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {{NULL}, POLICY_ALLOW, 0, 0},
        {{"cross_device_copy=allow"}, POLICY_ALLOW, 0, 1},
        {{";cross_device_copy=deny"}, POLICY_DENY, 0, 2},
        {{"cross_device_copy=deny", "cross_device_copy=allow"}, POLICY_DENY, 0, 1},
        {{"", ";;cross_device_copy=deny"}, POLICY_DENY, 1, 3},
        {{"peer_access=deny"}, POLICY_ALLOW, 0, 0}, /* the two are apart */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct policy_settings layers[POLICY_LAYERS_MAX];
        size_t layer = 99, count = read_layers(rows[i].texts, layers);
        struct policy_choice choice = policy_cross_device_copy(layers, count, &layer);
        assert_int_equal(choice.value, rows[i].value);
        assert_int_equal(choice.line, rows[i].line);
        assert_int_equal(layer, rows[i].layer);
    }
}

static void test_managed(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {{NULL}, POLICY_COUNT, 0, 0},
        {{"managed=ignore"}, POLICY_IGNORE, 0, 1},
        {{"managed=ignore", ""}, POLICY_IGNORE, 0, 1},
        {{"managed=ignore", ";managed=count"}, POLICY_COUNT, 1, 2},
        {{"managed=ignore", "managed=count", "managed=deny"}, POLICY_DENY, 2, 1},
        {{"managed=count", "managed=ignore"}, POLICY_COUNT, 0, 1},
        {{"managed=deny", "managed=count"}, POLICY_DENY, 0, 1},
        {{"", "managed=ignore"}, POLICY_COUNT, 0, 0}, /* the outer default is not loosened */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct policy_settings layers[POLICY_LAYERS_MAX];
        size_t layer = 99, count = read_layers(rows[i].texts, layers);
        struct policy_choice choice = policy_managed(layers, count, &layer);
        assert_int_equal(choice.value, rows[i].value);
        assert_int_equal(choice.line, rows[i].line);
        assert_int_equal(layer, rows[i].layer);
    }
}

/* The outermost text that sets it or caps memory decides: a cap counts contexts, unless who set the
 * cap says otherwise. */
static void test_overhead(void **state)
{
    (void)state;
    static const struct {
        const char *texts[POLICY_LAYERS_MAX];
        int kind;
    } rows[] = {
        {{NULL}, POLICY_SIZE_MEASURED},
        {{"memory=1GiB"}, POLICY_SIZE_MEASURED},
        {{"overhead=none"}, POLICY_SIZE_NONE},
        {{"overhead=measured", "overhead=none"}, POLICY_SIZE_MEASURED},
        {{"overhead=300MiB", "overhead=none"}, POLICY_SIZE_BYTES},
        {{"", "overhead=300MiB", "overhead=none"}, POLICY_SIZE_BYTES},
        {{"memory=1GiB", "overhead=none"}, POLICY_SIZE_MEASURED},
        {{"devices=0", "memory=1GiB;overhead=none"}, POLICY_SIZE_NONE},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct policy_settings layers[POLICY_LAYERS_MAX];
        size_t count = read_layers(rows[i].texts, layers);
        assert_int_equal(policy_overhead(layers, count).kind, rows[i].kind);
    }
}

/* `physical` makes NVML physical too, as far out as it is said. */
static void test_variable_and_nvml(void **state)
{
    (void)state;
#define VARIABLE "cuda_visible_devices="
    static const struct {
        const char *texts[POLICY_LAYERS_MAX];
        int variable, nvml;
    } rows[] = {
        {{NULL}, POLICY_WITHIN, POLICY_FOLLOW},
        {{""}, POLICY_WITHIN, POLICY_FOLLOW},
        {{VARIABLE "within"}, POLICY_WITHIN, POLICY_FOLLOW},
        {{VARIABLE "ignore"}, POLICY_IGNORE, POLICY_FOLLOW},
        {{VARIABLE "physical"}, POLICY_PHYSICAL, POLICY_PHYSICAL},
        {{"nvml=physical"}, POLICY_WITHIN, POLICY_PHYSICAL},
        {{VARIABLE "physical;nvml=physical"}, POLICY_PHYSICAL, POLICY_PHYSICAL},
        {{VARIABLE "within", VARIABLE "physical"}, POLICY_WITHIN, POLICY_FOLLOW},
        {{VARIABLE "physical", VARIABLE "within"}, POLICY_PHYSICAL, POLICY_PHYSICAL},
        {{VARIABLE "physical", "nvml=follow"}, POLICY_PHYSICAL, POLICY_PHYSICAL},
        {{"", VARIABLE "ignore", VARIABLE "physical"}, POLICY_IGNORE, POLICY_FOLLOW},
        {{"", VARIABLE "physical", "nvml=follow"}, POLICY_PHYSICAL, POLICY_PHYSICAL},
        {{"nvml=physical", VARIABLE "physical"}, POLICY_PHYSICAL, POLICY_PHYSICAL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct policy_settings layers[POLICY_LAYERS_MAX];
        struct policy_error error;
        size_t layer, count = read_layers(rows[i].texts, layers);
        assert_int_equal(policy_cuda_visible_devices(layers, count), rows[i].variable);
        assert_int_equal(policy_nvml(layers, count), rows[i].nvml);
        assert_int_equal(policy_fit(layers, count, &error, &layer), POLICY_OK);
    }
}

static void test_texts_that_do_not_fit(void **state)
{
    (void)state;
    static const char *const texts[][POLICY_LAYERS_MAX] = {
        {"", "nvml=follow", ";" VARIABLE "physical"},
        {"nvml=follow", "", ";" VARIABLE "physical"},
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct policy_settings layers[POLICY_LAYERS_MAX];
        struct policy_error error;
        size_t layer = 99, count = read_layers(texts[i], layers);
        for (size_t k = 0; k < count; k++)
            layers[k].source = k == 1 - i ? "outer.conf" : "another.conf";
        assert_int_equal(policy_fit(layers, 3, &error, &layer), POLICY_INVALID);
        assert_int_equal(layer, 2);
        assert_int_equal(error.line, 2);
        assert_string_equal(error.why.bytes,
                            "cuda_visible_devices = physical does not go with nvml = follow, which "
                            "outer.conf says: frameworks cut the integers off at NVML's count; "
                            "with physical, nvml is physical unless it is given");
    }
}

static void test_log(void **state)
{
    (void)state;
#define LOG "[gpushim];log="
#define LEVEL "[gpushim];log_level="
    static const struct {
        const char *texts[POLICY_LAYERS_MAX];
        const char *log;
        enum policy_log_level level;
    } rows[] = {
        {{NULL}, "(unset)", POLICY_LOG_WARN},
        {{""}, "(unset)", POLICY_LOG_WARN},
        {{LOG "syslog"}, "syslog", POLICY_LOG_WARN},
        {{LOG "syslog", LOG "/tmp/log"}, "syslog", POLICY_LOG_WARN},
        {{"", LOG "/tmp/log", LOG "stderr"}, "/tmp/log", POLICY_LOG_WARN},
        {{LEVEL "error"}, "(unset)", POLICY_LOG_ERROR},
        {{LEVEL "error", ""}, "(unset)", POLICY_LOG_ERROR},
        {{LEVEL "error", LEVEL "info"}, "(unset)", POLICY_LOG_INFO},
        {{LEVEL "debug", LEVEL "info"}, "(unset)", POLICY_LOG_DEBUG},
        {{"", LEVEL "error"}, "(unset)", POLICY_LOG_WARN},
        {{"", "", LEVEL "debug"}, "(unset)", POLICY_LOG_DEBUG},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct policy_settings layers[POLICY_LAYERS_MAX];
        size_t count = read_layers(rows[i].texts, layers);
        assert_string_equal(help_slice(policy_log(layers, count)), rows[i].log);
        assert_int_equal(policy_log_level(layers, count), rows[i].level);
    }
}

/* What holds over one text, as one line; what `log` leaves open is the room's default. */
static const char *composition(const struct policy_settings *settings)
{
    static char shown[256];
    size_t layer;
    const struct policy_size overhead = policy_overhead(settings, 1);
    const struct policy_slice log = policy_log(settings, 1);
    snprintf(shown, sizeof shown, "%.*s %d %d %d %d %d %d %d %u %d:%llu %d %d %d",
             log.start ? (int)log.length : 6, log.start ? log.start : "stderr",
             policy_log_level(settings, 1), policy_peer_access(settings, 1, &layer).value,
             policy_cross_device_copy(settings, 1, &layer).value,
             policy_ipc(settings, 1, &layer).value, policy_managed(settings, 1, &layer).value,
             policy_nvml(settings, 1), policy_cuda_visible_devices(settings, 1),
             policy_devices_per_process(settings, 1, &layer), overhead.kind,
             (unsigned long long)overhead.value, policy_grants_all(settings),
             policy_grants_none(settings), policy_caps_memory(settings));
    return shown;
}

/* keys.def says what holds when a key is not given, and the code does. */
static void test_defaults(void **state)
{
    (void)state;
    static const struct {
        const char *name, *now, *fallback;
    } rows[] = {
#define POLICY_KEY(identifier, section, name, now, later, fallback, prose) {name, now, fallback},
#include "keys.def"
#undef POLICY_KEY
    };
    char nothing[256];
    struct policy_settings settings = help_read(help_file(""));
    snprintf(nothing, sizeof nothing, "%s", composition(&settings));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[128];
        const bool position = strcmp(rows[i].name, "memory.K") == 0;
        const bool gpushim = policy_key_belongs((enum policy_key)i, POLICY_SECTION_GPUSHIM);
        if (!*rows[i].fallback || !*rows[i].now)
            continue;
        snprintf(text, sizeof text, "[%s]\n%s = %s\n", gpushim ? "gpushim" : "default",
                 position ? "memory.0" : rows[i].name, rows[i].fallback);
        settings = help_read(help_file(text));
        if (strcmp(composition(&settings), nothing) != 0)
            fail_msg("%s: %s, not %s", text, composition(&settings), nothing);
    }
}

static void test_distrust(void **state)
{
    (void)state;
    static const struct {
        uid_t owner;
        mode_t mode;
        bool root_is_mapped;
        const char *why; /* how it begins; NULL: trusted */
    } rows[] = {
        {0, S_IFREG | 0644, true, NULL},
        {0, S_IFREG | 0600, true, NULL},
        {0, S_IFREG | 0444, true, NULL},
        {1000, S_IFREG | 0644, true, "is not owned by root"},
        {65534, S_IFREG | 0644, true, "is not owned by root"},
        {65534, S_IFREG | 0644, false, NULL},
        {0, S_IFREG | 0644, false, "is not owned by root"},
        {0, S_IFREG | 0664, true, "can be written by others"},
        {0, S_IFREG | 0646, true, "can be written by others"},
        {0, S_IFDIR | 0755, true, "is not a regular file"},
        {0, S_IFLNK | 0777, true, "is not a regular file"},
        {0, S_IFIFO | 0644, true, "is not a regular file"},
        {0, S_IFCHR | 0644, true, "is not a regular file"},
        {65534, S_IFREG | 0666, false, "can be written by others"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *why =
            policy_distrust(rows[i].owner, rows[i].mode, rows[i].root_is_mapped, 65534);
        if (!rows[i].why)
            assert_null(why);
        else
            assert_memory_equal(why, rows[i].why, strlen(rows[i].why));
    }
}

static void test_descriptions(void **state)
{
    (void)state;
    struct text_line line;
    struct policy_error error = {.line = 12, .column = 3};
    text_start(&error.why);
    text_add(&error.why, "expected a key before =");
    text_start(&line);
    policy_describe_error(&line, "/etc/gpushim.conf", &error);
    assert_string_equal(line.bytes, "/etc/gpushim.conf:12:3: expected a key before =");
    error.line = 0;
    text_start(&line);
    policy_describe_error(&line, "a.conf", &error);
    assert_string_equal(line.bytes, "a.conf: expected a key before =");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peer_access),
        cmocka_unit_test(test_cross_device_copy),
        cmocka_unit_test(test_managed),
        cmocka_unit_test(test_overhead),
        cmocka_unit_test(test_variable_and_nvml),
        cmocka_unit_test(test_texts_that_do_not_fit),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_distrust),
        cmocka_unit_test(test_descriptions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
