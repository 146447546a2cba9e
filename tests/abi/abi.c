/* abi.c -- the rows of abi.def (nvml.def), as numbers. Compiled once with our header and once with
 * the official one; main.c compares. */
#include "abi.h"

#include <stddef.h>
#include <stdint.h>

#if defined(ABI_NVML) && defined(ABI_OFFICIAL)
#include <nvml.h>
#elif defined(ABI_NVML)
#include "nvml_abi.h"
#elif defined(ABI_OFFICIAL)
#define __CUDA_API_VERSION_INTERNAL /* makes the old names and types visible */
#include <cuda.h>
#include <cuda_runtime_api.h>
#else
#include "cuda_abi.h"
#endif

#ifdef ABI_OFFICIAL
#define ABI_ROWS abi_official
#else
#define ABI_ROWS abi_ours
#endif

#define SIZE(type) {"sizeof(" #type ")", (long long)sizeof(type)},
#define FIELD(type, field) {"offsetof(" #type ", " #field ")", (long long)offsetof(type, field)},
#define VALUE(enumerator) {#enumerator, (long long)(enumerator)},

const struct abi_row ABI_ROWS[] = {
#ifdef ABI_NVML
#include "nvml.def"
#else
#include "abi.def"
#endif
    {NULL, 0}};
