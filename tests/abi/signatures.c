/* signatures.c -- declares every function of hooks.def again, after an official header: the
 * compiler says where the two disagree. Compiled, never run. */
#ifdef ABI_NVML
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>
#if NVML_API_VERSION < 12
typedef int nvmlUUID_t;
#endif
#else
#define __CUDA_API_VERSION_INTERNAL /* declares every variant under its own name */
#include <cuda.h>
#include <cuda_runtime_api.h>

/* Types of functions that this header is too old to know: any type will do, nothing is compared. */
#if CUDA_VERSION < 12000
typedef int CUdriverProcAddressQueryResult, CUDA_GRAPH_INSTANTIATE_PARAMS,
    CUgraphExecUpdateResultInfo;
#endif
#if CUDA_VERSION < 12000
typedef int CUlibrary, CUlibraryOption;
#endif
#if CUDA_VERSION < 12010
typedef int CUmulticastObjectProp;
#endif
#if CUDA_VERSION < 12020
typedef int CUgraphNodeParams;
#endif
#if CUDA_VERSION < 12030
typedef int CUgraphEdgeData;
#endif
#if CUDA_VERSION < 12040
typedef int CUgreenCtx, CUdevResourceDesc;
#endif
#if CUDA_VERSION < 12050
typedef int CUctxCreateParams;
#endif
#if CUDA_VERSION < 12080
typedef int CUmemcpyAttributes, CUDA_MEMCPY3D_BATCH_OP;
#endif
#if CUDA_VERSION < 13000
typedef int CUatomicOperation;
#endif
#endif

/* Headers of CUDA 13 know every function; there a row that is not declared is an error. */
#if (defined(ABI_NVML) && NVML_API_VERSION >= 13) || (!defined(ABI_NVML) && CUDA_VERSION >= 13000)
#define IS_DECLARED(symbol) extern __typeof__(symbol) symbol;
#else
#define IS_DECLARED(symbol)
#endif

#ifdef ABI_NVML
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)
#define DRIVER_CALL(symbol, parameters)
#define RUNTIME_HOOK(symbol, parameters, arguments)
#define NVML_HOOK(symbol, when, parameters, arguments)                                             \
    IS_DECLARED(symbol) nvmlReturn_t symbol parameters;
#define NVML_CALL(symbol, parameters) IS_DECLARED(symbol) nvmlReturn_t symbol parameters;
#else
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)                    \
    IS_DECLARED(symbol) CUresult symbol parameters;
#define DRIVER_CALL(symbol, parameters) IS_DECLARED(symbol) CUresult symbol parameters;
#define RUNTIME_HOOK(symbol, parameters, arguments)                                                \
    IS_DECLARED(symbol) cudaError_t symbol parameters;
#define NVML_HOOK(symbol, when, parameters, arguments)
#define NVML_CALL(symbol, parameters)
#endif
#include "hooks.def"
