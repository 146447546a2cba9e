/* policy.h -- what a policy text says, and what it means for one process on one machine.
 *
 * Knows: the policy language (docs/gpushim.conf.5), how texts compose, which rule holds for a
 * process, which GPUs a list of devices names. Must not know: CUDA, NVML, files, the environment;
 * the caller brings bytes, the process's identity and the list of GPUs.
 *
 * No function here allocates memory, takes a lock, writes to a descriptor or keeps state between
 * calls: all are re-entrant, thread-safe and fork-safe. Slices point into the caller's text, which
 * must outlive what was read from it.
 */
#ifndef GPUSHIM_POLICY_POLICY_H
#define GPUSHIM_POLICY_POLICY_H

#include "text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum policy_limit {
    POLICY_TEXT_MAX = 64 * 1024, /* bytes in one text */
    POLICY_GPUS_MAX = 64,        /* GPUs of a machine, MIG devices counted one by one */
    POLICY_LAYERS_MAX = 3,       /* system file, GPUSHIM_CONF, GPUSHIM_POLICY */
    POLICY_ERRORS_MAX = 64,      /* kept; the rest are counted */
    POLICY_RULES_MAX = POLICY_TEXT_MAX / 9 + 1, /* "[rule a]" and the end of its line */
    POLICY_PATH_MAX = 511,                      /* bytes of a path in `log` */
};

enum policy_status {
    POLICY_OK = 0,
    POLICY_INVALID = -1,    /* the text has errors */
    POLICY_UNRESOLVED = -2, /* whether a rule holds hangs on a name or path that cannot be had */
    POLICY_MISSING = -3,    /* a named GPU is not on this machine or not in the outer grant */
};

/* Bytes of the caller's text; start is NULL when not set. */
struct policy_slice {
    const char *start;
    size_t length;
};

/* One text. `name` is what messages call it: a path, or "GPUSHIM_POLICY". In inline text every ';'
 * starts a new line, and columns still count within that line. Lines and columns count from 1;
 * columns are bytes. */
struct policy_text {
    const char *name;
    const char *bytes;
    size_t length;
    bool is_inline;
};

struct policy_error {
    uint32_t line; /* 0: about the text as a whole */
    uint32_t column;
    struct text_line why; /* what was expected, without "file:line:col: " */
};

/* Where the name of a rule lies in a text, and its header. */
struct policy_name {
    uint16_t offset, length, line, column;
};

struct policy_names {
    size_t count;
    struct policy_name list[POLICY_RULES_MAX];
};

struct policy_errors {
    size_t count; /* all of them; only the first POLICY_ERRORS_MAX are kept */
    struct policy_error list[POLICY_ERRORS_MAX + 1]; /* the last: where others are written */
    struct policy_names names;                       /* room that policy_read() works in */
};

/* Who the process is. The look-ups are called only if whether a rule that is reached holds hangs on
 * them, and perhaps more than once; NULL, or a slice that starts with NULL, is what cannot be had,
 * and what they return stays the subject's. A look-up that is NULL itself has nothing. */
struct policy_subject {
    uid_t user;          /* effective */
    const gid_t *groups; /* effective and supplementary */
    size_t group_count;
    const char *exe; /* absolute path of the executable, "" if unknown */
    const char *(*user_name)(const struct policy_subject *self, uid_t user);
    const char *(*group_name)(const struct policy_subject *self, gid_t group);
    struct policy_slice (*cgroups)(const struct policy_subject *self);     /* /proc/self/cgroup */
    struct policy_slice (*environment)(const struct policy_subject *self); /* /proc/self/environ */
    void *context;                                                         /* for the look-ups */
};

enum policy_switch {
    POLICY_UNSET,
    POLICY_ALLOW,
    POLICY_DENY,
    POLICY_COUNT,
    POLICY_IGNORE,
    POLICY_FOLLOW,
    POLICY_PHYSICAL,
    POLICY_WITHIN
};

enum policy_size_kind {
    POLICY_SIZE_UNSET,
    POLICY_SIZE_NONE,
    POLICY_SIZE_BYTES,
    POLICY_SIZE_PERCENT,
    POLICY_SIZE_MEASURED /* of `overhead` alone */
};

