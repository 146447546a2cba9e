/* digest.c -- MD2 by the vectors of RFC 1319, appendix A.5, and HMAC by its definition in RFC 2104.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "md2.h"

#include <stdio.h>
#include <string.h>

static void hex(const unsigned char digest[MD2_BYTES], char text[2 * MD2_BYTES + 1])
{
    for (size_t i = 0; i < MD2_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

static void test_md2(void **state)
{
    static const struct {
        const char *message, *digest;
    } vectors[] = {
        {"", "8350e5a3e24c153df2275c9f80692773"},
        {"a", "32ec01ec4a6dac72c0ab96fb34c0b5d1"},
        {"abc", "da853b0d3f88d99b30283a69e6ded6bb"},
        {"message digest", "ab4f496bfb2a530b219ff33031fe06b0"},
        {"abcdefghijklmnopqrstuvwxyz", "4e8ddff3650292ab5a4108c3aa47940b"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
         "da33def2a42df13975352846c30338cd"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "d5976f79d83d3a0dc9806c3c66f3efd8"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        struct md2 md2;
        unsigned char digest[MD2_BYTES];
        char text[2 * MD2_BYTES + 1];
        md2_start(&md2);
        for (const char *at = vectors[i].message; *at; at++) /* in pieces */
            md2_add(&md2, at, 1);
        md2_finish(&md2, digest);
        hex(digest, text);
        assert_string_equal(text, vectors[i].digest);
    }
}

static void test_hmac(void **state)
{
    static const unsigned char key[MD2_BYTES] = "sixteen byte key";
    static const char message[] = "what is signed";
    unsigned char inner[MD2_BYTES], outer[MD2_BYTES], digest[MD2_BYTES], pad[MD2_BYTES];
    struct md2 md2;
    struct hmac_md2 hmac;

    (void)state;
    md2_start(&md2);
    for (size_t i = 0; i < MD2_BYTES; i++)
        pad[i] = key[i] ^ 0x36;
    md2_add(&md2, pad, sizeof pad);
    md2_add(&md2, message, sizeof message);
    md2_finish(&md2, inner);
    md2_start(&md2);
    for (size_t i = 0; i < MD2_BYTES; i++)
        pad[i] = key[i] ^ 0x5c;
    md2_add(&md2, pad, sizeof pad);
    md2_add(&md2, inner, sizeof inner);
    md2_finish(&md2, outer);

    hmac_md2_start(&hmac, key);
    hmac_md2_add(&hmac, message, 5);
    hmac_md2_add(&hmac, message + 5, sizeof message - 5);
    hmac_md2_finish(&hmac, digest);
    assert_memory_equal(digest, outer, MD2_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_md2), cmocka_unit_test(test_hmac)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
