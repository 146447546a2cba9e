/* visible_fuzz.c -- any bytes as CUDA_VISIBLE_DEVICES, against a grant. The first byte says how
 * many GPUs are granted and whether integers are the machine's. */
#include "demand.h"
#include "visible.h"

#include <string.h>

enum { GPUS = 4, VALUE_BYTES = 4096 };

/* GPU 3 is granted as its one MIG device. */
static const struct policy_gpu gpus[GPUS + 1] = {
    {.uuid = "GPU-aa000000-0000-0000-0000-000000000000"},
    {.uuid = "GPU-ab000000-0000-0000-0000-000000000001"},
    {.uuid = "GPU-cc000000-0000-0000-0000-000000000002"},
    {.uuid = "GPU-dd000000-0000-0000-0000-000000000003"},
    {.uuid = "MIG-ee000000-0000-0000-0000-000000000004",
     .is_mig = true,
     .parent = 3,
     .older = "MIG-GPU-dd000000-0000-0000-0000-000000000003/7/0"},
};
static const struct policy_grant grants[GPUS] = {{.gpu = 4}, {.gpu = 1}, {.gpu = 0}, {.gpu = 2}};

/* The UUIDs of what was chosen choose the same again, up to the first of another form. */
static void check_again(const uint8_t *chosen, size_t count, size_t granted)
{
    static char value[GPUS * sizeof gpus[0].uuid];
    uint8_t again[POLICY_GPUS_MAX];
    size_t length = 0, same = 0;
    for (size_t i = 0; i < count; i++) {
        const struct policy_gpu *gpu = &gpus[grants[chosen[i]].gpu];
        length += (size_t)snprintf(value + length, sizeof value - length, "%s%s", i ? "," : "",
                                   gpu->uuid);
        if (same == i && gpu->is_mig == gpus[grants[chosen[0]].gpu].is_mig)
            same++;
    }
    value[length] = '\0';
    demand(visible_choose(value, false, gpus, grants, granted, again) == same);
    demand(memcmp(again, chosen, same) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static char value[VALUE_BYTES + 1];
    uint8_t chosen[POLICY_GPUS_MAX];
    if (length == 0 || length > VALUE_BYTES)
        return 0;
    const size_t granted = bytes[0] % (GPUS + 1);
    memcpy(value, bytes + 1, length - 1);
    value[length - 1] = '\0';
    size_t count =
        visible_choose(length == 1 ? NULL : value, bytes[0] & 0x10, gpus, grants, granted, chosen);
    demand(count <= granted);
    for (size_t i = 0; i < count; i++) {
        demand(chosen[i] < granted);
        for (size_t k = 0; k < i; k++)
            demand(chosen[k] != chosen[i]);
    }
    check_again(chosen, count, granted);
    return 0;
}
