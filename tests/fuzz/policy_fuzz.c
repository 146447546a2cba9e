/* policy_fuzz.c -- any bytes as a policy, read in both ways; what has no errors is granted,
 * and printed and read again. Besides what the sanitizers see, it checks what the contract promises
 * of errors and grants. */
#include "demand.h"
#include "policy.h"
#include "print.h"

#include <string.h>

static const char *no_name(const struct policy_subject *self, unsigned int id)
{
    (void)self;
    return id == 1000 ? "alice" : NULL;
}

static struct policy_slice cgroups(const struct policy_subject *self)
{
    (void)self;
    return (struct policy_slice){"0::/a.slice/job_1\n", 18};
}

static struct policy_slice environment(const struct policy_subject *self)
{
    (void)self;
    return (struct policy_slice){"A=b\0JOB=1\0", 10};
}

static void check_errors(const struct policy_errors *errors)
{
    size_t kept = errors->count < POLICY_ERRORS_MAX ? errors->count : POLICY_ERRORS_MAX;
    demand(errors->count > 0);
    for (size_t i = 0; i < kept; i++) {
        const struct policy_error *error = &errors->list[i];
        demand(error->why.length > 0 && error->why.length < TEXT_BYTES);
        demand(strlen(error->why.bytes) == error->why.length);
        demand(i == 0 || error[-1].line < error->line ||
               (error[-1].line == error->line && error[-1].column <= error->column));
    }
}

static void check_grants(const struct policy_settings *settings)
{
    static const struct policy_gpu gpus[] = {
        {.uuid = "GPU-11111111-aaaa-4000-8000-000000000000", .pci_domain = 0, .pci_bus = 1},
        {.uuid = "GPU-11112222-aaaa-4000-8000-000000000001", .pci_domain = 0, .pci_bus = 0x41},
        {.uuid = "MIG-33333333-aaaa-4000-8000-000000000002", .pci_domain = 0, .pci_bus = 0x41}};
    static struct policy_settings layers[2];
    struct policy_grant grants[POLICY_GPUS_MAX];
    struct policy_error error;
    size_t layer = 99;
    layers[0] = layers[1] = *settings;
    int count = policy_grant(layers, 2, gpus, 3, grants, &error, &layer);
    demand(count <= 3 && count >= POLICY_MISSING);
    demand(count >= 0 || (count == POLICY_MISSING && layer < 2 && error.line > 0));
    for (int i = 0; i < count; i++) {
        demand(grants[i].gpu < 3);
        for (int j = 0; j < i; j++)
            demand(grants[i].gpu != grants[j].gpu);
    }
}

struct printed {
    char bytes[2 * POLICY_TEXT_MAX];
    size_t length;
};

static void keep(void *context, const char *bytes, size_t length)
{
    struct printed *text = context;
    demand(length <= sizeof text->bytes - text->length);
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

/* What is printed can be read, and says the same. */
static void check_print(const struct policy_settings *settings,
                        const struct policy_subject *subject)
{
    static struct printed once, twice;
    static struct policy_settings again;
    static struct policy_errors errors;
    once.length = twice.length = 0;
    policy_print(settings, &(struct policy_sink){keep, &once});
    if (once.length > POLICY_TEXT_MAX)
        return;
    const struct policy_text text = {"printed.conf", once.bytes, once.length, false};
    demand(policy_read(&text, subject, &again, &errors) == POLICY_OK);
    policy_print(&again, &(struct policy_sink){keep, &twice});
    demand(once.length == twice.length && memcmp(once.bytes, twice.bytes, once.length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static const gid_t groups[] = {1000, 2000};
    static const struct policy_subject subject = {.user = 1000,
                                                  .groups = groups,
                                                  .group_count = 2,
                                                  .exe = "/usr/bin/python3",
                                                  .user_name = no_name,
                                                  .group_name = no_name,
                                                  .cgroups = cgroups,
                                                  .environment = environment};
    static struct policy_errors errors;
    static struct policy_settings settings;
    for (int is_inline = 0; is_inline < 2; is_inline++) {
        struct policy_text text = {"fuzz.conf", (const char *)bytes, length, is_inline};
        int rc = policy_read(&text, &subject, &settings, &errors);
        if (rc == POLICY_OK) {
            demand(errors.count == 0);
            check_grants(&settings);
            check_print(&settings, &subject);
        } else {
            check_errors(&errors);
        }
    }
    return 0;
}
