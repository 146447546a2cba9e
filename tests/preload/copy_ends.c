/* copy_ends.c -- see copy_ends.h. */
#include "copy_ends.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

struct end gpus[2], neighbour, host = {.device = -1};
struct hook_driver driver;

enum { GRANULE = ENDS_GRANULE, LOW = 0x40000000 };

static size_t sizes[] = {BYTES}, first[] = {0};

#define AT(end) ((end)->memory)
#define AT32(end) ((CUdeviceptr_v1)(end)->memory)
#define HOST(end) ((void *)(uintptr_t)(end)->memory)
#define LIST(end) ((CUdeviceptr[]){(end)->memory})
#define MANAGED_LIST(end) ((CUdeviceptr[]){(end)->managed})
#define SIZES sizes
#define FIRST first

static CUmemLocation *place_of(const struct end *end)
{
    static CUmemLocation place;
    place = end->device < 0 ? (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST, 0}
                            : (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, end->device};
    return &place;
}

static CUmemorytype type_of(const struct end *end)
{
    return end->device < 0 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

/* Whichever of the two the type calls for is looked at. */
#define ENDS(to, from, address)                                                                    \
    .srcMemoryType = type_of(from), .srcHost = HOST(from), .srcDevice = address(from),             \
    .srcPitch = BYTES / ROWS, .dstMemoryType = type_of(to), .dstHost = HOST(to),                   \
    .dstDevice = address(to), .dstPitch = BYTES / ROWS, .WidthInBytes = BYTES / ROWS

static const CUDA_MEMCPY2D *rows_2d(const struct end *to, const struct end *from)
{
    static CUDA_MEMCPY2D copy;
    copy = (CUDA_MEMCPY2D){ENDS(to, from, AT), .Height = ROWS};
    return &copy;
}

static const CUDA_MEMCPY2D_v1 *rows_2d_v1(const struct end *to, const struct end *from)
{
    static CUDA_MEMCPY2D_v1 copy;
    copy = (CUDA_MEMCPY2D_v1){ENDS(to, from, AT32), .Height = ROWS};
    return &copy;
}

const CUDA_MEMCPY3D *rows_3d(const struct end *to, const struct end *from)
{
    static CUDA_MEMCPY3D copy;
    copy = (CUDA_MEMCPY3D){ENDS(to, from, AT), .srcHeight = 1, .dstHeight = 1, .Height = 1,
                           .Depth = ROWS};
    return &copy;
}

static const CUDA_MEMCPY3D_v1 *rows_3d_v1(const struct end *to, const struct end *from)
{
    static CUDA_MEMCPY3D_v1 copy;
    copy = (CUDA_MEMCPY3D_v1){ENDS(to, from, AT32), .srcHeight = 1, .dstHeight = 1, .Height = 1,
                              .Depth = ROWS};
    return &copy;
}

const CUDA_MEMCPY3D_PEER *rows_3d_peer(const struct end *to, const struct end *from)
{
    static CUDA_MEMCPY3D_PEER copy;
    copy = (CUDA_MEMCPY3D_PEER){ENDS(to, from, AT),
                                .srcContext = from->context,
                                .dstContext = to->context,
                                .srcHeight = 1,
                                .dstHeight = 1,
                                .Height = 1,
                                .Depth = ROWS};
    return &copy;
}

CUDA_MEMCPY3D_BATCH_OP *batch_3d(const struct end *to, const struct end *from)
{
    static CUDA_MEMCPY3D_BATCH_OP op;
    op = (CUDA_MEMCPY3D_BATCH_OP){
        .src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = from->memory}},
        .dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = to->memory}},
        .extent = {BYTES / ROWS, ROWS, 1},
        .srcAccessOrder = 1};
    return &op;
}

/* Graphs. Each is launched once, and then gone. */
struct graph {
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec executable;
    CUgraphNodeParams params; /* of the copy that is asked for */
};

