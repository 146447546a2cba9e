/* capture.h -- streams that record work into a graph in place of doing it.
 *
 * Knows: which streams take part in which capture, and what is forbidden meanwhile.
 * Must not know: what the work is. Under the driver's lock.
 */
#ifndef GPUSHIM_TESTS_SIMCUDA_CAPTURE_H
#define GPUSHIM_TESTS_SIMCUDA_CAPTURE_H

#include "abi_more.h"

struct work;

int capture_active(CUstream stream);
/* On a capturing stream adds the work as a node, else does it. Checks the stream. */
CUresult capture_or_run(CUstream stream, const struct work *work);

/* The graph that a capturing stream records into, with what its next node depends on; NULL where
 * none is active. */
CUgraph capture_graph(CUstream stream, const CUgraphNode **last, size_t *count);

/* For calls that a capture forbids (UNSAFE): 900, and the capture is spoilt, where one is
 * running that was begun in global mode anywhere or in thread-local mode here, unless this thread's
 * own mode allows it. */
CUresult capture_check_unsafe(void);
/* Synchronising with or querying a capturing stream: 900, and the capture is spoilt. */
CUresult capture_check_wait(CUstream stream);

/* An event recorded in a capture carries it to the stream that waits for the event. */
void capture_record(CUstream stream, CUevent event);
CUresult capture_wait(CUstream stream, CUevent event);

/* The stream ends; the context's streams end. */
void capture_leave(CUstream stream);
void capture_forget_context(CUcontext context);

#endif
