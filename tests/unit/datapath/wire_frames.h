/* SPDX-License-Identifier: Apache-2.0 */
/* The outer header of tunnel packets (RFC 7348) as bytes, for the tests of the eBPF programs:
 * another writer and another reader of it than theirs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WIRE_ETH = 14,
    WIRE_OUTER = 50, /* What a frame grows by. */
};
struct wire_ends {
    uint32_t src, dst; /* VTEPs, host byte order. */
    uint16_t port;
    uint32_t vnid;
};

/* 'frame' (IPv4) as it travels; 'tos' of the outer header.  Returns the size of 'out'. */
size_t wire_put(const struct wire_ends *w, uint8_t tos, const unsigned char *frame, size_t size,
                unsigned char *out);
/* Whether 'frame' is what wire_put makes of 'inner', whatever the source port, the outer Ethernet
 * addresses and the identification; NULL, or what is wrong. */
const char *wire_check(const struct wire_ends *w, const unsigned char *inner, size_t size,
                       const unsigned char *frame, size_t frame_size);
/* Makes it one that only the VXLAN device can judge, in one of so many ways. */
enum { WIRE_DOUBTS = 16 };
void wire_spoil(unsigned doubt, unsigned char *frame);
