/* simcuda.h -- the referee: what the simulated driver itself counted, for tests to judge by.
 *
 * Exported by the simulated libraries beside the driver's own names. A test that doesn't link it
 * finds the functions by dlsym. All are valid before cuInit, after fork and from any thread, take
 * no part in SIMCUDA_FAIL, and never change what they count. The environment variables are in
 * README.md.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_H
#define GPUSHIM_TESTS_SIMCUDA_H

#include <stdint.h>

enum { SIMCUDA_ALL_PROCESSES = 0, SIMCUDA_THIS_PROCESS = -1 };

/* Bytes of memory alive on a card, rounded as the driver rounds; pools and graph memory count by
 * what they reserve; imported memory counts for its exporter; contexts and modules are not
 * included. gpu is the index in PCI order (that of SIMCUDA_GPUS and of NVML), whatever
 * CUDA_VISIBLE_DEVICES says. pid is a process id or one of the two constants above. Dead processes
 * count nothing. */
uint64_t simcuda_live_bytes(int gpu, int pid);

/* Bytes that contexts take on a card with all that no allocation call shows: SIMCUDA_CONTEXT each,
 * SIMCUDA_MODULE for each loaded module, modules' globals, enlarged heaps. Arguments as above. */
uint64_t simcuda_context_bytes(int gpu, int pid);

/* How often this process called an exported function of the simulated libcuda, failed calls and
 * those that SIMCUDA_FAIL answered included. An unknown name has 0 calls. */
uint64_t simcuda_calls(const char *symbol);

/* The same for the simulated libnvidia-ml.so.1, which exports it. */
uint64_t simcuda_nvml_calls(const char *symbol);

#endif
