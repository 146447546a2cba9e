/* objects.c -- small things without consequences: textures and surfaces, user objects, the
 * profiler's switches. */
#include "api.h"
#include "context.h"
#include "entry.h"
#include "handles.h"

static unsigned long long last_texture;

CUresult sim_cuTexObjectCreate(unsigned long long *out, const void *resource, const void *texture,
                               const void *view)
{
    (void)texture, (void)view;
    if (!out || !resource)
        return CUDA_ERROR_INVALID_VALUE;
    *out = ++last_texture;
    return CUDA_SUCCESS;
}

CUresult sim_cuTexObjectDestroy(unsigned long long texture)
{
    return texture && texture <= last_texture ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuSurfObjectCreate(unsigned long long *out, const void *resource)
{
    return sim_cuTexObjectCreate(out, resource, NULL, NULL);
}

CUresult sim_cuSurfObjectDestroy(unsigned long long surface)
{
    return sim_cuTexObjectDestroy(surface);
}

struct CUuserObject_st {
    struct handle handle;
    void *object;
    CUhostFn destroy;
    unsigned int references;
};

CUresult sim_cuUserObjectCreate(CUuserObject *out, void *object, CUhostFn destroy,
                                unsigned int references, unsigned int flags)
{
    if (!out || !destroy || references == 0 || flags != 1)
        return CUDA_ERROR_INVALID_VALUE;
    CUuserObject made = handle_new(HANDLE_USER_OBJECT, sizeof *made, NULL);
    made->object = object;
    made->destroy = destroy;
    made->references = references;
    *out = made;
    return CUDA_SUCCESS;
}

CUresult sim_cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    if (!handle_is(object, HANDLE_USER_OBJECT) || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    object->references += count;
    return CUDA_SUCCESS;
}

CUresult sim_cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    if (!handle_is(object, HANDLE_USER_OBJECT) || count == 0 || count > object->references)
        return CUDA_ERROR_INVALID_VALUE;
    object->references -= count;
    if (object->references == 0) {
        CUhostFn destroy = object->destroy;
        void *data = object->object;
        handle_delete(object);
        int held = entry_release();
        destroy(data);
        entry_regain(held);
    }
    return CUDA_SUCCESS;
}

/* A graph's references are never given back by its end: the object lives as long as the process. */
CUresult sim_cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                     unsigned int flags)
{
    if (!handle_is(graph, HANDLE_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    return flags & 1 ? CUDA_SUCCESS : sim_cuUserObjectRetain(object, count); /* 1: moves ours */
}

CUresult sim_cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
    return handle_is(graph, HANDLE_GRAPH) ? sim_cuUserObjectRelease(object, count)
                                          : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuFlushGPUDirectRDMAWrites(int target, int scope)
{
    (void)target, (void)scope;
    return CUDA_SUCCESS;
}

CUresult sim_cuProfilerInitialize(const char *config, const char *output, int mode)
{
    (void)config, (void)output, (void)mode;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult sim_cuProfilerStart(void) { return CUDA_SUCCESS; }

CUresult sim_cuProfilerStop(void) { return CUDA_SUCCESS; }
