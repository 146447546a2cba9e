/* posture.c -- see posture.h. */
#include "posture.h"
#include "log.h"
#include "subject.h"
#include "system_policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* What one decision is made in. Texts must stay: settings and messages point into them. (The system
 * policy's lie in its own room.) Threads that ask first at the same time decide side by side, each
 * in a workspace of its own, and the first to end is believed: none waits for another, which may be
 * looking up a name, and so be waiting for the linker's lock that this one holds in a constructor.
 */
struct workspace {
    struct posture_decision decision;
    struct policy_errors errors;
    struct subject_memory subject;
    char conf_name[512];
    char conf_bytes[POLICY_TEXT_MAX + 1], inline_bytes[POLICY_TEXT_MAX + 1];
};

static const struct posture_decision *believed;
static const struct posture_decision inert = {.posture = POSTURE_INERT};
static _Thread_local bool deciding __attribute__((tls_model("initial-exec")));

static void refuse(struct posture_decision *decision, const char *source, const char *why)
{
    decision->posture = POSTURE_REFUSE;
    text_start(&decision->refusal);
    text_add(&decision->refusal, source);
    text_add(&decision->refusal, ": ");
    text_add(&decision->refusal, why);
}

static void refuse_errors(struct posture_decision *decision, const struct policy_errors *errors,
                          const char *source)
{
    decision->posture = POSTURE_REFUSE;
    text_start(&decision->refusal);
    policy_describe_error(&decision->refusal, source, &errors->list[0]);
    if (errors->count > 1) {
        text_add(&decision->refusal, " (and ");
        text_add_number(&decision->refusal, errors->count - 1);
        text_add(&decision->refusal, errors->count == 2 ? " more error)" : " more errors)");
    }
}

/* One more layer, inside those before it. */
static void add_layer(struct workspace *work, const struct policy_text *text,
                      const struct policy_subject *subject)
{
    struct posture_decision *decision = &work->decision;
    if (decision->posture == POSTURE_REFUSE)
        return;
    if (policy_read(text, subject, &decision->layers[decision->layer_count], &work->errors) ==
        POLICY_OK)
        decision->layer_count++;
    else
        refuse_errors(decision, &work->errors, text->name);
}

static void add_system_policy(struct workspace *work, const struct policy_subject *subject)
{
    struct posture_decision *decision = &work->decision;
    const struct system_policy *file = system_policy();
    if (file->state == SYSTEM_POLICY_ABSENT)
        return;
    if (file->state == SYSTEM_POLICY_UNREADABLE) {
        refuse(decision, file->path, "cannot be read");
        text_add(&decision->refusal, " (errno ");
        text_add_signed(&decision->refusal, file->error);
        text_add(&decision->refusal, ")");
        return;
    }
    uid_t overflow = 0;
    bool mapped = file->status.st_uid == 0 || subject_root_is_mapped(&overflow);
    const char *distrust =
        policy_distrust(file->status.st_uid, file->status.st_mode, mapped, overflow);
    if (distrust) {
        refuse(decision, file->path, distrust);
        return;
    }
    const struct policy_text text = {file->path, file->bytes, file->length, false};
    add_layer(work, &text, subject);
}

static void add_conf(struct workspace *work, const struct policy_subject *subject)
{
    struct posture_decision *decision = &work->decision;
    const char *path = secure_getenv("GPUSHIM_CONF");
    struct stat status;
    if (!path || !*path)
        return;
    size_t name_length = strnlen(path, sizeof work->conf_name - 1);
    memcpy(work->conf_name, path, name_length);
    work->conf_name[name_length] = '\0';
    long length = read_whole_file(path, work->conf_bytes, sizeof work->conf_bytes, &status);
    if (length < 0) {
        refuse(decision, work->conf_name, "named by GPUSHIM_CONF, cannot be read");
        text_add(&decision->refusal, length == -ENOENT ? ": no such file" : " (errno ");
        if (length != -ENOENT) {
            text_add_signed(&decision->refusal, -length);
            text_add(&decision->refusal, ")");
        }
        return;
    }
    if (!S_ISREG(status.st_mode)) {
        refuse(decision, work->conf_name, "named by GPUSHIM_CONF, is not a regular file");
        return;
    }
    const struct policy_text text = {work->conf_name, work->conf_bytes, (size_t)length, false};
    add_layer(work, &text, subject);
}

static void add_inline(struct workspace *work, const struct policy_subject *subject)
{
    const char *value = secure_getenv("GPUSHIM_POLICY");
    if (!value)
        return;
    size_t length = strnlen(value, sizeof work->inline_bytes);
    memcpy(work->inline_bytes, value, length);
    const struct policy_text text = {"GPUSHIM_POLICY", work->inline_bytes, length, true};
    add_layer(work, &text, subject);
}

