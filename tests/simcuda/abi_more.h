/* abi_more.h -- what the simulated driver needs of CUDA's binary interface beyond shim/cuda_abi.h.
 *
 * Structs bear names of our own and results are macros, so that cuda_abi.h can come to name the
 * same things without a clash. Layouts and numbers: "CUDA Driver API", CUDA 13.0. LP64 only. Must
 * not know: anything of the simulation.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_ABI_MORE_H
#define GPUSHIM_TESTS_SIMCUDA_ABI_MORE_H

#include "cuda_abi.h"

#define CUDA_ERROR_INVALID_IMAGE ((CUresult)200)
#define CUDA_ERROR_CONTEXT_ALREADY_IN_USE ((CUresult)216)
#define CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE ((CUresult)708)
#define CUDA_ERROR_FILE_NOT_FOUND ((CUresult)301)
#define CUDA_ERROR_NOT_READY ((CUresult)600)
#define CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ((CUresult)704)
#define CUDA_ERROR_PEER_ACCESS_NOT_ENABLED ((CUresult)705)
#define CUDA_ERROR_CONTEXT_IS_DESTROYED ((CUresult)709)
#define CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED ((CUresult)712)
#define CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED ((CUresult)713)
#define CUDA_ERROR_INVALID_RESOURCE_TYPE ((CUresult)914)
#define CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION ((CUresult)915)
#define CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED ((CUresult)900)
#define CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ((CUresult)901)

typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUlinkState_st *CUlinkState;
typedef struct CUuserObject_st *CUuserObject;
typedef void (*CUhostFn)(void *data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *data);

enum { /* of the copy structs' memory types */
       MEMORY_TYPE_HOST = 1,
       MEMORY_TYPE_DEVICE = 2,
       MEMORY_TYPE_ARRAY = 3,
       MEMORY_TYPE_UNIFIED = 4
};

struct copy_2d { /* CUDA_MEMCPY2D_v2 */
    size_t src_x, src_y;
    int src_type;
    const void *src_host;
    CUdeviceptr src_device;
    CUarray src_array;
    size_t src_pitch;
    size_t dst_x, dst_y;
    int dst_type;
    void *dst_host;
    CUdeviceptr dst_device;
    CUarray dst_array;
    size_t dst_pitch;
    size_t width_bytes, height;
};

struct copy_3d { /* CUDA_MEMCPY3D_v2, and CUDA_MEMCPY3D_PEER with its contexts in the reserved
                    places */
    size_t src_x, src_y, src_z, src_lod;
    int src_type;
    const void *src_host;
    CUdeviceptr src_device;
    CUarray src_array;
    void *src_context;
    size_t src_pitch, src_height;
    size_t dst_x, dst_y, dst_z, dst_lod;
    int dst_type;
    void *dst_host;
    CUdeviceptr dst_device;
    CUarray dst_array;
    void *dst_context;
    size_t dst_pitch, dst_height;
    size_t width_bytes, height, depth;
};

struct array_2d { /* CUDA_ARRAY_DESCRIPTOR_v2 */
    size_t width, height;
    int format;
    unsigned int channels;
};

struct array_3d { /* CUDA_ARRAY3D_DESCRIPTOR_v2 */
    size_t width, height, depth;
    int format;
    unsigned int channels;
    unsigned int flags;
};

enum { /* flags of array_3d */
       ARRAY_LAYERED = 0x1,
       ARRAY_CUBEMAP = 0x4,
       ARRAY_SPARSE = 0x40,
       ARRAY_DEFERRED_MAPPING = 0x80
};

struct array_requirements { /* CUDA_ARRAY_MEMORY_REQUIREMENTS_v1 */
    size_t size, alignment;
    unsigned int reserved[4];
};

struct ipc_handle { /* CUipcMemHandle_v1, CUipcEventHandle_v1 */
    char bytes[64];
};

struct pool_pointer { /* CUmemPoolPtrExportData_v1 */
    unsigned char bytes[64];
};

struct dev_resource { /* CUdevResource; type 1: streaming multiprocessors */
    int type;
    unsigned char padding[92];
    union {
        struct {
            unsigned int count, smallest, alignment;
        } sm;
        unsigned char bytes[48];
    };
};

struct external_memory { /* CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1; type 1: an opaque descriptor */
    int type;
    union {
        int fd;
        void *pointers[2];
    } from;
    unsigned long long bytes;
    unsigned int flags;
    unsigned int reserved[16];
};

struct external_buffer { /* CUDA_EXTERNAL_MEMORY_BUFFER_DESC_v1 */
    unsigned long long offset, bytes;
    unsigned int flags;
    unsigned int reserved[16];
};

struct host_node { /* CUDA_HOST_NODE_PARAMS_v1 */
    CUhostFn function;
    void *data;
};

struct memset_node { /* CUDA_MEMSET_NODE_PARAMS_v1 */
    CUdeviceptr dst;
    size_t pitch;
    unsigned int value;
    unsigned int element_bytes;
    size_t width, height;
};

struct instantiate_params { /* CUDA_GRAPH_INSTANTIATE_PARAMS */
    cuuint64_t flags;
    CUstream upload_stream;
    CUgraphNode failed_node;
    int result;
};

struct update_info { /* CUgraphExecUpdateResultInfo_v1 */
    int result;
    CUgraphNode failed_node, failed_from;
};

struct launch_config { /* CUlaunchConfig, first fields */
    unsigned int grid[3], block[3];
    unsigned int shared_bytes;
    CUstream stream;
    void *attributes;
    unsigned int attribute_count;
};

#endif
