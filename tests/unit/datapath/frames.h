/* SPDX-License-Identifier: Apache-2.0 */
/* Frames as bytes, and where they come from: what tests of the programs say with them. */
#pragma once

#include "sdn/model.h"

#define FRAME_MAX 192

struct frame {
    enum model_entry entry;
    uint32_t port, outer_src, tunnel_id;
    unsigned char bytes[FRAME_MAX];
    size_t size;
    /* What the tracker is to know. */
    enum model_connection connection;
    bool denied;
};

uint16_t get16(const struct frame *f, size_t at);
uint32_t get32(const struct frame *f, size_t at);
struct mac get_mac(const struct frame *f, size_t at);
void set16(struct frame *f, size_t at, uint32_t v);
void set32(struct frame *f, size_t at, uint32_t v);
/* At the end. */
void add(struct frame *f, const void *p, size_t n);
void add16(struct frame *f, uint16_t v);
void add32(struct frame *f, uint32_t v);

/* Of IPv4: where its ports are, and the checksum of TCP or UDP. */
size_t l4_of(const struct frame *f);
size_t checksum_of(const struct frame *f);
/* In one's complement, of what a translation changes and the checksum that covers it;
 * both orders of zero are one. */
uint32_t sum_of(const struct frame *f, bool header);
/* Of a part of even size; 0: its checksum is right. */
uint32_t ones_sum(const struct frame *f, size_t from, size_t to);

struct ends {
    uint32_t src, dst;
    uint16_t src_port, dst_port;
};
struct ends ends_of(const struct frame *f);
/* The checksums are those of 'as'. */
void set_ends(const struct frame *as, struct frame *f, uint32_t src, uint16_t src_port,
              uint32_t dst, uint16_t dst_port);

enum { ICMP_AT = 34, QUOTE_AT = ICMP_AT + 8 };
/* 'f' has its origin and link addresses; it becomes an error about a packet (RFC 792). */
void make_error(struct frame *f, const struct frame *about, uint32_t src, uint32_t dst);
