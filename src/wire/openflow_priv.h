/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the openflow_*.c files: big-endian access, sizes and numbers of the formats. */
#pragma once

#include "wire/openflow.h"

#include <string.h>

/* Unaligned big-endian access. */
static inline void be16_put(uint8_t *p, uint16_t v)
{
    v = __builtin_bswap16(v);
    memcpy(p, &v, sizeof v);
}
static inline void be32_put(uint8_t *p, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(p, &v, sizeof v);
}
static inline void be64_put(uint8_t *p, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(p, &v, sizeof v);
}
static inline uint16_t be16_get(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap16(v);
}
static inline uint32_t be32_get(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap32(v);
}
static inline uint64_t be64_get(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap64(v);
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the accessors above swap");

static inline size_t pad8(size_t n)
{
    return (n + 7) & ~(size_t) 7;
}

/* Sizes of the fixed parts, OpenFlow 1.4.0. */
#define OF_MATCH_HEADER 4      /* ofp_match: type, length (7.2.2) */
#define OF_FLOW_MOD_FIXED 40   /* ofp_flow_mod up to its match, without the header (7.3.4.1) */
#define OF_FLOW_STATS_FIXED 48 /* ofp_flow_stats up to its match (7.3.5.2) */
#define OF_MULTIPART_FIXED 8   /* type, flags, pad (7.3.5) */
#define OF_BUNDLE_FIXED 8      /* bundle id, type or pad, flags (7.3.9) */
#define OF_PACKET_IN_FIXED 16  /* ofp_packet_in up to its match, without the header (7.4.1) */

/* Message types that only we send; the others are in 'enum of_type'. */
#define OF_TYPE_EXPERIMENTER 4
#define OF_TYPE_FEATURES_REQUEST 5
#define OF_TYPE_SET_CONFIG 9
#define OF_TYPE_PACKET_OUT 13
#define OF_TYPE_MULTIPART_REQUEST 18
#define OF_TYPE_BARRIER_REQUEST 20
#define OF_TYPE_METER_MOD 29
#define OF_TYPE_BUNDLE_ADD 34

#define OF_MULTIPART_FLOW 1
#define OF_MULTIPART_MORE 1
#define OF_MATCH_OXM 1
#define OF_BUNDLE_ATOMIC_ORDERED 3
#define OF_INST_GOTO 1
#define OF_INST_APPLY 4
#define OF_INST_METER 6
#define OXM_OF_IN_PORT 0x80000004u

#define ACT_OUTPUT 0
#define ACT_SET_FIELD 25
#define ACT_EXPERIMENTER 0xffff
#define NX_VENDOR 0x00002320u
#define NX_REG_MOVE 6
#define NX_REG_LOAD 7
#define NX_MULTIPATH 10
#define NX_RESUBMIT_TABLE 14
#define NX_OUTPUT_REG 15
#define NX_LEARN 16
#define NX_CONJUNCTION 34
#define NX_CT 35
#define NX_NAT 36
#define NX_CT_COMMIT 1
#define NX_CT_NO_TABLE 255

#define NX_NAT_SRC 1
#define NX_NAT_DST 2
#define NX_NAT_HAS_IP 1
#define NX_NAT_HAS_PORT 0x10
#define NX_MSG_CT_FLUSH 32
#define NXM_REG(n) OXM(1, n, 4)

/* An OXM header: class, field, has-mask bit, length of the payload (7.2.3.2). */
#define OXM(class, field, size) ((uint32_t) (class) << 16 | (uint32_t) (field) << 9 | (size))
#define OXM_HASMASK 0x100u
static inline size_t oxm_size(uint32_t header)
{
    return 4 + (header & 0xff);
}

/* Puts the TLVs of 'match' (well-formed: of_oxm_check) in canonical order. */
void of_oxm_sort(uint8_t *match, size_t size);
/* -EBADMSG unless 'match' is whole TLVs, each as long as its header says and even when masked. */
int of_oxm_check(const uint8_t *match, size_t size, struct err *e);
/* A flow that does not expire, with room for the given sizes; the caller fills the bytes. */
struct of_flow *of_flow_new(uint8_t table, uint16_t priority, uint64_t cookie, size_t match_size,
                            size_t instructions_size);
