/* visible.h -- which cards CUDA sees and in which order: CUDA_VISIBLE_DEVICES and
 * CUDA_DEVICE_ORDER.
 *
 * Knows: the rules of the variables (driver.md F2, simulated-driver.md section 5).
 * Must not know: that cuInit asks, or what a device is beyond its card.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_VISIBLE_H
#define GPUSHIM_TESTS_SIMCUDA_VISIBLE_H

/* Fills gpus[], of MACHINE_MAX_GPUS entries, with the PCI-order indices that the values `devices`
 * and `order` of the two variables (NULL: not set) leave, in CUDA's order, and returns how many. */
int visible_gpus(const char *devices, const char *order, int gpus[]);

#endif
