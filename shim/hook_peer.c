/* hook_peer.c -- peer_access = deny: every door by which one GPU reaches another's memory.
 *
 * Knows: the doors and the driver's own words for "no". Must not know: copies, which stay
 * untouched by this rule (cuGraphAddNode, one door for both, asks copy.h). Queries are answered
 * "no" with success, silent below info; acts are refused, one line each.
 */
#include "copy.h"
#include "driver.h"
#include "hook.h"
#include "log.h"
#include "posture.h"
#include "view.h"

static void add_rule(struct text_line *line)
{
    const struct posture_decision *decided = posture();
    size_t layer;
    struct policy_choice peer = policy_peer_access(decided->layers, decided->layer_count, &layer);
    policy_describe_rule(line, &decided->layers[layer], peer.line);
    text_add(line, " says peer_access = deny");
}

static CUresult refuse(const char *call, int device, int peer)
{
    struct text_line line;
    if (hook_start_refusal(&line, "peer_access", call, device, peer)) {
        text_add(&line, " refused");
        if (device != NO_DEVICE) {
            text_add(&line, " from ");
            view_add_device(&line, device);
        }
        if (peer != NO_DEVICE) {
            text_add(&line, " to ");
            view_add_device(&line, peer);
        }
        text_add(&line, ": ");
        add_rule(&line);
        text_add(&line, "; copies between GPUs go on working, through the host");
        log_write(POLICY_LOG_WARN, &line);
    }
    return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

static void log_answered(const char *call, int device, int peer)
{
    struct text_line line;
    if (!log_wants(POLICY_LOG_INFO) || !log_first_refusal("peer_access", call, device, peer))
        return;
    log_start(&line);
    text_add(&line, call);
    text_add(&line, " answered no: ");
    add_rule(&line);
    log_write(POLICY_LOG_INFO, &line);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    HOOK_ENTER(cuDeviceCanAccessPeer, (can, device, peer));
    CUresult rc = real.cuDeviceCanAccessPeer(can, device, peer);
    if (rc == CUDA_SUCCESS && can && *can && device != peer) {
        log_answered("cuDeviceCanAccessPeer", device, peer);
        *can = 0;
    }
    return rc;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice source,
                                 CUdevice target)
{
    HOOK_ENTER(cuDeviceGetP2PAttribute, (value, attribute, source, target));
    CUresult rc = real.cuDeviceGetP2PAttribute(value, attribute, source, target);
    if (rc == CUDA_SUCCESS && value && *value && source != target) {
        log_answered("cuDeviceGetP2PAttribute", source, target);
        *value = 0;
    }
    return rc;
}

CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
                                          const CUatomicOperation *operations, unsigned int count,
                                          CUdevice source, CUdevice target)
{
    HOOK_ENTER(cuDeviceGetP2PAtomicCapabilities, (capabilities, operations, count, source, target));
    CUresult rc =
        real.cuDeviceGetP2PAtomicCapabilities(capabilities, operations, count, source, target);
    if (rc == CUDA_SUCCESS && capabilities && source != target) {
        for (unsigned int i = 0; i < count; i++)
            capabilities[i] = 0;
    }
    return rc;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    int device, other;
    HOOK_ENTER(cuCtxEnablePeerAccess, (peer, flags));
    CUresult rc = hook_find_device(&device);
    if (rc == CUDA_SUCCESS)
        rc = hook_context_device(peer, &other);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (device == NO_DEVICE || other == NO_DEVICE || device == other)
        return real.cuCtxEnablePeerAccess(peer, flags); /* the driver's own error */
    return refuse("cuCtxEnablePeerAccess", device, other);
}

