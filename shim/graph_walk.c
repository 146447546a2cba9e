/* graph_walk.c -- how much memory a graph's nodes allocate, by device, and how much of that they
 * leave unfreed.
 *
 * Knows: the driver's calls that read a graph. Must not know: executable graphs, charges.
 * The driver lays a graph's allocations out when their nodes are made: those that are never alive
 * at the same time may have the same addresses ("CUDA Programming Guide", graph memory nodes,
 * address reuse). So what a launch maps is the union of the address ranges, in pages of 2 MiB, and
 * not the sum of the allocations, which may be many times larger.
 */
#include "graphs.h"
#include "hook.h"
#include "view.h"

#include <string.h>
#include <sys/mman.h>

static const uint64_t PAGE = (uint64_t)2 << 20;

/* One allocation (end beyond start) or one free (end 0) of an address. */
struct piece {
    uint64_t start, end;
    int device;
};

/* All pieces of a graph and its children; from mmap, since we leave the program's heap alone. */
struct pieces {
    struct piece *all;
    size_t count, room;
};

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static bool grow(struct pieces *pieces)
{
    enum { FIRST_ROOM = 512 };
    const size_t room = pieces->room ? 2 * pieces->room : FIRST_ROOM;
    struct piece *larger = map(room * sizeof *larger);
    if (!larger)
        return false;
    if (pieces->all) {
        memcpy(larger, pieces->all, pieces->count * sizeof *larger);
        munmap(pieces->all, pieces->room * sizeof *pieces->all);
    }
    pieces->all = larger;
    pieces->room = room;
    return true;
}

static CUresult add(struct pieces *pieces, struct piece piece)
{
    if (pieces->count == pieces->room && !grow(pieces))
        return CUDA_ERROR_OUT_OF_MEMORY;
    pieces->all[pieces->count++] = piece;
    return CUDA_SUCCESS;
}

static CUresult add_allocation(struct pieces *pieces, CUgraphNode node)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params;
    CUresult rc = real.cuGraphMemAllocNodeGetParams(node, &params);
    if (rc != CUDA_SUCCESS || params.poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return rc;
    const struct piece piece = {params.dptr, params.dptr + params.bytesize,
                                params.poolProps.location.id};
    return add(pieces, piece);
}

static CUresult add_free(struct pieces *pieces, CUgraphNode node)
{
    CUdeviceptr address;
    CUresult rc = real.cuGraphMemFreeNodeGetParams(node, &address);
    return rc == CUDA_SUCCESS ? add(pieces, (struct piece){.start = address}) : rc;
}

static CUresult collect(struct pieces *pieces, CUgraph graph);

static CUresult visit(struct pieces *pieces, CUgraphNode node)
{
    CUgraphNodeType type;
    CUgraph child;
    CUresult rc = real.cuGraphNodeGetType(node, &type);
    if (rc != CUDA_SUCCESS)
        return rc;
    switch (type) {
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return add_allocation(pieces, node);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return add_free(pieces, node);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        rc = real.cuGraphChildGraphNodeGetGraph(node, &child);
        return rc == CUDA_SUCCESS ? collect(pieces, child) : rc;
    default:
        return CUDA_SUCCESS;
    }
}

static CUresult collect(struct pieces *pieces, CUgraph graph)
{
    size_t count = 0;
    CUresult rc = real.cuGraphGetNodes(graph, NULL, &count);
    if (rc != CUDA_SUCCESS || count == 0)
        return rc;
    const size_t bytes = count * sizeof(CUgraphNode);
    CUgraphNode *nodes = map(bytes);
    if (!nodes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    rc = real.cuGraphGetNodes(graph, nodes, &count);
    for (size_t i = 0; rc == CUDA_SUCCESS && i < count; i++)
        rc = visit(pieces, nodes[i]);
    munmap(nodes, bytes);
    return rc;
}

static bool comes_before(const struct piece *one, const struct piece *other)
{
    return one->start < other->start;
}

static void sink(struct piece *heap, size_t at, size_t count)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && comes_before(&heap[child], &heap[child + 1]))
            child++;
        if (!comes_before(&heap[at], &heap[child]))
            return;
        const struct piece moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
    }
}

