/* posture.c -- see posture.h. */
#include "posture.h"
#include "log.h"
#include "once.h"
#include "subject.h"
#include "system_policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct once once;
static struct posture_decision decision;

/* Texts must stay: settings and messages point into them. The system policy's lie in its own room.
 */
static char conf_bytes[POLICY_TEXT_MAX + 1], inline_bytes[POLICY_TEXT_MAX + 1];
static char conf_name[512];
static struct policy_errors errors;

static void refuse(const char *source, const char *why)
{
    decision.posture = POSTURE_REFUSE;
    text_start(&decision.refusal);
    text_add(&decision.refusal, source);
    text_add(&decision.refusal, ": ");
    text_add(&decision.refusal, why);
}

static void refuse_errors(const char *source)
{
    decision.posture = POSTURE_REFUSE;
    text_start(&decision.refusal);
    policy_describe_error(&decision.refusal, source, &errors.list[0]);
    if (errors.count > 1) {
        text_add(&decision.refusal, " (and ");
        text_add_number(&decision.refusal, errors.count - 1);
        text_add(&decision.refusal, errors.count == 2 ? " more error)" : " more errors)");
    }
}

/* One more layer, inside those before it. */
static void add_layer(const struct policy_text *text, const struct policy_subject *subject)
{
    if (decision.posture == POSTURE_REFUSE)
        return;
    if (policy_read(text, subject, &decision.layers[decision.layer_count], &errors) == POLICY_OK)
        decision.layer_count++;
    else
        refuse_errors(text->name);
}

static void add_system_policy(const struct policy_subject *subject)
{
    const struct system_policy *file = system_policy();
    if (file->state == SYSTEM_POLICY_ABSENT)
        return;
    if (file->state == SYSTEM_POLICY_UNREADABLE) {
        refuse(file->path, "cannot be read");
        text_add(&decision.refusal, " (errno ");
        text_add_signed(&decision.refusal, file->error);
        text_add(&decision.refusal, ")");
        return;
    }
    uid_t overflow = 0;
    bool mapped = file->status.st_uid == 0 || subject_root_is_mapped(&overflow);
    const char *distrust =
        policy_distrust(file->status.st_uid, file->status.st_mode, mapped, overflow);
    if (distrust) {
        refuse(file->path, distrust);
        return;
    }
    const struct policy_text text = {file->path, file->bytes, file->length, false};
    add_layer(&text, subject);
}

static void add_conf(const struct policy_subject *subject)
{
    const char *path = secure_getenv("GPUSHIM_CONF");
    struct stat status;
    if (!path || !*path)
        return;
    size_t name_length = strnlen(path, sizeof conf_name - 1);
    memcpy(conf_name, path, name_length);
    conf_name[name_length] = '\0';
    long length = read_whole_file(path, conf_bytes, sizeof conf_bytes, &status);
    if (length < 0) {
        refuse(conf_name, "named by GPUSHIM_CONF, cannot be read");
        text_add(&decision.refusal, length == -ENOENT ? ": no such file" : " (errno ");
        if (length != -ENOENT) {
            text_add_signed(&decision.refusal, -length);
            text_add(&decision.refusal, ")");
        }
        return;
    }
    if (!S_ISREG(status.st_mode)) {
        refuse(conf_name, "named by GPUSHIM_CONF, is not a regular file");
        return;
    }
    const struct policy_text text = {conf_name, conf_bytes, (size_t)length, false};
    add_layer(&text, subject);
}

static void add_inline(const struct policy_subject *subject)
{
    const char *value = secure_getenv("GPUSHIM_POLICY");
    if (!value)
        return;
    size_t length = strnlen(value, sizeof inline_bytes);
    memcpy(inline_bytes, value, length);
    const struct policy_text text = {"GPUSHIM_POLICY", inline_bytes, length, true};
    add_layer(&text, subject);
}

static unsigned int needs_of_layers(void)
{
    unsigned int needs = 0;
    size_t layer;
    for (size_t i = 0; i < decision.layer_count; i++) {
        if (!policy_grants_all(&decision.layers[i]))
            needs |= WHEN_VIEW;
        if (policy_caps_memory(&decision.layers[i]))
            needs |= WHEN_MEMORY;
    }
    if (policy_nvml(decision.layers, decision.layer_count) == POLICY_FOLLOW) {
        needs |= needs & WHEN_VIEW ? WHEN_NVML_VIEW : 0;
        needs |= needs & WHEN_MEMORY ? WHEN_NVML_MEMORY : 0;
    }
    if (policy_devices_per_process(decision.layers, decision.layer_count, &layer) != 0)
        needs |= WHEN_CONTEXTS;
    if (policy_managed(decision.layers, decision.layer_count, &layer).value == POLICY_DENY)
        needs |= WHEN_MANAGED;
    if (policy_ipc(decision.layers, decision.layer_count, &layer).value == POLICY_DENY)
        needs |= WHEN_IPC;
    if (policy_peer_access(decision.layers, decision.layer_count, &layer).value == POLICY_DENY)
        needs |= WHEN_PEER;
    return needs ? needs | WHEN_ACTIVE : 0;
}

static void decide(void)
{
    const struct policy_subject *subject = subject_of_process();
    add_system_policy(subject);
    add_conf(subject);
    add_inline(subject);
    if (decision.posture == POSTURE_REFUSE) {
        decision.needs = WHEN_ACTIVE;
    } else {
        decision.needs = needs_of_layers();
        decision.posture = decision.needs ? POSTURE_ACTIVE : POSTURE_INERT;
    }
    log_configure(policy_log_level(decision.layers, decision.layer_count),
                  policy_log(decision.layers, decision.layer_count));
}

/* Nothing to read means nothing to decide: the process stays as it was, without one system call. */
static bool nothing_says_anything(void)
{
    return system_policy()->state == SYSTEM_POLICY_ABSENT && !secure_getenv("GPUSHIM_CONF") &&
           !secure_getenv("GPUSHIM_POLICY");
}

const struct posture_decision *posture(void)
{
    bool done;
    if (once_is_done(&once))
        return &decision;
    if (!once_begin(&once, &done))
        return done ? &decision : NULL;
    int saved_errno = errno;
    if (!nothing_says_anything())
        decide();
    errno = saved_errno;
    once_done(&once);
    return &decision;
}

unsigned int posture_needs(unsigned int when)
{
    const struct posture_decision *decided = posture();
    return decided ? decided->needs & when : 0;
}
