/* streams.h -- streams: everything on them has happened when the call returns; what is left is who
 * they are.
 *
 * Must not know: what is done on them. Under the driver's lock.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_STREAMS_H
#define GPUSHIM_TESTS_SIMCUDA_STREAMS_H

#include "abi_more.h"
#include "handles.h"

struct session;

struct CUstream_st {
    struct handle handle;
    unsigned int flags;
    int priority;
    unsigned long long id;
    struct session *session; /* the capture that it takes part in; capture.c */
    CUgraphNode *last;       /* what the next captured work depends on */
    size_t last_count;
};

/* 400 for what is neither a default stream (NULL, 1, 2) nor alive. */
CUresult stream_check(CUstream stream);
int stream_is_default(CUstream stream);
/* A default stream's are the current context's. Only for checked streams, in a context. */
CUcontext stream_context(CUstream stream);
struct device *stream_device(CUstream stream);

#endif