static void start_graph(struct graph *graph, const struct end *to, const struct end *from)
{
    *graph = (struct graph){.params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY}};
    graph->params.memcpy.copyParams = *rows_3d(to, from);
    graph->params.memcpy.copyCtx = gpus[0].context;
    ok(cuda.cuGraphCreate(&graph->graph, 0));
}

/* With a node that copies the source to itself, to be changed. */
static void start_with_node(struct graph *graph, const struct end *to, const struct end *from)
{
    start_graph(graph, to, from);
    ok(driver.cuGraphAddMemcpyNode(&graph->node, graph->graph, NULL, 0, rows_3d(from, from),
                                   gpus[0].context));
}

static void instantiate(struct graph *graph)
{
    ok(cuda.cuGraphInstantiateWithFlags(&graph->executable, graph->graph, 0));
}

static CUresult launch(struct graph *graph, CUresult rc)
{
    if (rc == CUDA_SUCCESS && !graph->executable)
        instantiate(graph);
    if (rc == CUDA_SUCCESS)
        ok(cuda.cuGraphLaunch(graph->executable, NULL));
    if (graph->executable)
        ok(cuda.cuGraphExecDestroy(graph->executable));
    ok(cuda.cuGraphDestroy(graph->graph));
    return rc;
}

static CUresult add_memcpy_node(const struct end *to, const struct end *from)
{
    struct graph graph;
    start_graph(&graph, to, from);
    return launch(&graph,
                  driver.cuGraphAddMemcpyNode(&graph.node, graph.graph, NULL, 0,
                                              &graph.params.memcpy.copyParams, gpus[0].context));
}

static CUresult add_node(const struct end *to, const struct end *from)
{
    struct graph graph;
    start_graph(&graph, to, from);
    return launch(&graph, driver.cuGraphAddNode(&graph.node, graph.graph, NULL, 0, &graph.params));
}

static CUresult add_node_v2(const struct end *to, const struct end *from)
{
    struct graph graph;
    start_graph(&graph, to, from);
    return launch(&graph,
                  driver.cuGraphAddNode_v2(&graph.node, graph.graph, NULL, NULL, 0, &graph.params));
}

static CUresult set_memcpy_node(const struct end *to, const struct end *from)
{
    struct graph graph;
    start_with_node(&graph, to, from);
    return launch(&graph,
                  driver.cuGraphMemcpyNodeSetParams(graph.node, &graph.params.memcpy.copyParams));
}

static CUresult set_node(const struct end *to, const struct end *from)
{
    struct graph graph;
    start_with_node(&graph, to, from);
    return launch(&graph, driver.cuGraphNodeSetParams(graph.node, &graph.params));
}

static CUresult set_executable_memcpy_node(const struct end *to, const struct end *from)
{
    struct graph graph;
    start_with_node(&graph, to, from);
    instantiate(&graph);
    return launch(&graph, driver.cuGraphExecMemcpyNodeSetParams(graph.executable, graph.node,
                                                                &graph.params.memcpy.copyParams,
                                                                gpus[0].context));
}

static CUresult set_executable_node(const struct end *to, const struct end *from)
{
    struct graph graph;
    start_with_node(&graph, to, from);
    instantiate(&graph);
    return launch(&graph,
                  driver.cuGraphExecNodeSetParams(graph.executable, graph.node, &graph.params));
}

#define DOOR(symbol, traits, arguments)                                                            \
    static CUresult go_##symbol(const struct end *to, const struct end *from)                      \
    {                                                                                              \
        return driver.symbol arguments;                                                            \
    }
#define DOOR_BY(symbol, traits, function)
#include "copy_doors.def"
#undef DOOR
#undef DOOR_BY

