/* log.h -- what the shim says, to whom, and how often.
 *
 * Knows: levels, the destination, the limits. Must not know: rules or CUDA.
 * A message is one line of at most 512 bytes, written by one system call; no malloc, no stdio, no
 * lock. What cannot be written is dropped. Thread-safe and async-signal-safe after log_configure();
 * errno is preserved. Nothing ever goes to standard output.
 */
#ifndef GPUSHIM_SHIM_LOG_H
#define GPUSHIM_SHIM_LOG_H

#include "policy.h"

#include <stdbool.h>

/* Once, before the first message; `destination` as in the policy ("stderr", "syslog", a path). */
void log_configure(enum policy_log_level level, struct policy_slice destination);
bool log_wants(enum policy_log_level level);

/* Starts a line with "gpushim: ". */
void log_start(struct text_line *line);
/* Writes the line if the level is wanted. */
void log_write(enum policy_log_level level, const struct text_line *line);

/* Is this the first refusal of its kind? True once for each (rule, call, devices), and for at most
 * 32 kinds in a process. `call` must be a string literal. */
bool log_first_refusal(const char *rule, const char *call, int device, int other);

#endif
