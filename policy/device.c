/* device.c -- see device.h. */
#include "device.h"
#include "slice.h"

#include <string.h>

enum { INDEX_MAX = POLICY_GPUS_MAX - 1, UUID_LENGTH = 36, PCI_DEVICE_MAX = 0x1F };

static bool expected(struct text_line *why, struct policy_slice entry, const char *what)
{
    policy_slice_show(why, entry);
    text_add(why, ": ");
    text_add(why, what);
    return false;
}

/* Takes up to `most` hexadecimal digits from the start. Returns how many. */
static size_t take_hex(struct policy_slice *text, size_t most, uint32_t *number)
{
    size_t count = 0;
    *number = 0;
    while (count < most && count < text->length && policy_hex_value(text->start[count]) >= 0)
        *number = *number << 4 | (uint32_t)policy_hex_value(text->start[count++]);
    *text = policy_slice_after(*text, count);
    return count;
}

static bool take_character(struct policy_slice *text, char c)
{
    if (text->length == 0 || text->start[0] != c)
        return false;
    *text = policy_slice_after(*text, 1);
    return true;
}

/* "[DOMAIN:]BUS:DEVICE.0" */
static bool parse_pci(struct policy_slice text, struct policy_device *device)
{
    struct policy_slice rest = text;
    uint32_t function;
    size_t colon = policy_slice_find(text, ':');
    device->kind = POLICY_DEVICE_PCI;
    device->pci_domain = 0;
    if (policy_slice_find(policy_slice_after(text, colon + 1), ':') < text.length - colon - 1) {
        if (take_hex(&rest, 8, &device->pci_domain) == 0 || !take_character(&rest, ':'))
            return false;
    }
    return take_hex(&rest, 2, &device->pci_bus) == 2 && take_character(&rest, ':') &&
           take_hex(&rest, 2, &device->pci_device) == 2 && device->pci_device <= PCI_DEVICE_MAX &&
           take_character(&rest, '.') && take_hex(&rest, 1, &function) == 1 && function == 0 &&
           rest.length == 0;
}

/* The beginning of 8-4-4-4-12, at least one digit; takes as much as there is. */
static bool take_uuid(struct policy_slice *text, bool *whole)
{
    size_t i = 0;
    for (; i < text->length && i < UUID_LENGTH; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text->start[i] != '-' : policy_hex_value(text->start[i]) < 0)
            break;
    }
    *text = policy_slice_after(*text, i);
    *whole = i == UUID_LENGTH;
    return i > 0;
}

/* "MIG-UUID", or as older drivers have it "MIG-GPU-UUID/GI/CI". */
static bool is_mig(struct policy_slice text)
{
    uint64_t number;
    bool whole;
    bool older = policy_slice_begins_caseless(text, "gpu-");
    if (older)
        text = policy_slice_after(text, 4);
    if (!take_uuid(&text, &whole))
        return false;
    for (int i = 0; i < 2 && older && whole && take_character(&text, '/'); i++)
        text = policy_slice_after(text, policy_slice_digits(text, UINT16_MAX, &number));
    return text.length == 0;
}

static bool parse_uuid(struct policy_slice text, struct policy_device *device)
{
    bool whole;
    device->kind = POLICY_DEVICE_UUID;
    device->uuid = text;
    bool mig = policy_slice_begins_caseless(text, "mig-");
    text = policy_slice_after(text, 4);
    return mig ? is_mig(text) : take_uuid(&text, &whole) && text.length == 0;
}

static bool parse_range(struct policy_slice text, struct policy_slice entry,
                        struct policy_device *device, struct text_line *why)
{
    uint64_t first, last;
    size_t dash = policy_slice_find(text, '-');
    struct policy_slice from = policy_slice_trim(policy_slice_before(text, dash)), to = from;
    if (dash < text.length)
        to = policy_slice_trim(policy_slice_after(text, dash + 1));
    if (!policy_slice_number(from, UINT64_MAX, &first) ||
        !policy_slice_number(to, UINT64_MAX, &last))
        return expected(
            why, entry,
            "expected an nvidia-smi index (3), a range (0-3), a UUID (GPU-... or MIG-...) "
            "or a PCI id (0000:41:00.0)");
    if (first > INDEX_MAX || last > INDEX_MAX)
        return expected(why, entry, "GPUs are numbered from 0 to 63");
    if (first > last) {
        (void)expected(why, entry, "a range runs upwards: write ");
        text_add_number(why, last);
        text_add(why, "-");
        text_add_number(why, first);
        text_add(why, ", or list the GPUs one by one in the order wanted");
        return false;
    }
    device->kind = POLICY_DEVICE_RANGE;
    device->first = (uint8_t)first;
    device->last = (uint8_t)last;
    return true;
}

bool policy_parse_device(struct policy_slice entry, struct policy_device *device,
                         struct text_line *why)
{
    struct policy_slice text = entry;
    *device = (struct policy_device){0};
    if (entry.length == 0) {
        text_add(why, "an empty item; expected a GPU between the commas");
        return false;
    }
    if (text.start[text.length - 1] == '?') {
        device->optional = true;
        text = policy_slice_trim(policy_slice_before(text, text.length - 1));
    }
    if (policy_slice_is(text, "all") || policy_slice_is(text, "none"))
        return expected(why, text, "stands alone, not in a list");
    if (policy_slice_begins_caseless(text, "gpu-") || policy_slice_begins_caseless(text, "mig-"))
        return parse_uuid(text, device) ||
               expected(why, entry,
                        "expected a UUID as nvidia-smi -L shows it, or the beginning of one");
    if (policy_slice_find(text, ':') < text.length)
        return parse_pci(text, device) ||
               expected(why, entry, "expected a PCI id such as 0000:41:00.0 or 41:00.0");
    return parse_range(text, entry, device, why);
}

void policy_check_devices(struct policy_slice list, struct policy_place place,
                          struct policy_errors *errors)
{
    struct policy_slice rest = list, entry;
    struct policy_device device;
    struct text_line why;
    while (policy_next_item(&rest, &entry)) {
        text_start(&why);
        if (!policy_parse_device(entry, &device, &why))
            *policy_add_error(errors, policy_place_of(place, list, entry)) = why;
    }
}

static bool is_name(struct policy_slice entry, const char *name, size_t length, bool *exactly)
{
    *exactly = entry.length == length;
    if (entry.length > length)
        return false;
    for (size_t i = 0; i < entry.length; i++) {
        if (policy_lower(entry.start[i]) != policy_lower(name[i]))
            return false;
    }
    return true;
}

bool policy_device_is(const struct policy_device *device, const struct policy_gpu *gpu,
                      bool *exactly)
{
    *exactly = false;
    if (device->kind == POLICY_DEVICE_UUID)
        return is_name(device->uuid, gpu->uuid, strnlen(gpu->uuid, sizeof gpu->uuid), exactly) ||
               is_name(device->uuid, gpu->older, strnlen(gpu->older, sizeof gpu->older), exactly);
    return !gpu->is_mig && device->pci_domain == gpu->pci_domain &&
           device->pci_bus == gpu->pci_bus && device->pci_device == gpu->pci_device;
}
