/* policy_within_test.c -- a text inside another can only tighten it: for random pairs of texts, the
 * composed grant is what the inner text alone would grant on a machine that has just the GPUs of
 * the outer one, in its order, every cap is the smaller of the two, and no act that the outer text
 * denies is allowed. GPUSHIM_SEED gives other pairs. */
#include "policy_random.h"

enum { ROUNDS = 4000, GPUS_MAX = 8 };

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

/* How much each value of a switch denies. */
static int strictness(enum policy_switch value)
{
    return value == POLICY_DENY ? 2 : value == POLICY_COUNT ? 1 : 0;
}

typedef struct policy_choice composed(const struct policy_settings *layers, size_t count,
                                      size_t *layer);

static void check_acts(const struct policy_settings *layers)
{
    static composed *const acts[] = {policy_peer_access, policy_cross_device_copy, policy_ipc,
                                     policy_managed};
    size_t layer;
    for (size_t i = 0; i < COUNT_OF(acts); i++) {
        int outer = strictness(acts[i](layers, 1, &layer).value);
        int inner = strictness(acts[i](&layers[1], 1, &layer).value);
        int both = strictness(acts[i](layers, 2, &layer).value);
        assert_true(both >= outer);
        /* what the inner text leaves to its default asks for nothing */
        assert_true(both == outer || both == inner);
    }
    uint32_t outer = policy_devices_per_process(layers, 1, &layer);
    uint32_t both = policy_devices_per_process(layers, 2, &layer);
    assert_true(outer == 0 || (both != 0 && both <= outer));
    assert_true(policy_log_level(layers, 2) >= policy_log_level(layers, 1));
}

/* What the outer text says of these holds, whatever the inner one says. */
static void check_outermost(const struct policy_settings *layers)
{
    if (layers[0].nvml.value != POLICY_UNSET)
        assert_int_equal(policy_nvml(layers, 2), layers[0].nvml.value);
    if (layers[0].cuda_visible_devices.value != POLICY_UNSET) {
        assert_int_equal(policy_cuda_visible_devices(layers, 2),
                         layers[0].cuda_visible_devices.value);
        assert_true(policy_nvml(layers, 2) == policy_nvml(layers, 1) ||
                    layers[0].cuda_visible_devices.value != POLICY_PHYSICAL);
    }
    if (layers[0].log.start)
        assert_ptr_equal(policy_log(layers, 2).start, layers[0].log.start);
    if (layers[0].overhead.kind != POLICY_SIZE_UNSET || policy_caps_memory(&layers[0])) {
        assert_int_equal(policy_overhead(layers, 2).kind, policy_overhead(layers, 1).kind);
        assert_int_equal(policy_overhead(layers, 2).value, policy_overhead(layers, 1).value);
    }
}

static void test_within(void **state)
{
    (void)state;
    unsigned int applied = 0;
    for (unsigned int round = 0; round < ROUNDS; round++) {
        static struct random_text texts[2];
        static struct policy_settings layers[2];
        struct policy_gpu gpus[GPUS_MAX];
        unsigned int gpu_count = 1 + pick(GPUS_MAX);
        for (unsigned int i = 0; i < gpu_count; i++) {
            gpus[i] = (struct policy_gpu){.pci_bus = i};
            snprintf(gpus[i].uuid, sizeof gpus[i].uuid, "GPU-%08x-0000-0000-0000-000000000000", i);
        }
        for (int i = 0; i < 2; i++) {
            random_policy(&texts[i], gpu_count);
            layers[i] = texts[i].settings;
        }
        applied += check_pair(layers, gpus, gpu_count);
        check_acts(layers);
        check_outermost(layers);
    }
    print_message("%u of %u pairs could be applied\n", applied, ROUNDS);
    assert_true(applied > ROUNDS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_within)};
    random_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
