/* md2.h -- the message digest MD2 (RFC 1319) and HMAC over it (RFC 2104). Knows nothing else. */
#ifndef GPUSHIM_TESTS_SIMCUDA_MD2_H
#define GPUSHIM_TESTS_SIMCUDA_MD2_H

#include <stddef.h>

enum { MD2_BYTES = 16 };

struct md2 {
    unsigned char state[48], checksum[MD2_BYTES], block[MD2_BYTES];
    size_t filled;
};

void md2_start(struct md2 *md2);
void md2_add(struct md2 *md2, const void *data, size_t bytes);
void md2_finish(struct md2 *md2, unsigned char digest[MD2_BYTES]);

struct hmac_md2 {
    struct md2 inner;
    unsigned char key[MD2_BYTES];
};

/* Keys are 16 bytes: a block. */
void hmac_md2_start(struct hmac_md2 *hmac, const unsigned char key[MD2_BYTES]);
void hmac_md2_add(struct hmac_md2 *hmac, const void *data, size_t bytes);
void hmac_md2_finish(struct hmac_md2 *hmac, unsigned char digest[MD2_BYTES]);

#endif
