/* SPDX-License-Identifier: Apache-2.0 */
#include "wire_frames.h"

#include <string.h>

enum { IP = 14, UDP = 34, VXLAN = 42, INNER = 50, FIRST_PORT = 32768, LAST_PORT = 60999 };

static void put16(unsigned char *p, uint32_t v)
{
    p[0] = (unsigned char) (v >> 8);
    p[1] = (unsigned char) v;
}

static void put32(unsigned char *p, uint32_t v)
{
    put16(p, v >> 16);
    put16(p + 2, v & 0xffff);
}

static uint32_t get16(const unsigned char *p)
{
    return (uint32_t) p[0] << 8 | p[1];
}

static void sum_header(unsigned char *frame)
{
    uint32_t sum = 0;
    put16(frame + IP + 10, 0);
    for (size_t i = 0; i < 20; i += 2) {
        sum += get16(frame + IP + i);
    }
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    put16(frame + IP + 10, ~sum & 0xffff);
}

size_t wire_put(const struct wire_ends *w, uint8_t tos, const unsigned char *frame, size_t size,
                unsigned char *out)
{
    memset(out, 0, INNER);
    out[7] = 2; /* To the address of the device that test runs pretend, all zero; from another. */
    put16(out + 12, 0x0800);
    out[IP] = 0x45;
    out[IP + 1] = tos;
    put16(out + IP + 2, (uint32_t) (20 + 8 + 8 + size));
    put16(out + IP + 6, 0x4000);
    out[IP + 8] = 64;
    out[IP + 9] = 17;
    put32(out + IP + 12, w->src);
    put32(out + IP + 16, w->dst);
    sum_header(out);
    put16(out + UDP, FIRST_PORT);
    put16(out + UDP + 2, w->port);
    put16(out + UDP + 4, (uint32_t) (8 + 8 + size));
    out[VXLAN] = 8;
    put32(out + VXLAN + 4, w->vnid << 8);
    memcpy(out + INNER, frame, size);
    return INNER + size;
}

const char *wire_check(const struct wire_ends *w, const unsigned char *inner, size_t size,
                       const unsigned char *frame, size_t frame_size)
{
    unsigned char want[512];
    unsigned ecn = inner[WIRE_ETH + 1] & 3;
    if (frame_size != size + WIRE_OUTER || size > sizeof want - WIRE_OUTER) {
        return "the size";
    }
    wire_put(w, (uint8_t) (ecn == 3 ? 2 : ecn), inner, size, want);
    uint32_t port = get16(frame + UDP);
    if (port < FIRST_PORT || port > LAST_PORT) {
        return "the source port";
    }
    put16(want + UDP, port);
    memcpy(want + IP + 4, frame + IP + 4, 2);
    sum_header(want);
    return memcmp(want + 12, frame + 12, frame_size - 12) == 0 ? NULL : "a byte";
}

/* The header's checksum is right again where that is not the doubt. */
void wire_spoil(unsigned doubt, unsigned char *frame)
{
    static const struct {
        uint8_t at, bits;
    } doubts[WIRE_DOUBTS] = {
        {0, 2},      /* To another Ethernet address. */
        {13, 6},     /* ARP, it says. */
        {IP, 3},     /* Options. */
        {IP, 0x20},  /* Version 6. */
        {IP + 1, 3}, /* Congestion, or not: which must be told to the inner header, or dropped. */
        {IP + 3, 1}, /* Cut short, or with something behind. */
        {IP + 6, 0x20},  /* More fragments. */
        {IP + 7, 1},     /* A later one. */
        {IP + 9, 1},     /* Not UDP. */
        {IP + 19, 0x80}, /* To another address. */
        {UDP + 3, 1},    /* Another port. */
        {UDP + 5, 1},    /* Another size. */
        {UDP + 7, 1},    /* A checksum. */
        {VXLAN, 0x40},   /* Another flag. */
        {VXLAN + 7, 1},  /* What is reserved. */
        {IP + 10, 0x10}, /* The header's checksum. */
    };
    frame[doubts[doubt].at] ^= doubts[doubt].bits;
    if (doubts[doubt].at == IP + 1) {
        frame[IP + 1] |= 3;
        frame[INNER + WIRE_ETH + 1] &= 0xfc;
    }
    if (doubts[doubt].at != IP + 10) {
        sum_header(frame);
    }
}
