/* crt/host_defines.h -- what cuda_runtime_api.h needs of a host C compiler.
 *
 * NVIDIA's wheels of the runtime carry its headers but not this one, which belongs to the toolkit's
 * compiler package. In host C all of these mark nothing.
 */
#ifndef GPUSHIM_TESTS_HOST_DEFINES_H
#define GPUSHIM_TESTS_HOST_DEFINES_H

#define CUDARTAPI
#define CUDARTAPI_CDECL
#define __host__
#define __device__
#define __global__
#define __managed__
#define __constant__
#define __cudart_builtin__
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))

#endif