static unsigned int needs_of(const struct posture_decision *decided)
{
    const struct policy_settings *layers = decided->layers;
    const size_t count = decided->layer_count;
    unsigned int needs = 0;
    size_t layer;
    for (size_t i = 0; i < count; i++) {
        if (!policy_grants_all(&layers[i]))
            needs |= WHEN_VIEW;
        if (policy_caps_memory(&layers[i]))
            needs |= WHEN_MEMORY;
    }
    if (policy_cuda_visible_devices(layers, count) != POLICY_WITHIN)
        needs |= WHEN_ACTIVE; /* in cuInit, whichever GPUs are granted */
    if (policy_nvml(layers, count) == POLICY_FOLLOW) {
        needs |= needs & WHEN_VIEW ? WHEN_NVML_VIEW : 0;
        needs |= needs & WHEN_MEMORY ? WHEN_NVML_MEMORY : 0;
    }
    if (needs & WHEN_MEMORY && policy_overhead(layers, count).kind == POLICY_SIZE_MEASURED)
        needs |= WHEN_OVERHEAD;
    if (policy_devices_per_process(layers, count, &layer) != 0)
        needs |= WHEN_CONTEXTS;
    if (policy_managed(layers, count, &layer).value == POLICY_DENY)
        needs |= WHEN_MANAGED;
    if (policy_ipc(layers, count, &layer).value == POLICY_DENY)
        needs |= WHEN_IPC;
    if (policy_peer_access(layers, count, &layer).value == POLICY_DENY)
        needs |= WHEN_PEER;
    if (policy_cross_device_copy(layers, count, &layer).value == POLICY_DENY)
        needs |= WHEN_COPIES;
    return needs ? needs | WHEN_ACTIVE : 0;
}

/* Texts that are right each by itself may contradict each other. */
static void refuse_misfit(struct posture_decision *decision)
{
    struct policy_error error;
    size_t layer;
    if (decision->posture == POSTURE_REFUSE ||
        policy_fit(decision->layers, decision->layer_count, &error, &layer) == POLICY_OK)
        return;
    decision->posture = POSTURE_REFUSE;
    text_start(&decision->refusal);
    policy_describe_error(&decision->refusal, decision->layers[layer].source, &error);
}

static void decide(struct workspace *work)
{
    struct posture_decision *decision = &work->decision;
    const struct policy_subject *subject = subject_of_process(&work->subject);
    add_system_policy(work, subject);
    add_conf(work, subject);
    add_inline(work, subject);
    subject_end(&work->subject);
    refuse_misfit(decision);
    if (decision->posture == POSTURE_REFUSE) {
        decision->needs = WHEN_ACTIVE;
    } else {
        decision->needs = needs_of(decision);
        decision->posture = decision->needs ? POSTURE_ACTIVE : POSTURE_INERT;
    }
}

/* The first decision is believed, and says where messages go. */
static const struct posture_decision *believe(const struct posture_decision *decision)
{
    const struct posture_decision *first = NULL;
    if (!__atomic_compare_exchange_n(&believed, &first, decision, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return first;
    log_configure(policy_log_level(decision->layers, decision->layer_count),
                  policy_log(decision->layers, decision->layer_count));
    return decision;
}

/* Nothing to read means nothing to decide: the process stays as it was, without one system call. */
static bool nothing_says_anything(void)
{
    return system_policy()->state == SYSTEM_POLICY_ABSENT && !secure_getenv("GPUSHIM_CONF") &&
           !secure_getenv("GPUSHIM_POLICY");
}

static const struct posture_decision *decide_anew(void)
{
    static const struct posture_decision no_memory = {
        .posture = POSTURE_REFUSE,
        .needs = WHEN_ACTIVE,
        .refusal = {.length = 33, .bytes = "there is no memory for the policy"},
    };
    struct workspace *work =
        mmap(NULL, sizeof *work, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (work == MAP_FAILED)
        return &no_memory;
    deciding = true;
    decide(work);
    deciding = false;
    const struct posture_decision *first = believe(&work->decision);
    if (first != &work->decision)
        munmap(work, sizeof *work);
    return first;
}

const struct posture_decision *posture(void)
{
    const struct posture_decision *known = __atomic_load_n(&believed, __ATOMIC_ACQUIRE);
    if (known || deciding)
        return known;
    int saved_errno = errno;
    known = nothing_says_anything() ? believe(&inert) : decide_anew();
    errno = saved_errno;
    return known;
}

unsigned int posture_needs(unsigned int when)
{
    const struct posture_decision *decided = posture();
    return decided ? decided->needs & when : 0;
}
