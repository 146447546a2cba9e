/* hook_graph.c -- memory that graphs allocate: charged by what the driver reserves for them.
 *
 * Knows: the calls at which that can grow (launch, upload, an instantiation that uploads) or shrink
 * (trim). Must not know: the books (graphs.h), how a graph's need is found (graph_walk.c).
 * Which graphs allocate is known from their instantiation: the launch of any other costs a look-up.
 * cuGraphDestroy gives nothing back, and needs no hook; cuDeviceGetGraphMemAttribute tells of this
 * process's own memory, and stays the driver's.
 */
#include "graphs.h"
#include "hook.h"
#include "view.h"

static uint64_t number_of(CUgraphExec exec) { return (uint64_t)(uintptr_t)exec; }

static bool read_reserved(int device, uint64_t *reserved)
{
    cuuint64_t value = 0;
    if (!real.cuDeviceGetGraphMemAttribute ||
        real.cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &value) !=
            CUDA_SUCCESS)
        return false;
    *reserved = value;
    return true;
}

/* Charges what is reserved now; where that cannot be read, the last figure stands. */
static bool publish(int device, uint64_t *reserved, bool *unforeseen)
{
    const uint64_t ticket = graphs_ticket();
    if (!read_reserved(device, reserved))
        return false;
    *unforeseen = graphs_publish(device, ticket, *reserved);
    return true;
}

/* True where the reserve has grown by more than was foreseen. */
static bool refresh(int device)
{
    struct capture_pause pause;
    uint64_t reserved;
    bool unforeseen = false;
    hook_pause_capture(&pause);
    publish(device, &reserved, &unforeseen);
    hook_resume_capture(&pause);
    return unforeseen;
}

void graph_refresh(int device)
{
    if (graphs_in_use(device))
        refresh(device);
}

void graph_memory_freed(void)
{
    for (int i = 0; graphs_any_in_use() && i < view_count(); i++)
        graph_refresh(i);
}

static CUresult trim(int device)
{
    const uint32_t number = graphs_trim_begins(device);
    uint64_t reserved;
    bool unforeseen;
    CUresult rc = real.cuDeviceGraphMemTrim(device);
    if (publish(device, &reserved, &unforeseen))
        graphs_trimmed(device, number, reserved);
    return rc;
}

bool graph_trim(int device)
{
    const uint64_t before = account_held(device);
    struct capture_pause pause;
    if (!graphs_in_use(device) || !real.cuDeviceGraphMemTrim)
        return false;
    hook_pause_capture(&pause);
    trim(device);
    hook_resume_capture(&pause);
    return account_held(device) < before;
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    HOOK_ENTER(cuDeviceGraphMemTrim, (device));
    return graphs_in_use(device) ? trim(device) : real.cuDeviceGraphMemTrim(device);
}

/* What can grow on this stream does so one after the other. A context has a legacy default stream
 * of its own, and each thread another. */
static uint64_t stream_number(CUstream stream, bool per_thread)
{
    if (stream == CU_STREAM_PER_THREAD || (stream == NULL && per_thread))
        return GRAPHS_ANY_STREAM;
    if (stream == NULL || stream == CU_STREAM_LEGACY)
        return hook_current_context();
    return (uint64_t)(uintptr_t)stream;
}

static void refund(const struct graph_demand *demand)
{
    account_refund(demand->device, demand->precharged);
}

/* What is reserved now is charged, in the place of the precharge. True where that has grown by more
 * than was foreseen and the device is over its cap: gives back what is idle. */
static bool is_over(const struct graph_demand *demand)
{
    const bool unforeseen = refresh(demand->device);
    refund(demand);
    if (!unforeseen || account_held(demand->device) <= account_cap(demand->device))
        return false;
    hook_trim(demand->device);
    return true;
}

/* Ends the first `count` launches. */
static bool settle(const struct graph_demands *demands, int count)
{
    bool over = false;
    for (int i = 0; i < count; i++) {
        graphs_end(&demands->each[i]);
        over = is_over(&demands->each[i]) || over;
    }
    return over;
}

