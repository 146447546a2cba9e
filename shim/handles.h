/* handles.h -- who keeps physical memory alive: the handles of virtual memory management, their
 * references, mappings and bindings.
 *
 * Knows: handles as numbers, and what is charged for each. Must not know: the driver's calls,
 * addresses.
 *
 * Memory that this process exported may come back to it by an import, under a handle of its own,
 * and then lives as long as either. No call tells which memory an import is (each exported
 * descriptor is an open /dev/nvidiactl; "CUDA Driver API", cuMemImportFromShareableHandle: not even
 * the same handle for the same memory is promised). So exported memory stays charged, after its own
 * handles and mappings are gone, until all imports are gone that may be it: those of its device
 * that were made while this process had exported memory there. Other imports cost nothing.
 *
 * Thread-safe; the lock is never held across a call out of here.
 */
#ifndef GPUSHIM_SHIM_HANDLES_H
#define GPUSHIM_SHIM_HANDLES_H

#include "account.h"
#include "track.h"

#include <stdbool.h>
#include <stdint.h>

/* What holds a handle: the program, by references; a mapping, or a multicast object's binding. */
enum handles_by { HANDLES_REFERENCE, HANDLES_MAPPING };

/* Where an import's memory is, if no device can be named. */
enum { HANDLES_EVERYWHERE = ACCOUNT_DEVICES_MAX, HANDLES_NOWHERE = ACCOUNT_DEVICES_MAX + 1 };

/* Enters a new handle, with one reference: of memory that was charged to a device, or of what is
 * charged for nothing (a multicast object; `bytes` 0). False where there is no memory for it. */
bool handles_enter(uint64_t handle, int device, uint64_t bytes);

/* One more; false for a handle that is not in the books. */
bool handles_hold(uint64_t handle, enum handles_by by);

/* One less, in two halves: before the driver's call, since the handle may be given out again at
 * once, and after it. What was the last gives its charge back. */
struct handles_leave {
    struct track_entry entry;
    uint64_t handle;
    enum handles_by by;
    bool known, gone;
};
void handles_leave(struct handles_leave *leave, uint64_t handle, enum handles_by by);
void handles_left(const struct handles_leave *leave, bool done);
/* Both at once, where the driver has nothing to do. */
void handles_drop(uint64_t handle, enum handles_by by);

/* Before the driver exports a handle: it is not undone where that fails. */
void handles_export(uint64_t handle);
/* Around an import: what it may be is not given back meanwhile. `where` is a device or one of the
 * two above; a handle that is known already has one reference more. False where there is no memory
 * for it. A failed import ends with handles_import_failed(). */
void handles_import_begins(void);
bool handles_imported(uint64_t handle, int where);
void handles_import_failed(void);

/* Memory bound to a multicast object, at an offset of it, is held by a mapping until it is unbound
 * or the object's handle is gone. The caller took the hold before; false where there is no room. */
bool handles_bind(uint64_t object, uint64_t offset, uint64_t memory);
/* The number of a binding that is about to go, or HANDLES_NO_BINDING; and how that went. */
enum { HANDLES_NO_BINDING = -1 };
int handles_unbind(uint64_t object, int device, uint64_t offset);
void handles_unbound(int binding, bool done);

void handles_forget(void);

#endif
