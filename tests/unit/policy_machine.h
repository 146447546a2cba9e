/* policy_machine.h -- a machine of four GPUs for the tests of grants, and grants as one line of
 * text. */
#ifndef GPUSHIM_TESTS_POLICY_MACHINE_H
#define GPUSHIM_TESTS_POLICY_MACHINE_H

#include "policy_help.h"

#define UUID_0 "GPU-11111111-aaaa-4000-8000-000000000000"
#define UUID_1 "GPU-11112222-aaaa-4000-8000-000000000001"
#define UUID_2 "GPU-33333333-aaaa-4000-8000-000000000002"
#define UUID_3 "GPU-44444444-aaaa-4000-8000-000000000003"

static const struct policy_gpu machine[] = {
    {.uuid = UUID_0, .pci_domain = 0, .pci_bus = 0x01},
    {.uuid = UUID_1, .pci_domain = 0, .pci_bus = 0x41},
    {.uuid = UUID_2, .pci_domain = 0, .pci_bus = 0xC1},
    {.uuid = UUID_3, .pci_domain = 0x10001, .pci_bus = 0x41},
};

/* Reads the texts, outermost first, and grants. Returns "3:4GiB@0 1", that is GPU 3 with 4 GiB set
 * by layer 0 and then GPU 1 without a cap, or the error as a person reads it. Overwritten by the
 * next. */
static inline const char *help_grant(const char *const *texts, size_t count)
{
    static char shown[4096];
    static const char *const names[] = {"/etc/gpushim.conf", "my.conf", "GPUSHIM_POLICY"};
    struct policy_settings layers[POLICY_LAYERS_MAX];
    struct policy_grant grants[POLICY_GPUS_MAX];
    struct policy_error error;
    struct text_line line;
    size_t layer = 99;
    for (size_t i = 0; i < count; i++) {
        struct policy_text text = help_inline(texts[i]);
        text.name = names[i];
        layers[i] = help_read(text);
    }
    int granted = policy_grant(layers, count, machine, COUNT_OF(machine), grants, &error, &layer);
    if (granted < 0) {
        assert_int_equal(granted, POLICY_MISSING);
        text_start(&line);
        policy_describe_error(&line, layers[layer].source, &error);
        snprintf(shown, sizeof shown, "%s", line.bytes);
        return shown;
    }
    size_t length = 0;
    shown[0] = '\0';
    for (int i = 0; i < granted; i++) {
        length += (size_t)snprintf(shown + length, sizeof shown - length, "%s%u", i ? " " : "",
                                   grants[i].gpu);
        if (grants[i].cap.kind == POLICY_SIZE_BYTES)
            length += (size_t)snprintf(shown + length, sizeof shown - length, ":%lluGiB@%u",
                                       (unsigned long long)(grants[i].cap.value / GIB),
                                       grants[i].cap_layer);
        if (grants[i].share.kind == POLICY_SIZE_PERCENT)
            length +=
                (size_t)snprintf(shown + length, sizeof shown - length, ":%llu%%@%u",
                                 (unsigned long long)grants[i].share.value, grants[i].share_layer);
    }
    return shown;
}

#endif
