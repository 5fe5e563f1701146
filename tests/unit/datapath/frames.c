/* SPDX-License-Identifier: Apache-2.0 */
#include "frames.h"

#include <arpa/inet.h>
#include <string.h>

uint16_t get16(const struct frame *f, size_t at)
{
    uint16_t v;
    memcpy(&v, f->bytes + at, sizeof v);
    return ntohs(v);
}

void add(struct frame *f, const void *p, size_t n)
{
    memcpy(f->bytes + f->size, p, n);
    f->size += n;
}

void add16(struct frame *f, uint16_t v)
{
    v = htons(v);
    add(f, &v, sizeof v);
}

void add32(struct frame *f, uint32_t v)
{
    v = htonl(v);
    add(f, &v, sizeof v);
}

void set16(struct frame *f, size_t at, uint32_t v)
{
    f->bytes[at] = (unsigned char) (v >> 8);
    f->bytes[at + 1] = (unsigned char) v;
}

void set32(struct frame *f, size_t at, uint32_t v)
{
    set16(f, at, v >> 16);
    set16(f, at + 2, v);
}

uint32_t get32(const struct frame *f, size_t at)
{
    uint32_t v;
    memcpy(&v, f->bytes + at, sizeof v);
    return ntohl(v);
}

struct mac get_mac(const struct frame *f, size_t at)
{
    struct mac m;
    memcpy(m.b, f->bytes + at, sizeof m.b);
    return m;
}

size_t l4_of(const struct frame *f)
{
    return 14 + 4 * (size_t) (f->bytes[14] & 15);
}

size_t checksum_of(const struct frame *f)
{
    return l4_of(f) + (f->bytes[23] == 6 ? 16 : 6);
}

uint32_t sum_of(const struct frame *f, bool header)
{
    uint64_t sum = 0;
    for (size_t at = 26; at < 34; at += 2) {
        sum += get16(f, at);
    }
    if (header) {
        return (uint32_t) ((sum + get16(f, 24)) % 0xffff);
    }
    return (
        uint32_t) ((sum + get16(f, l4_of(f)) + get16(f, l4_of(f) + 2) + get16(f, checksum_of(f))) %
                   0xffff);
}

void set_ends(const struct frame *as, struct frame *f, uint32_t src, uint16_t src_port,
              uint32_t dst, uint16_t dst_port)
{
    set32(f, 26, src);
    set32(f, 30, dst);
    set16(f, l4_of(f), src_port);
    set16(f, l4_of(f) + 2, dst_port);
    /* Checked by themselves (check_sums). */
    set16(f, 24, get16(as, 24));
    set16(f, checksum_of(f), get16(as, checksum_of(f)));
}

uint32_t ones_sum(const struct frame *f, size_t from, size_t to)
{
    uint32_t sum = 0;
    for (size_t at = from; at < to; at += 2) {
        sum += get16(f, at);
    }
    return sum % 0xffff;
}

struct ends ends_of(const struct frame *f)
{
    return (struct ends){get32(f, 26), get32(f, 30), get16(f, l4_of(f)), get16(f, l4_of(f) + 2)};
}

void make_error(struct frame *f, const struct frame *about, uint32_t src, uint32_t dst)
{
    size_t quoted = l4_of(about) - 14 + 8;
    memcpy(f->bytes + QUOTE_AT, about->bytes + 14, quoted);
    f->size = QUOTE_AT + quoted;
    memset(f->bytes + 14, 0, QUOTE_AT - 14);
    set16(f, 14, 0x4500);
    set16(f, 16, (uint32_t) (f->size - 14));
    f->bytes[22] = 64;
    f->bytes[23] = 1;
    set32(f, 26, src);
    set32(f, 30, dst);
    set16(f, ICMP_AT, 0x0303);
    set16(f, 24, 0xffff - ones_sum(f, 14, ICMP_AT));
    set16(f, ICMP_AT + 2, 0xffff - ones_sum(f, ICMP_AT, f->size));
}
