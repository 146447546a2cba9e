/* tables.h -- the private tables that NVIDIA's runtime asks for by cuGetExportTable: those that
 * integrity.c signs. */
#ifndef GPUSHIM_TESTS_SIMCUDA_TABLES_H
#define GPUSHIM_TESTS_SIMCUDA_TABLES_H

const void *tables_cudart_interface(void);
const void *tables_integrity(void);
const void *tables_integrity_slot(void);

#endif
