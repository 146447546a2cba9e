/* md2.c -- see md2.h. */
#include "md2.h"

#include <string.h>

enum { ROUNDS = 18, INNER_PAD = 0x36, OUTER_PAD = 0x5c };

static const unsigned char pi[256] = {
    /* RFC 1319, section 3.2 */
    41,  46,  67,  201, 162, 216, 124, 1,   61,  54,  84,  161, 236, 240, 6,   19,  98,  167, 5,
    243, 192, 199, 115, 140, 152, 147, 43,  217, 188, 76,  130, 202, 30,  155, 87,  60,  253, 212,
    224, 22,  103, 66,  111, 24,  138, 23,  229, 18,  190, 78,  196, 214, 218, 158, 222, 73,  160,
    251, 245, 142, 187, 47,  238, 122, 169, 104, 121, 145, 21,  178, 7,   63,  148, 194, 16,  137,
    11,  34,  95,  33,  128, 127, 93,  154, 90,  144, 50,  39,  53,  62,  204, 231, 191, 247, 151,
    3,   255, 25,  48,  179, 72,  165, 181, 209, 215, 94,  146, 42,  172, 86,  170, 198, 79,  184,
    56,  210, 150, 164, 125, 182, 118, 252, 107, 226, 156, 116, 4,   241, 69,  157, 112, 89,  100,
    113, 135, 32,  134, 91,  207, 101, 230, 45,  168, 2,   27,  96,  37,  173, 174, 176, 185, 246,
    28,  70,  97,  105, 52,  64,  126, 15,  85,  71,  163, 35,  221, 81,  175, 58,  195, 92,  249,
    206, 186, 197, 234, 38,  44,  83,  13,  110, 133, 40,  132, 9,   211, 223, 205, 244, 65,  129,
    77,  82,  106, 220, 55,  200, 108, 193, 171, 250, 36,  225, 123, 8,   12,  189, 177, 74,  120,
    136, 149, 139, 227, 99,  232, 109, 233, 203, 213, 254, 59,  0,   29,  57,  242, 239, 183, 14,
    102, 88,  208, 228, 166, 119, 114, 248, 235, 117, 75,  10,  49,  68,  80,  180, 143, 237, 31,
    26,  219, 153, 141, 51,  159, 17,  131, 20,
};

static void take_block(struct md2 *md2)
{
    unsigned char last = md2->checksum[MD2_BYTES - 1];

    for (size_t i = 0; i < MD2_BYTES; i++) {
        last = md2->checksum[i] = (unsigned char)(md2->checksum[i] ^ pi[md2->block[i] ^ last]);
        md2->state[MD2_BYTES + i] = md2->block[i];
        md2->state[2 * MD2_BYTES + i] = (unsigned char)(md2->block[i] ^ md2->state[i]);
    }
    unsigned char t = 0;
    for (unsigned int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < sizeof md2->state; i++)
            t = md2->state[i] = (unsigned char)(md2->state[i] ^ pi[t]);
        t = (unsigned char)(t + round);
    }
    md2->filled = 0;
}

void md2_start(struct md2 *md2) { memset(md2, 0, sizeof *md2); }

void md2_add(struct md2 *md2, const void *data, size_t bytes)
{
    const unsigned char *from = data;

    for (size_t i = 0; i < bytes; i++) {
        md2->block[md2->filled++] = from[i];
        if (md2->filled == MD2_BYTES)
            take_block(md2);
    }
}

void md2_finish(struct md2 *md2, unsigned char digest[MD2_BYTES])
{
    unsigned char pad = (unsigned char)(MD2_BYTES - md2->filled), checksum[MD2_BYTES];

    for (unsigned char i = 0; i < pad; i++)
        md2_add(md2, &pad, 1);
    memcpy(checksum, md2->checksum, sizeof checksum);
    md2_add(md2, checksum, sizeof checksum);
    memcpy(digest, md2->state, MD2_BYTES);
}

static void add_padded_key(struct md2 *md2, const unsigned char key[MD2_BYTES], unsigned char pad)
{
    for (size_t i = 0; i < MD2_BYTES; i++) {
        unsigned char byte = key[i] ^ pad;
        md2_add(md2, &byte, 1);
    }
}

void hmac_md2_start(struct hmac_md2 *hmac, const unsigned char key[MD2_BYTES])
{
    memcpy(hmac->key, key, MD2_BYTES);
    md2_start(&hmac->inner);
    add_padded_key(&hmac->inner, key, INNER_PAD);
}

void hmac_md2_add(struct hmac_md2 *hmac, const void *data, size_t bytes)
{
    md2_add(&hmac->inner, data, bytes);
}

void hmac_md2_finish(struct hmac_md2 *hmac, unsigned char digest[MD2_BYTES])
{
    unsigned char inner[MD2_BYTES];
    struct md2 outer;

    md2_finish(&hmac->inner, inner);
    md2_start(&outer);
    add_padded_key(&outer, hmac->key, OUTER_PAD);
    md2_add(&outer, inner, sizeof inner);
    md2_finish(&outer, digest);
}
