/* copy.c -- see copy.h. */
#include "copy.h"
#include "hook.h"
#include "log.h"
#include "posture.h"
#include "view.h"

/* What the driver says of an address. */
struct place {
    int device; /* NO_DEVICE: the host's, or nobody's */
    bool managed;
    uint64_t bytes; /* to the end of what is mapped there as one piece; 0: not told */
};

/* The GPUs that an end lies on. Of three or more, two are enough to say no. */
struct where {
    int device, other;
};
static const struct where nowhere = {NO_DEVICE, NO_DEVICE};

static CUresult ask(uint64_t address, struct place *place)
{
    enum { ALL = 5, ALWAYS_THERE = 3 };
    CUpointer_attribute attributes[ALL] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
        CU_POINTER_ATTRIBUTE_MAPPING_SIZE};
    unsigned int type = 0, managed = 0;
    int device = NO_DEVICE;
    CUdeviceptr base = 0;
    size_t size = 0;
    void *values[ALL] = {&type, &managed, &device, &base, &size};

    *place = (struct place){.device = NO_DEVICE};
    if (!real.cuPointerGetAttributes)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult rc = real.cuPointerGetAttributes(ALL, attributes, values, address);
    if (rc == CUDA_ERROR_INVALID_VALUE) /* an older driver does not know the last two */
        rc = real.cuPointerGetAttributes(ALWAYS_THERE, attributes, values, address);
    if (rc != CUDA_SUCCESS)
        return hook_says_nothing_there(rc) ? CUDA_SUCCESS : rc;
    place->managed = managed != 0;
    if (device >= 0 && (managed || (type != 0 && type != CU_MEMORYTYPE_HOST)))
        place->device = device;
    if (address - base < size)
        place->bytes = size - (address - base);
    return CUDA_SUCCESS;
}

static void add(struct where *where, int device)
{
    if (where->device == NO_DEVICE)
        where->device = device;
    else if (where->other == NO_DEVICE && device != where->device)
        where->other = device;
}

/* Piece by piece: one range of addresses may be mapped from the memory of several GPUs. */
static CUresult add_memory(struct where *where, uint64_t address, uint64_t bytes, bool managed_too)
{
    while (bytes) {
        struct place place;
        CUresult rc = ask(address, &place);
        if (rc != CUDA_SUCCESS)
            return rc;
        if (managed_too || !place.managed)
            add(where, place.device);
        if (place.bytes == 0 || place.bytes >= bytes)
            return CUDA_SUCCESS;
        address += place.bytes;
        bytes -= place.bytes;
    }
    return CUDA_SUCCESS;
}

static CUresult find(const struct copy_end *end, struct where *where)
{
    int device;
    *where = nowhere;
    if (end->context) {
        CUresult rc = hook_context_device(end->context, &device);
        if (rc != CUDA_SUCCESS)
            return rc;
        add(where, device);
    }
    if (end->array) {
        CUresult rc = array_home(end->array, &device);
        if (rc != CUDA_SUCCESS)
            return rc;
        add(where, device);
    }
    return add_memory(where, end->address, end->bytes, false);
}

static CUresult refuse(const char *call, int from, int to)
{
    struct text_line line;
    if (hook_start_refusal(&line, "cross_device_copy", call, from, to)) {
        const struct posture_decision *decided = posture();
        size_t layer;
        struct policy_choice copies =
            policy_cross_device_copy(decided->layers, decided->layer_count, &layer);
        text_add(&line, " from CUDA device ");
        text_add_signed(&line, from);
        text_add(&line, " (");
        view_add_device(&line, from);
        text_add(&line, ") to CUDA device ");
        text_add_signed(&line, to);
        text_add(&line, " (");
        view_add_device(&line, to);
        text_add(&line, ") refused: ");
        policy_describe_rule(&line, &decided->layers[layer], copies.line);
        text_add(&line, " says cross_device_copy = deny; copy to host memory, and from there");
        log_write(POLICY_LOG_WARN, &line);
    }
    return CUDA_ERROR_NOT_PERMITTED;
}

/* Bytes cross where any GPU of the one end is not one of the other's. */
static CUresult judge(const char *call, const struct where *from, const struct where *to)
{
    if (from->device == NO_DEVICE || to->device == NO_DEVICE)
        return CUDA_SUCCESS;
    if (from->device != to->device)
        return refuse(call, from->device, to->device);
    if (to->other != NO_DEVICE)
        return refuse(call, from->device, to->other);
    return from->other == NO_DEVICE ? CUDA_SUCCESS : refuse(call, from->other, to->device);
}

CUresult copy_check(const char *call, const struct copy_end *to, const struct copy_end *from)
{
    struct where ours = nowhere, theirs = nowhere;
    struct capture_pause pause;
    hook_pause_capture(&pause);
    CUresult rc = find(from, &theirs);
    if (rc == CUDA_SUCCESS && theirs.device != NO_DEVICE)
        rc = find(to, &ours);
    hook_resume_capture(&pause);
    return rc == CUDA_SUCCESS ? judge(call, &theirs, &ours) : rc;
}

CUresult copy_check_move(const char *call, uint64_t address, uint64_t bytes, int device)
{
    const struct where to = {device, NO_DEVICE};
    struct where home = nowhere;
    struct capture_pause pause;
    if (device < 0 || (view_count() > 0 && device >= view_count()))
        return CUDA_SUCCESS; /* to the host, or to a device that the driver will refuse */
    hook_pause_capture(&pause);
    CUresult rc = add_memory(&home, address, bytes, true);
    hook_resume_capture(&pause);
    return rc == CUDA_SUCCESS ? judge(call, &home, &to) : rc;
}
