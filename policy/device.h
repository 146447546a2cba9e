/* device.h -- one entry of a list of devices: what it says, and whether a GPU is meant.
 *
 * Knows: how GPUs are named. Must not know: which GPUs there are, or how texts compose.
 */
#ifndef GPUSHIM_POLICY_DEVICE_H
#define GPUSHIM_POLICY_DEVICE_H

#include "errors.h"

enum policy_device_kind { POLICY_DEVICE_RANGE, POLICY_DEVICE_UUID, POLICY_DEVICE_PCI };

struct policy_device {
    enum policy_device_kind kind;
    bool optional;            /* a '?' stood behind it */
    uint8_t first, last;      /* RANGE: an index is a range of one */
    struct policy_slice uuid; /* UUID, or the beginning of one */
    uint32_t pci_domain, pci_bus, pci_device;
};

/* Reads one entry, trimmed. On failure returns false and appends to `why` what was expected. */
bool policy_parse_device(struct policy_slice entry, struct policy_device *device,
                         struct text_line *why);

/* Reports everything that is wrong with a list that is not `all` or `none`. */
void policy_check_devices(struct policy_slice list, struct policy_place place,
                          struct policy_errors *errors);

/* Does a UUID or PCI entry mean this GPU? `*exactly`: the UUID is given in full. */
bool policy_device_is(const struct policy_device *device, const struct policy_gpu *gpu,
                      bool *exactly);

#endif