struct policy_size {
    enum policy_size_kind kind;
    uint32_t line;  /* where it was set */
    uint64_t value; /* bytes, or percent of the card's total (1..100) */
};

enum policy_log_level {
    POLICY_LOG_UNSET,
    POLICY_LOG_ERROR,
    POLICY_LOG_WARN,
    POLICY_LOG_INFO,
    POLICY_LOG_DEBUG
};

struct policy_choice {
    enum policy_switch value;
    uint32_t line; /* where it was set; 0: a default */
};

/* What one text says of one process: the rule that holds laid over [default]. */
struct policy_settings {
    const char *source;          /* the text's name */
    struct policy_slice rule;    /* name of the rule that holds; start NULL: only [default] */
    uint32_t rule_line;          /* where that rule begins; 0 without one */
    uint32_t rule_end;           /* its last line */
    struct policy_slice devices; /* the list as written; start NULL: not set, which means `all` */
    uint32_t devices_line, devices_column;
    /* For a GPU the first of these that is set holds: memory_of, base_memory_of, memory. */
    struct policy_size memory;
    struct policy_size memory_of[POLICY_GPUS_MAX]; /* memory.K; K counts in the list `devices` */
    /* The memory.K of [default], under a rule that lists devices of its own and says nothing of
     * memory: K counts in the list that [default] gives, and the cap follows the GPU. */
    struct policy_size base_memory_of[POLICY_GPUS_MAX];
    struct policy_slice base_devices;
    uint32_t base_devices_line, base_devices_column;
    struct policy_size overhead;               /* MEASURED, NONE, BYTES */
    struct policy_choice peer_access;          /* ALLOW, DENY */
    struct policy_choice cross_device_copy;    /* ALLOW, DENY */
    struct policy_choice ipc;                  /* ALLOW, DENY */
    struct policy_choice managed;              /* COUNT, IGNORE, DENY */
    struct policy_choice nvml;                 /* FOLLOW, PHYSICAL */
    struct policy_choice cuda_visible_devices; /* WITHIN, PHYSICAL, IGNORE */
    uint32_t devices_per_process;              /* 0: any, or not set */
    uint32_t devices_per_process_line;
    struct policy_slice log; /* "stderr", "syslog" or a path; start NULL: not set */
    enum policy_log_level log_level;
};

/* Reads a text for one process. Every error of the text is reported, also in rules that do not
 * hold. Returns POLICY_OK; POLICY_INVALID with `errors` in order of position; or POLICY_UNRESOLVED
 * with one error that names the rule. `settings` is meaningful only with POLICY_OK. A documented
 * key or value that this build does not enforce is an error that says so. Longer than
 * POLICY_TEXT_MAX: one error, line 0. */
int policy_read(const struct policy_text *text, const struct policy_subject *subject,
                struct policy_settings *settings, struct policy_errors *errors);

/* Appends "source:line:column: why" (without line and column where line is 0). */
void policy_describe_error(struct text_line *line, const char *source,
                           const struct policy_error *error);

/* May a system policy with this owner and mode (st_mode, type bits included) be trusted? NULL: yes;
 * else why not, in words. `root_is_mapped` is false where uid 0 has no mapping in this user
 * namespace, and then the overflow uid `overflow` stands for root. */
const char *policy_distrust(uid_t owner, mode_t mode, bool root_is_mapped, uid_t overflow);

/* One GPU of the machine, in nvidia-smi's order (PCI order): entry i has index i. The MIG devices,
 * a GPU's parts, stand behind all GPUs; they have no index, and are named by UUID. */
struct policy_gpu {
    char uuid[96]; /* "GPU-8-4-4-4-12" or "MIG-...", lower case hex, NUL-terminated */
    uint32_t pci_domain, pci_bus, pci_device;
    bool is_mig;
    uint8_t parent; /* of a MIG device: the entry of its GPU */
    char older[64]; /* of a MIG device: its older name "MIG-GPU-8-4-4-4-12/GI/CI", "" if unknown */
};

