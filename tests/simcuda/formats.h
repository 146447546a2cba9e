/* formats.h -- how the texels of an array's format lie in bytes.
 *
 * Knows: CUarray_format. Must not know: arrays. Written apart from shim/array_formats.def, which it
 * is to judge; the numbers are cuda_abi.h's.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_FORMATS_H
#define GPUSHIM_TESTS_SIMCUDA_FORMATS_H

#include <stddef.h>

enum { FORMAT_PLANES = 3 };

struct texels {
    int planes;
    struct {
        size_t width, height, bytes; /* so many bytes for each width x height texels */
    } plane[FORMAT_PLANES];
};

/* 0: no such format, or not with so many channels. */
int format_texels(int format, unsigned int channels, struct texels *texels);

#endif
