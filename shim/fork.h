/* fork.h -- what a child of fork must not inherit.
 *
 * A child of a process that has initialised CUDA cannot use it (the driver answers
 * CUDA_ERROR_NOT_INITIALIZED), and holds no device memory.
 */
#ifndef GPUSHIM_SHIM_FORK_H
#define GPUSHIM_SHIM_FORK_H

/* Asks the C library to call our handler in children; once. Only processes under a policy do. */
void fork_watch(void);

/* Each room's part of the handler; async-signal-safe. */
void memory_forget(void);
void pool_forget(void);
void vmm_forget(void);
void array_forget(void);
void sparse_forget(void);
void context_forget(void);
void attached_forget(void);
void green_forget(void);
void overhead_forget(void);
void module_forget(void);
void array_home_forget(void);

#endif