/* Charges, before the driver is asked, by how much each device's reserve may grow. */
static CUresult reserve(const char *call, uint64_t exec, struct graph_demands *demands,
                        uint64_t stream)
{
    for (int i = 0; i < demands->count; i++) {
        struct graph_demand *demand = &demands->each[i];
        struct charge charge;
        uint64_t need;
        demand->precharged = 0;
        while ((need = graphs_begin(exec, demands, i, stream)) > 0) {
            CUresult rc = hook_charge(&charge, demand->device, call, need - demand->precharged);
            if (rc != CUDA_SUCCESS) {
                refund(demand);
                settle(demands, i);
                return rc;
            }
            demand->precharged = need;
        }
    }
    return CUDA_SUCCESS;
}

/* What an instantiation makes of its graph. */
struct making {
    bool uploads;
    struct graph_demands demands;
};

static CUresult begin_making(struct making *making, const CUgraphExec *exec, CUgraph graph,
                             bool uploads, uint64_t stream)
{
    making->uploads = false;
    making->demands.count = 0;
    if (!exec || !graph)
        return CUDA_SUCCESS; /* the driver's to refuse */
    CUresult rc = graph_walk(graph, &making->demands);
    if (rc != CUDA_SUCCESS || !uploads)
        return rc;
    making->uploads = true;
    return reserve("cuGraphInstantiate", 0, &making->demands, stream);
}

static CUresult made(struct making *making, const CUgraphExec *exec, CUresult rc)
{
    const struct graph_demands *demands = &making->demands;
    bool over = false;
    if (making->uploads)
        over = settle(demands, demands->count);
    for (int i = 0; i < demands->count && !making->uploads; i++)
        over = is_over(&demands->each[i]) || over;
    if (rc != CUDA_SUCCESS || !exec)
        return rc;
    if (graphs_keep(number_of(*exec), demands) && !over)
        return CUDA_SUCCESS;
    /* what cannot be remembered or does not fit is taken back */
    graphs_drop(number_of(*exec));
    if (real.cuGraphExecDestroy)
        real.cuGraphExecDestroy(*exec);
    for (int i = 0; i < demands->count; i++)
        graph_trim(demands->each[i].device);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *failed, char *log,
                            size_t log_bytes)
{
    struct making making;
    HOOK_ENTER(cuGraphInstantiate, (exec, graph, failed, log, log_bytes));
    CUresult rc = begin_making(&making, exec, graph, false, 0);
    if (rc != CUDA_SUCCESS)
        return rc;
    return made(&making, exec, real.cuGraphInstantiate(exec, graph, failed, log, log_bytes));
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *failed, char *log,
                               size_t log_bytes)
{
    struct making making;
    HOOK_ENTER(cuGraphInstantiate_v2, (exec, graph, failed, log, log_bytes));
    CUresult rc = begin_making(&making, exec, graph, false, 0);
    if (rc != CUDA_SUCCESS)
        return rc;
    return made(&making, exec, real.cuGraphInstantiate_v2(exec, graph, failed, log, log_bytes));
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    struct making making;
    HOOK_ENTER(cuGraphInstantiateWithFlags, (exec, graph, flags));
    CUresult rc = begin_making(&making, exec, graph, flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,
                               GRAPHS_ANY_STREAM);
    if (rc != CUDA_SUCCESS)
        return rc;
    return made(&making, exec, real.cuGraphInstantiateWithFlags(exec, graph, flags));
}

static CUresult instantiate(CUresult (*original)(CUgraphExec *exec, CUgraph graph,
                                                 CUDA_GRAPH_INSTANTIATE_PARAMS *params),
                            CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params,
                            bool per_thread)
{
    struct making making;
    if (!params)
        return original(exec, graph, params);
    const bool uploads = params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    CUresult rc = begin_making(&making, exec, graph, uploads,
                               uploads ? stream_number(params->hUploadStream, per_thread) : 0);
    if (rc == CUDA_SUCCESS) {
        const CUresult answer = original(exec, graph, params);
        rc = made(&making, exec, answer);
        if (rc == answer)
            return rc;
    }
    params->hErrNode_out = NULL;
    params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    return rc;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    HOOK_ENTER(cuGraphInstantiateWithParams, (exec, graph, params));
    return instantiate(real.cuGraphInstantiateWithParams, exec, graph, params, false);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    HOOK_ENTER(cuGraphInstantiateWithParams_ptsz, (exec, graph, params));
    return instantiate(real.cuGraphInstantiateWithParams_ptsz, exec, graph, params, true);
}

