/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/ldap_ber.h"

#include <errno.h>
#include <string.h>

#define LONG_FORM 0x80
#define LENGTH_BYTES 4

size_t ber_begin(struct strbuf *out, uint8_t tag)
{
    strbuf_addc(out, (char) tag);
    strbuf_addc(out, 0); /* Room for a length in the short form. */
    return out->size;
}

void ber_end(struct strbuf *out, size_t at)
{
    if (out->failed) {
        return;
    }
    size_t size = out->size - at;
    if (size < LONG_FORM) {
        out->data[at - 1] = (char) size;
        return;
    }
    size_t n = size > 0xffffff ? 4 : size > 0xffff ? 3 : size > 0xff ? 2 : 1;
    static const char zeros[LENGTH_BYTES];
    if (strbuf_add(out, zeros, n) < 0) {
        return;
    }
    char *p = out->data + at;
    memmove(p + n, p, size);
    p[-1] = (char) (LONG_FORM | n);
    for (size_t i = 0; i < n; i++) {
        p[i] = (char) (size >> 8 * (n - 1 - i));
    }
}

void ber_octets(struct strbuf *out, uint8_t tag, const void *p, size_t size)
{
    size_t at = ber_begin(out, tag);
    strbuf_add(out, p, size);
    ber_end(out, at);
}

void ber_int(struct strbuf *out, uint8_t tag, uint32_t value)
{
    size_t at = ber_begin(out, tag);
    size_t n = 1;
    while (n < 5 && (uint64_t) value >> (8 * n - 1)) { /* The first bit is the sign. */
        n++;
    }
    while (n--) {
        strbuf_addc(out, (char) ((uint64_t) value >> 8 * n));
    }
    ber_end(out, at);
}

void ber_bool(struct strbuf *out, uint8_t tag, bool value)
{
    char c = value ? '\xff' : 0;
    ber_octets(out, tag, &c, 1);
}

int ber_header(const uint8_t *p, size_t size, uint64_t *ret_contents)
{
    if (size >= 1 && (p[0] & 0x1f) == 0x1f) {
        return -EINVAL;
    }
    if (size < 2) {
        return 0;
    }
    if (!(p[1] & LONG_FORM)) {
        *ret_contents = p[1];
        return 2;
    }
    size_t n = p[1] & ~(unsigned) LONG_FORM;
    if (n == 0 || n > LENGTH_BYTES) {
        return -EINVAL;
    }
    if (size < 2 + n) {
        return 0;
    }
    uint64_t contents = 0;
    for (size_t i = 0; i < n; i++) {
        contents = contents << 8 | p[2 + i];
    }
    *ret_contents = contents;
    return (int) (2 + n);
}

static int next(struct ber *b, struct ber *ret)
{
    uint64_t contents = 0;
    size_t size = (size_t) (b->end - b->p);
    int n = ber_header(b->p, size, &contents);
    if (n <= 0 || contents > size - (size_t) n) {
        return -EINVAL;
    }
    *ret = (struct ber){.p = b->p + n, .end = b->p + n + contents};
    b->p = ret->end;
    return 0;
}

int ber_get(struct ber *b, uint8_t tag, struct ber *ret)
{
    return ber_is(b, tag) ? next(b, ret) : -EINVAL;
}

int ber_skip(struct ber *b)
{
    struct ber ignored;
    return next(b, &ignored);
}

int ber_get_int(struct ber *b, uint8_t tag, uint32_t *ret)
{
    struct ber v;
    int r = ber_get(b, tag, &v);
    size_t n = r == 0 ? (size_t) (v.end - v.p) : 0;
    if (n < 1 || n > 4 || (v.p[0] & 0x80)) {
        return -EINVAL; /* Also negative numbers. */
    }
    uint32_t value = 0;
    while (v.p < v.end) {
        value = value << 8 | *v.p++;
    }
    *ret = value;
    return 0;
}
