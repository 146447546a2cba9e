/* policy_print_test.c -- a policy as text again: read again it says the same, and there is no key
 * of keys.def that it leaves out. */
#include "policy_random.h"
#include "print.h"
#include "slice.h"

enum { ROUNDS = 2000, TEXT_ROOM = 8192 };

struct printed {
    char bytes[TEXT_ROOM];
    size_t length;
};

static void keep(void *context, const char *bytes, size_t length)
{
    struct printed *text = context;
    assert_true(text->length + length < sizeof text->bytes);
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = '\0';
}

static void print(const struct policy_settings *settings, struct printed *text)
{
    text->length = 0;
    policy_print(settings, &(struct policy_sink){keep, text});
}

static void check_slice(struct policy_slice a, struct policy_slice b)
{
    assert_int_equal(a.start != NULL, b.start != NULL);
    assert_int_equal(a.length, b.length);
    assert_true(!a.start || memcmp(a.start, b.start, a.length) == 0);
}

static void check_size(const struct policy_size *a, const struct policy_size *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->value, b->value);
}

/* The same in all but where it stands. */
static void check_same(const struct policy_settings *a, const struct policy_settings *b)
{
    check_slice(a->rule, b->rule);
    check_slice(a->devices, b->devices);
    check_slice(a->log, b->log);
    check_size(&a->memory, &b->memory);
    check_size(&a->overhead, &b->overhead);
    for (size_t k = 0; k < POLICY_GPUS_MAX; k++) {
        check_size(&a->memory_of[k], &b->memory_of[k]);
        check_size(&a->base_memory_of[k], &b->base_memory_of[k]);
        if (a->base_memory_of[k].kind != POLICY_SIZE_UNSET) /* what K counts in */
            check_slice(a->base_devices, b->base_devices);
    }
    assert_int_equal(a->peer_access.value, b->peer_access.value);
    assert_int_equal(a->cross_device_copy.value, b->cross_device_copy.value);
    assert_int_equal(a->ipc.value, b->ipc.value);
    assert_int_equal(a->managed.value, b->managed.value);
    assert_int_equal(a->nvml.value, b->nvml.value);
    assert_int_equal(a->cuda_visible_devices.value, b->cuda_visible_devices.value);
    assert_int_equal(a->devices_per_process, b->devices_per_process);
    assert_int_equal(a->log_level, b->log_level);
}

static void test_a_text(void **state)
{
    (void)state;
    static struct printed text;
    struct policy_settings settings =
        help_read(help_file("[rule everyone] # but bob\nmatch.user = !bob\nmemory.1 = 1.5GiB\n"
                            "devices = 3 , 1\nnvml=physical\ndevices_per_process = 1\n"
                            "[default]\nmemory = 40%\nmemory.0 = 1000\ndevices = 0-3\n"
                            "overhead = none\npeer_access = deny\ncuda_visible_devices = ignore\n"
                            "[gpushim]\nlog_level = info\nlog = /var/log/gpu\n"));
    print(&settings, &text);
    assert_string_equal(text.bytes, "[gpushim]\n"
                                    "log = /var/log/gpu\n"
                                    "log_level = info\n"
                                    "[default]\n"
                                    "devices = 0-3\n"
                                    "memory = 40%\n"
                                    "memory.0 = 1000\n"
                                    "[rule everyone]\n"
                                    "devices = 3 , 1\n"
                                    "memory.1 = 1536MiB\n"
                                    "overhead = none\n"
                                    "peer_access = deny\n"
                                    "devices_per_process = 1\n"
                                    "cuda_visible_devices = ignore\n"
                                    "nvml = physical\n");
    settings = help_read(help_file(""));
    print(&settings, &text);
    assert_string_equal(text.bytes, "[gpushim]\n[default]\n");
}

static void test_read_again(void **state)
{
    (void)state;
    static struct random_text text;
    static struct printed once, twice;
    for (unsigned int round = 0; round < ROUNDS; round++) {
        random_policy(&text, 1 + pick(8));
        print(&text.settings, &once);
        const struct policy_settings again = help_read(help_file(once.bytes));
        check_same(&text.settings, &again);
        print(&again, &twice);
        assert_string_equal(once.bytes, twice.bytes);
    }
}

/* A value of this kind, as print() writes it. */
static const char *example_of(struct policy_slice name)
{
    static const struct {
        const char *name, *value;
    } rows[] = {{"SIZE", "8GiB"}, {"PERCENT", "40%"}, {"COUNT", "3"},
                {"PATH", "/x"},   {"DEVICES", "3,1"}, {"SELECTION", "2 nvlink"}};
    static char word[32];
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (policy_slice_is(name, rows[i].name))
            return rows[i].value;
    }
    snprintf(word, sizeof word, "%.*s", (int)name.length, name.start);
    return word;
}

/* What is said is printed, unless it is what holds anyway. */
static void check_value(enum policy_key key, const char *fallback, const char *value)
{
    static struct printed text;
    char bytes[256], line[128];
    const bool position = key == POLICY_KEY_MEMORY_OF;
    const bool gpushim = policy_key_belongs(key, POLICY_SECTION_GPUSHIM);
    snprintf(line, sizeof line, "%s = %s\n", position ? "memory.2" : policy_key_name(key), value);
    snprintf(bytes, sizeof bytes, "[%s]\n%s", gpushim ? "gpushim" : "default", line);
    const struct policy_settings settings = help_read(help_file(bytes));
    print(&settings, &text);
    if (!strstr(text.bytes, line) && strcmp(value, fallback) != 0)
        fail_msg("%s is not printed:\n%s", line, text.bytes);
}

static void test_every_key(void **state)
{
    (void)state;
    static const char *const fallbacks[] = {
#define POLICY_KEY(identifier, section, name, now, later, fallback, prose) fallback,
#include "keys.def"
#undef POLICY_KEY
    };
    for (int i = 0; i < POLICY_KEYS; i++) {
        const enum policy_key key = (enum policy_key)i;
        if (!policy_key_belongs(key, POLICY_SECTION_GPUSHIM) &&
            !policy_key_belongs(key, POLICY_SECTION_DEFAULT))
            continue; /* for whom a rule holds is not printed */
        for (const char *now = policy_key_now(key); now && *now;) {
            const struct policy_slice name = {now, strcspn(now, " ")};
            check_value(key, fallbacks[i], example_of(name));
            const char *bar = strchr(now, '|');
            now = bar ? bar + 2 : NULL;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_text),
        cmocka_unit_test(test_read_again),
        cmocka_unit_test(test_every_key),
    };
    random_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