/* From the next launch on an updated graph needs what the graph that it was updated with needs. */
static CUresult begin_update(CUgraphExec exec, CUgraph graph, struct graph_demands *demands)
{
    demands->count = 0;
    return exec && graph ? graph_walk(graph, demands) : CUDA_SUCCESS;
}

static CUresult updated(CUgraphExec exec, const struct graph_demands *demands, CUresult rc)
{
    if (rc == CUDA_SUCCESS && exec && !graphs_keep(number_of(exec), demands))
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    return rc;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *failed,
                           CUgraphExecUpdateResult *result)
{
    struct graph_demands demands;
    HOOK_ENTER(cuGraphExecUpdate, (exec, graph, failed, result));
    CUresult rc = begin_update(exec, graph, &demands);
    if (rc != CUDA_SUCCESS)
        return rc;
    return updated(exec, &demands, real.cuGraphExecUpdate(exec, graph, failed, result));
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    struct graph_demands demands;
    HOOK_ENTER(cuGraphExecUpdate_v2, (exec, graph, info));
    CUresult rc = begin_update(exec, graph, &demands);
    if (rc != CUDA_SUCCESS)
        return rc;
    return updated(exec, &demands, real.cuGraphExecUpdate_v2(exec, graph, info));
}

/* Forgotten before the driver may give its handle to another; what it leaves unfreed lives on. */
CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    struct graph_demands demands;
    HOOK_ENTER(cuGraphExecDestroy, (exec));
    if (!graphs_allocates(number_of(exec)))
        return real.cuGraphExecDestroy(exec);
    graphs_read(number_of(exec), &demands);
    graphs_drop(number_of(exec));
    CUresult rc = real.cuGraphExecDestroy(exec);
    if (rc != CUDA_SUCCESS)
        graphs_keep(number_of(exec), &demands); /* its places may not have been filled since */
    for (int i = 0; i < demands.count; i++)
        graph_refresh(demands.each[i].device);
    return rc;
}

/* A launch into a capture only makes a node. */
static CUresult map(CUresult (*original)(CUgraphExec exec, CUstream stream), const char *call,
                    CUgraphExec exec, CUstream stream, bool per_thread, bool *over)
{
    struct graph_demands demands;
    *over = false;
    if (hook_is_capturing(stream, per_thread))
        return original(exec, stream);
    graphs_read(number_of(exec), &demands);
    CUresult rc = reserve(call, number_of(exec), &demands, stream_number(stream, per_thread));
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = original(exec, stream);
    *over = settle(&demands, demands.count);
    return rc;
}

/* A launch that was more than was foreseen runs, and stays charged; an upload is undone. */
static CUresult launch(CUresult (*original)(CUgraphExec exec, CUstream stream), CUgraphExec exec,
                       CUstream stream, bool per_thread)
{
    bool over;
    if (!graphs_allocates(number_of(exec)))
        return original(exec, stream);
    return map(original, "cuGraphLaunch", exec, stream, per_thread, &over);
}

static CUresult upload(CUresult (*original)(CUgraphExec exec, CUstream stream), CUgraphExec exec,
                       CUstream stream, bool per_thread)
{
    bool over;
    if (!graphs_allocates(number_of(exec)))
        return original(exec, stream);
    CUresult rc = map(original, "cuGraphUpload", exec, stream, per_thread, &over);
    return rc == CUDA_SUCCESS && over ? CUDA_ERROR_OUT_OF_MEMORY : rc;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    HOOK_ENTER(cuGraphLaunch, (exec, stream));
    return launch(real.cuGraphLaunch, exec, stream, false);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
    HOOK_ENTER(cuGraphLaunch_ptsz, (exec, stream));
    return launch(real.cuGraphLaunch_ptsz, exec, stream, true);
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    HOOK_ENTER(cuGraphUpload, (exec, stream));
    return upload(real.cuGraphUpload, exec, stream, false);
}

CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
    HOOK_ENTER(cuGraphUpload_ptsz, (exec, stream));
    return upload(real.cuGraphUpload_ptsz, exec, stream, true);
}
