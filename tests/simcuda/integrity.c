/* integrity.c -- see integrity.h.
 *
 * The one file that knows the key and the constants, which ZLUDA has published. Part of the test
 * double: nothing of it may reach anything that is installed.
 */
#include "integrity.h"

#include "devices.h"
#include "md2.h"
#include "tables.h"
#include "version.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static const unsigned char key[MD2_BYTES] = {0x14, 0x6a, 0xdd, 0xae, 0x53, 0xa9, 0xa7, 0x52,
                                             0xaa, 0x08, 0x41, 0x36, 0x0b, 0xf5, 0x5a, 0x9f};

static void add_word(struct hmac_md2 *hmac, uint32_t word)
{
    hmac_md2_add(hmac, &word, sizeof word);
}

static void add_pointer(struct hmac_md2 *hmac, const void *pointer)
{
    hmac_md2_add(hmac, &pointer, sizeof pointer);
}

static void add_devices(struct hmac_md2 *hmac)
{
    for (int i = 0; i < device_count(); i++) {
        const struct gpu *gpu = device_card(device_of(i));
        hmac_md2_add(hmac, gpu->uuid, sizeof gpu->uuid);
        add_word(hmac, (uint32_t)gpu->pci_domain);
        add_word(hmac, (uint32_t)gpu->pci_bus);
        add_word(hmac, (uint32_t)gpu->pci_device);
    }
}

unsigned int integrity_check(uint32_t version, uint64_t unix_seconds, uint64_t answer[2])
{
    struct hmac_md2 hmac;
    unsigned char digest[MD2_BYTES];

    if (version % 10 < 2) {
        answer[0] = version % 10 == 0 ? 0x3341181c03cb675c : 0x1841181c03cb675c;
        answer[1] = 0x8ed383aa1f4cd1e8;
        return 0;
    }
    hmac_md2_start(&hmac, key);
    add_word(&hmac, (uint32_t)version_reported());
    add_word(&hmac, version);
    add_word(&hmac, (uint32_t)getpid());
    add_word(&hmac, (uint32_t)(uintptr_t)pthread_self());
    add_pointer(&hmac, tables_cudart_interface());
    add_pointer(&hmac, tables_integrity());
    add_pointer(&hmac, tables_integrity_slot());
    hmac_md2_add(&hmac, &unix_seconds, sizeof unix_seconds);
    add_devices(&hmac);
    hmac_md2_finish(&hmac, digest);
    memcpy(answer, digest, sizeof digest);
    return 0;
}
