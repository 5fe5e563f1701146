/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <errno.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const void *p, size_t size, struct strbuf *out)
{
    const uint8_t *in = p;
    for (size_t i = 0; i < size; i += 3) {
        size_t n = MIN(size - i, 3);
        uint32_t v = (uint32_t) in[i] << 16 | (n > 1 ? (uint32_t) in[i + 1] << 8 : 0) |
                     (n > 2 ? in[i + 2] : 0);
        char group[4] = {digits[v >> 18], digits[v >> 12 & 63], n > 1 ? digits[v >> 6 & 63] : '=',
                         n > 2 ? digits[v & 63] : '='};
        strbuf_add(out, group, sizeof group);
    }
}

static int digit(char c)
{
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int) (at - digits) : -1;
}

int base64_decode(const char *text, size_t size, struct strbuf *out)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    uint32_t v = 0;
    unsigned n = 0, pads = 0;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c == '\n' || c == '\r' || c == ' ' || c == '\t') {
            continue;
        }
        int d = digit(c);
        bool fits = c == '=' ? n >= 2 : d >= 0 && !pads;
        if (!fits) {
            return -EINVAL;
        }
        pads += c == '=';
        v = v << 6 | (c == '=' ? 0 : (uint32_t) d);
        if (++n < 4) {
            continue;
        }
        /* Bits beyond the last byte must be zero: one text for one value. */
        if (v & ((1u << 8 * pads) - 1)) {
            return -EINVAL;
        }
        const char bytes[3] = {(char) (v >> 16), (char) (v >> 8), (char) v};
        strbuf_add(&b, bytes, 3 - pads);
        v = n = 0;
    }
    return n ? -EINVAL : strbuf_add(out, strbuf_cstr(&b), b.size);
}

static const char url_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64url_encode(const void *p, size_t size, struct strbuf *out)
{
    const uint8_t *in = p;
    for (size_t i = 0; i < size; i += 3) {
        size_t n = MIN(size - i, 3);
        uint32_t v = (uint32_t) in[i] << 16 | (n > 1 ? (uint32_t) in[i + 1] << 8 : 0) |
                     (n > 2 ? in[i + 2] : 0);
        char group[4] = {url_digits[v >> 18], url_digits[v >> 12 & 63], url_digits[v >> 6 & 63],
                         url_digits[v & 63]};
        strbuf_add(out, group, n + 1);
    }
}

int base64url_decode(const char *text, size_t size, struct strbuf *out)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    uint32_t v = 0;
    unsigned bits = 0;
    for (size_t i = 0; i < size; i++) {
        const char *at = text[i] ? strchr(url_digits, text[i]) : NULL;
        if (!at) {
            return -EINVAL;
        }
        v = v << 6 | (uint32_t) (at - url_digits);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            strbuf_addc(&b, (char) (v >> bits & 0xff));
        }
    }
    /* Six bits alone are no byte, and unused bits are zero: one text for one value. */
    return bits == 6 || (v & ((1u << bits) - 1)) ? -EINVAL
                                                 : strbuf_add(out, strbuf_cstr(&b), b.size);
}