/* The first device among the descriptors that is granted access and is not `home`, or NO_DEVICE. */
static int foreign_device(const CUmemAccessDesc *access, size_t count, int home)
{
    for (size_t i = 0; access && i < count; i++) {
        if (access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
            access[i].location.id != home && access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
            return access[i].location.id;
    }
    return NO_DEVICE;
}

/* The device whose memory is mapped at an address; NO_DEVICE for host memory or none. */
static CUresult find_home(CUdeviceptr address, int *device)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop;
    void *pointer =
        (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr): the driver's type */
    *device = NO_DEVICE;
    if (!real.cuMemRetainAllocationHandle || !real.cuMemGetAllocationPropertiesFromHandle ||
        !real.cuMemRelease)
        return CUDA_SUCCESS;
    CUresult rc = real.cuMemRetainAllocationHandle(&handle, pointer);
    if (rc != CUDA_SUCCESS)
        return hook_says_nothing_there(rc) ? CUDA_SUCCESS : rc;
    rc = real.cuMemGetAllocationPropertiesFromHandle(&prop, handle);
    if (rc == CUDA_SUCCESS && prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        *device = prop.location.id;
    if (real.cuMemRelease(handle) != CUDA_SUCCESS)
        real.cuMemRelease(handle); /* a reference that stays would keep the memory for good */
    return rc;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                        size_t count)
{
    int home;
    HOOK_ENTER(cuMemSetAccess, (address, bytes, access, count));
    CUresult rc = find_home(address, &home);
    if (rc != CUDA_SUCCESS)
        return rc;
    const int foreign = foreign_device(access, count, home);
    if (home != NO_DEVICE && foreign != NO_DEVICE)
        return refuse("cuMemSetAccess", foreign, home);
    return real.cuMemSetAccess(address, bytes, access, count);
}

/* A pool's own device has access from the start, and under this rule no other ever gets it. */
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
    HOOK_ENTER(cuMemPoolSetAccess, (pool, access, count));
    for (size_t i = 0; access && i < count; i++) {
        CUmemLocation location = access[i].location;
        CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        if (location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || !real.cuMemPoolGetAccess)
            continue;
        CUresult rc = real.cuMemPoolGetAccess(&flags, pool, &location);
        if (rc != CUDA_SUCCESS && !hook_says_nothing_there(rc))
            return rc;
        if (rc == CUDA_SUCCESS && flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
            return refuse("cuMemPoolSetAccess", location.id, NO_DEVICE);
    }
    return real.cuMemPoolSetAccess(pool, access, count);
}

static CUresult check_node(const char *call, const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    const int home = params->poolProps.location.id;
    const int foreign = foreign_device(params->accessDescs, params->accessDescCount, home);
    return foreign == NO_DEVICE ? CUDA_SUCCESS : refuse(call, foreign, home);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                size_t after_count, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    HOOK_ENTER(cuGraphAddMemAllocNode, (node, graph, after, after_count, params));
    CUresult rc = params ? check_node("cuGraphAddMemAllocNode", params) : CUDA_SUCCESS;
    return rc == CUDA_SUCCESS ? real.cuGraphAddMemAllocNode(node, graph, after, after_count, params)
                              : rc;
}

/* A node of any kind, by the rules that look at its kind. */
static CUresult check_any_node(const CUgraphNodeParams *params)
{
    if (params && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && posture_needs(WHEN_PEER))
        return check_node("cuGraphAddNode", &params->alloc);
    if (params && params->type == CU_GRAPH_NODE_TYPE_MEMCPY && posture_needs(WHEN_COPIES))
        return copy_check_node("cuGraphAddNode", &params->memcpy.copyParams,
                               params->memcpy.copyCtx);
    return CUDA_SUCCESS;
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                        size_t after_count, CUgraphNodeParams *params)
{
    HOOK_ENTER(cuGraphAddNode, (node, graph, after, after_count, params));
    CUresult rc = check_any_node(params);
    return rc == CUDA_SUCCESS ? real.cuGraphAddNode(node, graph, after, after_count, params) : rc;
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                           const CUgraphEdgeData *edges, size_t after_count,
                           CUgraphNodeParams *params)
{
    HOOK_ENTER(cuGraphAddNode_v2, (node, graph, after, edges, after_count, params));
    CUresult rc = check_any_node(params);
    return rc == CUDA_SUCCESS
               ? real.cuGraphAddNode_v2(node, graph, after, edges, after_count, params)
               : rc;
}

bool peer_is_denied(void) { return posture_needs(WHEN_PEER) != 0; }

CUresult peer_refuse(const char *call) { return refuse(call, NO_DEVICE, NO_DEVICE); }

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t other,
                                    nvmlGpuP2PCapsIndex_t index, nvmlGpuP2PStatus_t *status)
{
    if (!nvml_open(true))
        return NVML_ERROR_LIBRARY_NOT_FOUND;
    if (!real_nvml.nvmlDeviceGetP2PStatus)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    nvmlReturn_t rc = real_nvml.nvmlDeviceGetP2PStatus(one, other, index, status);
    if (posture_needs(HOOK_WHEN(nvmlDeviceGetP2PStatus)) && rc == NVML_SUCCESS && status &&
        one != other && *status == NVML_P2P_STATUS_OK)
        *status = NVML_P2P_STATUS_NOT_SUPPORTED;
    return rc;
}
