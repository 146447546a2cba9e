/* policy_within_test.c -- a text inside another can only tighten it: for random pairs of texts, the
 * composed grant is what the inner text alone would grant on a machine that has just the GPUs of
 * the outer one, in its order, and every cap is the smaller of the two. GPUSHIM_SEED repeats a run.
 */
#include "policy_help.h"

#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 20000, GPUS_MAX = 8 };

static uint64_t seed, random_state;

static unsigned int pick(unsigned int below)
{
    random_state ^= random_state << 13; /* xorshift64 */
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned int)(random_state >> 33) % below;
}

static size_t add_entry(char *text, size_t room, size_t gpus)
{
    unsigned int a = pick((unsigned int)gpus + (pick(4) == 0)), b = a + pick(3);
    const char *optional = pick(3) ? "" : "?";
    switch (pick(5)) {
    case 0:
        return (size_t)snprintf(text, room, "%u-%u%s", a, b, optional);
    case 1:
        return (size_t)snprintf(text, room, "GPU-%08x%s", a, optional);
    case 2:
        return (size_t)snprintf(text, room, "%02X:00.0%s", a, optional);
    default:
        return (size_t)snprintf(text, room, "%u%s", a, optional);
    }
}

static size_t add_memory(char *text, size_t room, const char *key)
{
    if (pick(8) == 0)
        return (size_t)snprintf(text, room, "%s=none;", key);
    return (size_t)snprintf(text, room, pick(2) ? "%s=%u%%;" : "%s=%uG;", key, 1 + pick(80));
}

static void make_section(char *text, size_t room, size_t gpus)
{
    size_t length = 0;
    unsigned int entries = pick(4);
    if (pick(12) == 0)
        length += (size_t)snprintf(text, room, "devices=%s;", pick(3) ? "all" : "none");
    else if (entries > 0)
        length += (size_t)snprintf(text, room, "devices=");
    else
        text[0] = '\0';
    for (unsigned int i = 0; length != 0 && text[length - 1] != ';' && i < entries; i++) {
        length += add_entry(text + length, room - length, gpus);
        text[length++] = i + 1 == entries ? ';' : ',';
        text[length] = '\0';
    }
    if (pick(2))
        length += add_memory(text + length, room - length, "memory");
    if (pick(3) == 0)
        length += add_memory(text + length, room - length, "memory.0");
    if (pick(4) == 0)
        length += add_memory(text + length, room - length, "memory.1");
    (void)length;
}

/* [default], and often a rule over it. */
static void make_text(char *text, size_t room, size_t gpus)
{
    make_section(text, room, gpus);
    if (pick(2)) {
        size_t length = strlen(text);
        length += (size_t)snprintf(text + length, room - length, "[rule r];");
        make_section(text + length, room - length, gpus);
    }
}

static void check_cap(struct policy_size outer, struct policy_size inner, struct policy_size both)
{
    struct policy_size smaller = outer;
    if (outer.kind == POLICY_SIZE_NONE ||
        (inner.kind != POLICY_SIZE_NONE && inner.value < outer.value))
        smaller = inner;
    assert_int_equal(both.kind, smaller.kind);
    if (smaller.kind != POLICY_SIZE_NONE)
        assert_int_equal(both.value, smaller.value);
}

/* Returns whether both texts could be applied. */
static bool check_pair(const struct policy_settings *layers, const struct policy_gpu *gpus,
                       size_t gpu_count)
{
    struct policy_gpu left[GPUS_MAX];
    struct policy_grant outer[POLICY_GPUS_MAX], inner[POLICY_GPUS_MAX], both[POLICY_GPUS_MAX];
    struct policy_error error;
    size_t layer = 99;
    int outer_count = policy_grant(layers, 1, gpus, gpu_count, outer, &error, &layer);
    int both_count = policy_grant(layers, 2, gpus, gpu_count, both, &error, &layer);
    if (policy_grants_none(&layers[0]) || policy_grants_none(&layers[1])) {
        assert_int_equal(both_count, 0);
        return true;
    }
    if (outer_count < 0) {
        assert_int_equal(both_count, POLICY_MISSING);
        assert_int_equal(layer, 0);
        return false;
    }
    for (int i = 0; i < outer_count; i++)
        left[i] = gpus[outer[i].gpu];
    int inner_count = policy_grant(&layers[1], 1, left, (size_t)outer_count, inner, &error, &layer);
    assert_int_equal(both_count, inner_count);
    for (int i = 0; i < inner_count; i++) {
        assert_true(inner[i].gpu < outer_count);
        const struct policy_grant *of_outer = &outer[inner[i].gpu];
        assert_int_equal(both[i].gpu, of_outer->gpu);
        check_cap(of_outer->cap, inner[i].cap, both[i].cap);
        check_cap(of_outer->share, inner[i].share, both[i].share);
    }
    return inner_count >= 0;
}

static void test_within(void **state)
{
    (void)state;
    unsigned int applied = 0;
    for (unsigned int round = 0; round < ROUNDS; round++) {
        static char texts[2][1024];
        struct policy_gpu gpus[GPUS_MAX];
        struct policy_settings layers[2];
        size_t gpu_count = 1 + pick(GPUS_MAX);
        for (unsigned int i = 0; i < gpu_count; i++) {
            gpus[i] = (struct policy_gpu){.pci_bus = i};
            snprintf(gpus[i].uuid, sizeof gpus[i].uuid, "GPU-%08x-0000-0000-0000-000000000000", i);
        }
        for (int i = 0; i < 2; i++) {
            make_text(texts[i], sizeof texts[i], gpu_count);
            layers[i] = help_read(help_inline(texts[i]));
        }
        applied += check_pair(layers, gpus, gpu_count);
    }
    print_message("%u of %u pairs could be applied\n", applied, ROUNDS);
    assert_true(applied > ROUNDS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_within)};
    const char *given = getenv("GPUSHIM_SEED");
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    random_state = seed * 2 + 1;
    print_message("GPUSHIM_SEED=%llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