static const char *base_of(const char *symbol)
{
#define DRIVER_HOOK(name, base, version, stream, when, parameters, arguments)                      \
    if (strcmp(symbol, #name) == 0)                                                                \
        return #base;
#define NVML_HOOK(symbol, when, parameters, arguments)
#define RUNTIME_HOOK(symbol, parameters, arguments)
#define DRIVER_CALL(symbol, parameters)
#define NVML_CALL(symbol, parameters)
#include "hooks.def"
#undef DRIVER_HOOK
    return NULL;
}

const struct door *door_of(const char *symbol)
{
    static struct door doors[] = {
#define DOOR(symbol, traits, arguments) {#symbol, NULL, traits, go_##symbol},
#define DOOR_BY(symbol, traits, function) {#symbol, NULL, traits, function},
#include "copy_doors.def"
    };
    for (size_t i = 0; i < sizeof doors / sizeof doors[0]; i++) {
        if (strcmp(doors[i].symbol, symbol) != 0)
            continue;
        doors[i].base = base_of(symbol);
        return &doors[i];
    }
    return NULL;
}

void ends_map(CUdeviceptr address, size_t bytes, int device)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    ok(cuda.cuMemCreate(&handle, bytes, &prop, 0));
    ok(cuda.cuMemMap(address, bytes, 0, handle, 0));
    ok(cuda.cuMemSetAccess(address, bytes, &access, 1));
    ok(cuda.cuMemRelease(handle));
}

static void make_array(CUarray *array)
{
    const struct array_2d shape = {.width = BYTES, .height = 1, .format = 1, .channels = 1};
    ok(cuda.cuArrayCreate_v2(array, &shape));
}

static void make_gpu(struct end *end, int device)
{
    end->device = device;
    end->memory = LOW + (CUdeviceptr)device * GRANULE;
    ends_map(end->memory, GRANULE, device);
    ok(cuda.cuDevicePrimaryCtxRetain(&end->context, device));
    ok(cuda.cuCtxSetCurrent(end->context));
    make_array(&end->array);
    ok(cuda.cuMemAllocManaged(&end->managed, BYTES, CU_MEM_ATTACH_GLOBAL));
}

int ends_start(void **state)
{
    CUdeviceptr low;
    (void)state;
    client_load();
#define DRIVER_HOOK(symbol, base, version, stream, when, parameters, arguments)                    \
    do {                                                                                           \
        void *found = dlsym(cuda.library, #symbol);                                                \
        memcpy(&driver.symbol, &found, sizeof found);                                              \
    } while (0);
#include "hooks.def"
#undef DRIVER_HOOK
    ok(cuda.cuInit(0));
    ok(cuda.cuMemAddressReserve(&low, 2 * (size_t)GRANULE, 0, LOW, 0));
    assert_int_equal(low, LOW);
    make_gpu(&gpus[1], 1);
    neighbour = gpus[1];
    neighbour.memory += BYTES;
    make_array(&neighbour.array);
    make_gpu(&gpus[0], 0);
    host.memory = LOW + 4 * (CUdeviceptr)GRANULE;
    void *pinned = mmap(HOST(&host), BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    assert_ptr_equal(pinned, HOST(&host));
    ok(cuda.cuMemHostRegister_v2(pinned, BYTES, 0));
    return 0;
}

void end_fill(const struct end *end, int array, unsigned char byte)
{
    unsigned char bytes[BYTES];
    memset(bytes, byte, sizeof bytes);
    if (array)
        ok(cuda.cuMemcpyHtoA_v2(end->array, 0, bytes, BYTES));
    else if (end->device < 0)
        memcpy(HOST(end), bytes, sizeof bytes);
    else
        ok(cuda.cuMemcpyHtoD_v2(end->memory, bytes, BYTES));
}

int end_holds(const struct end *end, int array)
{
    unsigned char bytes[BYTES];
    if (array)
        ok(cuda.cuMemcpyAtoH_v2(bytes, end->array, 0, BYTES));
    else if (end->device < 0)
        memcpy(bytes, HOST(end), sizeof bytes);
    else
        ok(cuda.cuMemcpyDtoH_v2(bytes, end->memory, BYTES));
    for (int i = 1; i < BYTES; i++)
        if (bytes[i] != bytes[0])
            return -1;
    return bytes[0];
}
