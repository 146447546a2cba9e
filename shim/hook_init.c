/* hook_init.c -- getting in: cuInit, cuGetProcAddress, and the ordinals that people type.
 *
 * Knows: how the resolver's answers are replaced, by address and never by name. Must not know: what
 * the hooks it hands out do.
 */
#include "driver.h"
#include "hook.h"
#include "log.h"
#include "posture.h"
#include "route.h"
#include "view.h"

CUresult cuInit(unsigned int flags)
{
    HOOK_ENTER(cuInit, (flags));
    return view_init(flags);
}

/* A newer variant of a function that we hook has another signature: it must not pass unguarded, and
 * an older variant must not stand in for it. */
static bool is_unknown_variant(const char *base)
{
    struct hook_info info;
    struct text_line line;
    int row = base ? hook_find(base) : -1; /* a base is the exported name of its first variant */
    if (row < 0)
        return false;
    hook_describe(row, &info);
    if (info.library != HOOK_OF_DRIVER || !posture_needs(info.when))
        return false;
    if (hook_start_refusal(&line, "variant", info.symbol, NO_DEVICE, NO_DEVICE)) {
        text_add(
            &line,
            ": this driver offers a variant that this gpushim does not know; withheld, so that "
            "the policy holds; a newer gpushim may know it");
        log_write(POLICY_LOG_WARN, &line);
    }
    return true;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
    HOOK_ENTER(cuGetProcAddress, (symbol, pfn, version, flags));
    void *before = pfn ? *pfn : NULL;
    CUresult rc = real.cuGetProcAddress(symbol, pfn, version, flags);
    if (rc != CUDA_SUCCESS || !pfn || !*pfn)
        return rc;
    if (driver_row_at(*pfn) < 0 && is_unknown_variant(symbol)) {
        *pfn = before;
        return CUDA_ERROR_NOT_FOUND;
    }
    *pfn = route_replaced(*pfn);
    return rc;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    HOOK_ENTER(cuGetProcAddress_v2, (symbol, pfn, version, flags, status));
    CUresult rc = real.cuGetProcAddress_v2(symbol, pfn, version, flags, status);
    if (rc != CUDA_SUCCESS || !pfn || !*pfn)
        return rc;
    if (driver_row_at(*pfn) < 0 && is_unknown_variant(symbol)) {
        *pfn = NULL;
        if (status)
            *status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        return rc;
    }
    *pfn = route_replaced(*pfn);
    return rc;
}

void hook_explain_ordinal(const char *call, int ordinal)
{
    struct text_line line;
    if (!posture_needs(WHEN_VIEW) || view_count() == 0 ||
        (ordinal >= 0 && ordinal < view_count()) ||
        !hook_start_refusal(&line, "devices", call, ordinal, NO_DEVICE))
        return;
    text_add(&line, "(");
    text_add_signed(&line, ordinal);
    text_add(&line, "): invalid device ordinal: ");
    view_add_mapping(&line);
    text_add(&line, " (");
    view_add_rule(&line);
    text_add(&line, "); use ");
    text_add(&line, view_count() == 1 ? "0" : "0 to ");
    if (view_count() > 1)
        text_add_number(&line, (uint64_t)view_count() - 1);
    log_write(POLICY_LOG_WARN, &line);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    HOOK_ENTER(cuDeviceGet, (device, ordinal));
    CUresult rc = real.cuDeviceGet(device, ordinal);
    if (rc == CUDA_ERROR_INVALID_DEVICE)
        hook_explain_ordinal("cuDeviceGet", ordinal);
    return rc;
}
