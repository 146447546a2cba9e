/* abi.h -- one number of a binary interface, under the name it has in the headers. */
#ifndef GPUSHIM_TESTS_ABI_H
#define GPUSHIM_TESTS_ABI_H

struct abi_row {
    const char *name; /* NULL ends a table */
    long long value;
};

extern const struct abi_row abi_ours[];
extern const struct abi_row abi_official[];

#endif
