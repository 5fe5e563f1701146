/* SPDX-License-Identifier: Apache-2.0 */
/* The part of BER (X.690) that LDAP uses (RFC 4511, 5.1).  Internal to src/wire/ldap*.c. */
#pragma once

#include "base/str.h"

#include <stdint.h>

enum {
    BER_BOOL = 0x01,
    BER_INT = 0x02,
    BER_OCTETS = 0x04,
    BER_ENUM = 0x0a,
    BER_SEQUENCE = 0x30,
    BER_SET = 0x31,
};

/* Begins an element of the tag; its length is written by ber_end, which gets the returned
 * position. */
size_t ber_begin(struct strbuf *out, uint8_t tag);
void ber_end(struct strbuf *out, size_t at);
void ber_octets(struct strbuf *out, uint8_t tag, const void *p, size_t size);
void ber_int(struct strbuf *out, uint8_t tag, uint32_t value);
void ber_bool(struct strbuf *out, uint8_t tag, bool value);

/* The rest of an element that is still to be read. */
struct ber {
    const uint8_t *p, *end;
};
/* The header at 'p': its size, and that of the contents.  0: incomplete; -EINVAL: a tag of several
 * bytes, an indefinite length, or one of more than four bytes. */
int ber_header(const uint8_t *p, size_t size, uint64_t *ret_contents);
static inline bool ber_is(const struct ber *b, uint8_t tag)
{
    return b->p < b->end && *b->p == tag;
}
static inline bool ber_at_end(const struct ber *b)
{
    return b->p == b->end;
}
/* The next element, which must have the tag.  -EINVAL. */
int ber_get(struct ber *b, uint8_t tag, struct ber *ret);
/* The next element, of any tag. */
int ber_skip(struct ber *b);
/* The next element as a number of 0 to INT32_MAX. */
int ber_get_int(struct ber *b, uint8_t tag, uint32_t *ret);