/* A heap sort: the C library's may allocate, and every function that we import costs each process
 * of a machine. */
static void sort(struct piece *pieces, size_t count)
{
    for (size_t i = count / 2; i-- > 0;)
        sink(pieces, i, count);
    for (size_t end = count; end-- > 1;) {
        const struct piece largest = pieces[0];
        pieces[0] = pieces[end];
        pieces[end] = largest;
        sink(pieces, 0, end);
    }
}

/* How far the pages of each device are counted, as the addresses rise. */
struct covered {
    uint64_t all[ACCOUNT_DEVICES_MAX], unfreed[ACCOUNT_DEVICES_MAX];
};

/* The pages from start to end that are not covered yet, in bytes. */
static uint64_t cover(uint64_t *covered, uint64_t start, uint64_t end)
{
    start = start / PAGE * PAGE;
    end = (end + PAGE - 1) / PAGE * PAGE;
    if (start < *covered)
        start = *covered;
    if (end <= start)
        return 0;
    *covered = end;
    return end - start;
}

static struct graph_demand *demand_of(struct graph_demands *demands, int device)
{
    int i = 0;
    while (i < demands->count && demands->each[i].device != device)
        i++;
    if (i == demands->count)
        demands->each[demands->count++] = (struct graph_demand){.device = device};
    return &demands->each[i];
}

/* All pieces with one start: as many frees as allocations leave nothing. */
static void count_address(const struct piece *pieces, size_t count, struct covered *covered,
                          struct graph_demands *demands)
{
    size_t allocations = 0;
    uint64_t end = 0;
    int device = NO_DEVICE;
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].end == 0)
            continue;
        allocations++;
        device = pieces[i].device;
        end = pieces[i].end > end ? pieces[i].end : end;
    }
    if (device < 0 || device >= ACCOUNT_DEVICES_MAX || !account_is_capped(device))
        return;
    struct graph_demand *demand = demand_of(demands, device);
    demand->bytes += cover(&covered->all[device], pieces[0].start, end);
    if (count - allocations < allocations)
        demand->unfreed += cover(&covered->unfreed[device], pieces[0].start, end);
}

static void sum(const struct pieces *pieces, struct graph_demands *demands)
{
    struct covered covered;
    memset(&covered, 0, sizeof covered);
    for (size_t first = 0, next; first < pieces->count; first = next) {
        next = first + 1;
        while (next < pieces->count && pieces->all[next].start == pieces->all[first].start)
            next++;
        count_address(&pieces->all[first], next - first, &covered, demands);
    }
}

CUresult graph_walk(CUgraph graph, struct graph_demands *demands)
{
    struct pieces pieces = {NULL, 0, 0};
    struct capture_pause pause;
    CUresult rc;
    demands->count = 0;
    if (!view_ready(&rc))
        return rc;
    if (!real.cuGraphGetNodes || !real.cuGraphNodeGetType || !real.cuGraphChildGraphNodeGetGraph ||
        !real.cuGraphMemAllocNodeGetParams || !real.cuGraphMemFreeNodeGetParams ||
        !real.cuDeviceGetGraphMemAttribute)
        return CUDA_SUCCESS; /* before CUDA 11.4 graphs did not allocate */
    hook_pause_capture(&pause);
    rc = collect(&pieces, graph);
    hook_resume_capture(&pause);
    if (rc == CUDA_SUCCESS) {
        sort(pieces.all, pieces.count);
        sum(&pieces, demands);
    }
    if (pieces.all)
        munmap(pieces.all, pieces.room * sizeof *pieces.all);
    return rc;
}