struct policy_grant {
    uint8_t gpu;              /* index into the machine's GPUs */
    struct policy_size cap;   /* kind NONE or BYTES: the tightest absolute size of all layers */
    uint8_t cap_layer;        /* which layer set `cap` */
    struct policy_size share; /* kind NONE or PERCENT: the tightest percentage of all layers */
    uint8_t share_layer;
};

/* Applies the layers in order, each inside the last, to the machine's GPUs. Fills `grants` (room
 * for POLICY_GPUS_MAX) in the order the process is to see them and returns their number; or
 * POLICY_MISSING with `error` (line, column, why) and `*error_layer`. The cap of a grant is the
 * smaller of cap.value and share.value percent of the card's real total. */
int policy_grant(const struct policy_settings *layers, size_t layer_count,
                 const struct policy_gpu *gpus, size_t gpu_count, struct policy_grant *grants,
                 struct policy_error *error, size_t *error_layer);

/* Is this list the word `all`, or not set? Then there is no device view in this layer. */
bool policy_grants_all(const struct policy_settings *settings);
/* Does it grant none, by the word `none`? Known without looking at the machine. */
bool policy_grants_none(const struct policy_settings *settings);

/* Does this layer set a memory cap other than `none`? */
bool policy_caps_memory(const struct policy_settings *settings);
/* Does it cap GPUs by their position (memory.K)? Then the machine's own order must be known. */
bool policy_caps_by_position(const struct policy_settings *settings);

/* What holds over all layers: DENY beats COUNT beats IGNORE, DENY beats ALLOW. What the outermost
 * layer leaves unset is its default, which an inner one cannot loosen. `*layer` is the layer that
 * decided (the outermost that says it), 0 for a default; the value is never POLICY_UNSET. */
struct policy_choice policy_peer_access(const struct policy_settings *layers, size_t layer_count,
                                        size_t *layer);
struct policy_choice policy_cross_device_copy(const struct policy_settings *layers,
                                              size_t layer_count, size_t *layer);
struct policy_choice policy_ipc(const struct policy_settings *layers, size_t layer_count,
                                size_t *layer);
struct policy_choice policy_managed(const struct policy_settings *layers, size_t layer_count,
                                    size_t *layer);
/* The smallest `devices_per_process` of all layers, 0: any. `*layer` is the layer that decided. */
uint32_t policy_devices_per_process(const struct policy_settings *layers, size_t layer_count,
                                    size_t *layer);
/* What counts for contexts and modules: `overhead` of the outermost layer that sets it or caps
 * memory, by default MEASURED. */
struct policy_size policy_overhead(const struct policy_settings *layers, size_t layer_count);
/* The outermost `cuda_visible_devices`, by default POLICY_WITHIN. */
enum policy_switch policy_cuda_visible_devices(const struct policy_settings *layers,
                                               size_t layer_count);
/* The outermost `nvml`; PHYSICAL where a layer as far out decides that `cuda_visible_devices` is
 * that; by default POLICY_FOLLOW. */
enum policy_switch policy_nvml(const struct policy_settings *layers, size_t layer_count);
/* The outermost `log`; the `log_level` of the outermost layer, by default warn, or a more verbose
 * one of an inner layer. */
struct policy_slice policy_log(const struct policy_settings *layers, size_t layer_count);
enum policy_log_level policy_log_level(const struct policy_settings *layers, size_t layer_count);

/* Do the layers fit into each other? POLICY_OK; or POLICY_INVALID with `error` (line, column, why)
 * and `*error_layer`, where one says `cuda_visible_devices = physical` within another that says
 * `nvml = follow`. */
int policy_fit(const struct policy_settings *layers, size_t layer_count, struct policy_error *error,
               size_t *error_layer);

/* Appends "rule NAME of FILE:LINE", or "[default] of FILE:LINE" where the line is not in the rule.
 * Line 0, which is what nothing sets, appends "rule NAME of FILE" or "FILE". */
void policy_describe_rule(struct text_line *line, const struct policy_settings *settings,
                          uint32_t at_line);

#endif
