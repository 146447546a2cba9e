/* settings.h -- the SIMCUDA_* variables (README.md), read once, at the first question.
 *
 * Knows: the environment. Must not know: what a setting is for. Thread-safe. A value that can't be
 * understood ends the process with one line: a test that is set up wrongly must not look like a
 * result.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_SETTINGS_H
#define GPUSHIM_TESTS_SIMCUDA_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

const char *settings_gpus(void);
int settings_driver(void); /* 0: not set */
uint64_t settings_context_bytes(void);
uint64_t settings_module_bytes(void);
uint64_t settings_graph_chunk_bytes(void);
int settings_hide_processes(void);
uint64_t settings_reserved_bytes(void);
const char *settings_state_path(void);

/* Is `symbol` an item of SIMCUDA_MISSING? */
int settings_missing(const char *symbol);
/* What SIMCUDA_FAIL says of the n-th call (from 1) of `symbol`; 0: nothing. */
int settings_failure(const char *symbol, uint64_t n);
/* Does SIMCUDA_FAIL say anything at all? */
int settings_has_failures(void);

/* Reads `24GiB` at *text and moves *text behind it; ends the process when there is no size. */
uint64_t settings_size(const char *variable, const char **text);
void settings_die(const char *variable, const char *value) __attribute__((noreturn));

#endif
