/* events.h -- events: a time, and the place in a capture where they were recorded. Under the
 * driver's lock. */
#ifndef GPUSHIM_TESTS_SIMCUDA_EVENTS_H
#define GPUSHIM_TESTS_SIMCUDA_EVENTS_H

#include "abi_more.h"
#include "handles.h"

struct CUevent_st {
    struct handle handle;
    unsigned int flags;
    int recorded;
    uint64_t nanoseconds;
    unsigned long long capture_id; /* 0: its last record was not captured */
    CUgraphNode *last;             /* what the recording stream had last */
    size_t last_count;
};

/* The event happens now. */
void event_recorded(CUevent event);

#endif
