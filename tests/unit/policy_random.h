/* policy_random.h -- random texts without errors, for tests of what holds for all of them. The keys
 * and their words come from keys.def. GPUSHIM_SEED gives another sequence than the usual one. */
#ifndef GPUSHIM_TESTS_POLICY_RANDOM_H
#define GPUSHIM_TESTS_POLICY_RANDOM_H

#include "keys.h"
#include "policy_help.h"
#include "slice.h"

#include <stdlib.h>

static uint64_t random_state;

static inline void random_start(void)
{
    const char *given = getenv("GPUSHIM_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 1;
    random_state = seed * 2 + 1;
    print_message("GPUSHIM_SEED=%llu\n", (unsigned long long)seed);
}

static inline unsigned int pick(unsigned int below)
{
    random_state ^= random_state << 13; /* xorshift64 */
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned int)(random_state >> 33) % below;
}

struct random_text {
    char bytes[4096];
    size_t length;
    unsigned int gpus; /* how many there are to be named */
    struct policy_settings settings;
};

#define RANDOM_ADD(text, ...)                                                                      \
    ((text)->length += (size_t)snprintf((text)->bytes + (text)->length,                            \
                                        sizeof(text)->bytes - (text)->length, __VA_ARGS__))

/* Mostly of GPUs that are there. */
static inline void random_device(struct random_text *text)
{
    unsigned int a = pick(text->gpus + (pick(4) == 0)), b = a + pick(3);
    const char *optional = pick(3) ? "" : "?";
    switch (pick(5)) {
    case 0:
        RANDOM_ADD(text, "%u-%u%s", a, b, optional);
        break;
    case 1:
        RANDOM_ADD(text, "GPU-%08x%s", a, optional);
        break;
    case 2:
        RANDOM_ADD(text, "%02X:00.0%s", a, optional);
        break;
    default:
        RANDOM_ADD(text, "%u%s", a, optional);
        break;
    }
}

static inline void random_devices(struct random_text *text)
{
    for (unsigned int left = pick(4); left > 0; left--) {
        random_device(text);
        RANDOM_ADD(text, ",");
    }
    random_device(text);
}

static inline void random_size(struct random_text *text)
{
    static const char *const units[] = {"", "K", "KB", " MiB", "GB", "G", "Ti"};
    if (pick(2))
        RANDOM_ADD(text, "%uG", 1 + pick(80));
    else
        RANDOM_ADD(text, "%u%s", 1 + pick(1U << 20), units[pick(COUNT_OF(units))]);
}

/* One of the values under `now`, written at random where it stands in capitals. */
static inline void random_value(struct random_text *text, const char *now)
{
    unsigned int count = 1;
    for (const char *c = now; *c; c++)
        count += *c == '|';
    for (unsigned int skip = pick(count); skip > 0; skip--)
        now = strchr(now, '|') + 2;
    const size_t length = strcspn(now, " ");
    const struct policy_slice name = {now, length};
    if (policy_slice_is(name, "SIZE"))
        random_size(text);
    else if (policy_slice_is(name, "PERCENT"))
        RANDOM_ADD(text, "%u%%", 1 + pick(100));
    else if (policy_slice_is(name, "COUNT"))
        RANDOM_ADD(text, "%u", 1 + pick(4));
    else if (policy_slice_is(name, "PATH"))
        RANDOM_ADD(text, "/var/log/gpushim;%u#", pick(9));
    else if (policy_slice_is(name, "DEVICES"))
        random_devices(text);
    else
        RANDOM_ADD(text, "%.*s", (int)length, now);
}

/* Some of the keys of a section, one line each. */
static inline void random_keys(struct random_text *text, enum policy_section section)
{
    for (int i = 0; i < POLICY_KEYS; i++) {
        const enum policy_key key = (enum policy_key)i;
        const char *now = policy_key_now(key);
        const bool matches = policy_key_belongs(key, POLICY_SECTION_RULE) &&
                             !policy_key_belongs(key, POLICY_SECTION_DEFAULT);
        if (!policy_key_belongs(key, section) || matches || !*now || pick(3) == 0)
            continue;
        if (key == POLICY_KEY_MEMORY_OF) {
            for (unsigned int k = 0; k < 3; k++) {
                if (pick(4))
                    continue;
                RANDOM_ADD(text, "memory.%u = ", k);
                random_value(text, now);
                RANDOM_ADD(text, "\n");
            }
            continue;
        }
        RANDOM_ADD(text, "%s = ", policy_key_name(key));
        random_value(text, now);
        RANDOM_ADD(text, "\n");
    }
}

static inline void random_rule(struct random_text *text)
{
    RANDOM_ADD(text, "[rule r;#]\n");
    random_keys(text, POLICY_SECTION_RULE);
}

/* A text about a machine of this many GPUs, and what it says. Its one kind of error is thrown away:
 * values that do not go together. */
static inline void random_policy(struct random_text *text, unsigned int gpus)
{
    static struct policy_errors errors;
    int rc;
    do {
        unsigned int rule = pick(4); /* before [default], behind it, or none */
        text->length = 0;
        text->gpus = gpus;
        RANDOM_ADD(text, "[gpushim]\n");
        random_keys(text, POLICY_SECTION_GPUSHIM);
        if (rule == 0)
            random_rule(text);
        RANDOM_ADD(text, "[default]\n");
        random_keys(text, POLICY_SECTION_DEFAULT);
        if (rule == 1)
            random_rule(text);
        const struct policy_text whole = {"test.conf", text->bytes, text->length, false};
        rc = policy_read(&whole, help_alice(), &text->settings, &errors);
        if (rc != POLICY_OK && !strstr(help_error(&errors, 0), " does not go with "))
            fail_msg("%s\n%s", help_error(&errors, 0), text->bytes);
    } while (rc != POLICY_OK);
}

#endif
