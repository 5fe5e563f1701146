/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the switch: encoders. */
#include "wire/openflow_priv.h"

/* Room for a zeroed message of 'size' bytes with its header; NULL when the buffer refuses it. */
static uint8_t *msg_room(struct strbuf *out, uint8_t type, size_t size, uint32_t xid)
{
    assert(size >= OF_HEADER_SIZE && size <= UINT16_MAX);
    uint8_t *p = (uint8_t *) strbuf_reserve(out, size);
    if (!p) {
        return NULL;
    }
    memset(p, 0, size + 1); /* Includes the NUL at the end of a strbuf. */
    p[0] = OF_VERSION;
    p[1] = type;
    be16_put(p + 2, (uint16_t) size);
    be32_put(p + 4, xid);
    out->size += size;
    return p;
}

void of_put_hello(struct strbuf *out, uint32_t xid)
{
    uint8_t *p = msg_room(out, OF_HELLO, OF_HEADER_SIZE + 8, xid);
    if (p) {
        be16_put(p + 8, 1);  /* OFPHET_VERSIONBITMAP */
        be16_put(p + 10, 8); /* Element header and one word. */
        be32_put(p + 12, 1u << OF_VERSION);
    }
}

void of_put_echo_request(struct strbuf *out, uint32_t xid)
{
    msg_room(out, OF_ECHO_REQUEST, OF_HEADER_SIZE, xid);
}

void of_put_echo_reply(struct strbuf *out, uint32_t xid, const void *data, size_t size)
{
    uint8_t *p = msg_room(out, OF_ECHO_REPLY, OF_HEADER_SIZE + size, xid);
    if (p && size) {
        memcpy(p + OF_HEADER_SIZE, data, size);
    }
}

void of_put_barrier_request(struct strbuf *out, uint32_t xid)
{
    msg_room(out, OF_TYPE_BARRIER_REQUEST, OF_HEADER_SIZE, xid);
}

void of_put_features_request(struct strbuf *out, uint32_t xid)
{
    msg_room(out, OF_TYPE_FEATURES_REQUEST, OF_HEADER_SIZE, xid);
}

/* ---- flow-mod ---- */

static bool command_has_instructions(enum of_flow_command cmd)
{
    return cmd != OF_FLOW_DELETE && cmd != OF_FLOW_DELETE_STRICT;
}

static size_t flow_mod_size(enum of_flow_command cmd, const struct of_flow *f)
{
    return OF_HEADER_SIZE + OF_FLOW_MOD_FIXED + pad8(OF_MATCH_HEADER + f->match_size) +
           (command_has_instructions(cmd) ? f->instructions_size : 0);
}

/* The body of a flow-mod at 'p', which is zeroed. */
static void flow_mod_put(uint8_t *p, enum of_flow_command cmd, uint16_t idle_s,
                         const struct of_flow *f)
{
    bool whole = command_has_instructions(cmd);
    if (whole) {
        be64_put(p, f->cookie);
    }
    /* p + 8: cookie mask 0, any cookie. */
    p[16] = f->table;
    p[17] = (uint8_t) cmd;
    be16_put(p + 18, idle_s);
    be16_put(p + 22, f->priority);
    be32_put(p + 24, UINT32_MAX); /* OFP_NO_BUFFER */
    be32_put(p + 28, OF_PORT_ANY);
    be32_put(p + 32, UINT32_MAX); /* OFPG_ANY */
    p += OF_FLOW_MOD_FIXED;
    be16_put(p, OF_MATCH_OXM);
    be16_put(p + 2, (uint16_t) (OF_MATCH_HEADER + f->match_size));
    if (f->match_size) {
        memcpy(p + OF_MATCH_HEADER, f->bytes, f->match_size);
    }
    if (whole && f->instructions_size) {
        memcpy(p + pad8(OF_MATCH_HEADER + f->match_size), of_flow_instructions(f),
               f->instructions_size);
    }
}

void of_put_flow_mod(struct strbuf *out, uint32_t xid, enum of_flow_command cmd,
                     const struct of_flow *f)
{
    uint8_t *p = msg_room(out, OF_FLOW_MOD, flow_mod_size(cmd, f), xid);
    if (p) {
        flow_mod_put(p + OF_HEADER_SIZE, cmd, 0, f);
    }
}

/* ---- bundles ---- */

void of_put_bundle_control(struct strbuf *out, uint32_t xid, uint32_t bundle,
                           enum of_bundle_ctrl type)
{
    uint8_t *p = msg_room(out, OF_BUNDLE_CONTROL, OF_HEADER_SIZE + OF_BUNDLE_FIXED, xid);
    if (p) {
        be32_put(p + 8, bundle);
        be16_put(p + 12, (uint16_t) type);
        be16_put(p + 14, OF_BUNDLE_ATOMIC_ORDERED);
    }
}

static void bundle_flow_mod(struct strbuf *out, uint32_t xid, uint32_t bundle,
                            enum of_flow_command cmd, uint16_t idle_s, const struct of_flow *f)
{
    size_t inner = flow_mod_size(cmd, f);
    uint8_t *p = msg_room(out, OF_TYPE_BUNDLE_ADD, OF_HEADER_SIZE + OF_BUNDLE_FIXED + inner, xid);
    if (p) {
        be32_put(p + 8, bundle);
        be16_put(p + 14, OF_BUNDLE_ATOMIC_ORDERED);
        p += OF_HEADER_SIZE + OF_BUNDLE_FIXED;
        p[0] = OF_VERSION;
        p[1] = OF_FLOW_MOD;
        be16_put(p + 2, (uint16_t) inner);
        be32_put(p + 4, xid); /* Must equal the outer message's (7.3.9.6). */
        flow_mod_put(p + OF_HEADER_SIZE, cmd, idle_s, f);
    }
}

void of_put_bundle_flow_mod(struct strbuf *out, uint32_t xid, uint32_t bundle,
                            enum of_flow_command cmd, const struct of_flow *f)
{
    bundle_flow_mod(out, xid, bundle, cmd, 0, f);
}

void of_put_bundle_flow_retire(struct strbuf *out, uint32_t xid, uint32_t bundle, uint16_t idle_s,
                               const struct of_flow *f)
{
    bundle_flow_mod(out, xid, bundle, OF_FLOW_ADD, idle_s, f);
}

void of_put_flow_dump_request(struct strbuf *out, uint32_t xid)
{
    of_put_flow_dump_request_of(out, xid, 0, 0);
}

void of_put_flow_dump_request_of(struct strbuf *out, uint32_t xid, uint64_t cookie, uint64_t mask)
{
    /* ofp_flow_stats_request: table, pad 3, out_port, out_group, pad 4, cookie, cookie
     * mask, match. */
    enum { FIXED = 32, MATCH = 8 };
    uint8_t *p = msg_room(out, OF_TYPE_MULTIPART_REQUEST,
                          OF_HEADER_SIZE + OF_MULTIPART_FIXED + FIXED + MATCH, xid);
    if (p) {
        be16_put(p + 8, OF_MULTIPART_FLOW);
        p += OF_HEADER_SIZE + OF_MULTIPART_FIXED;
        p[0] = UINT8_MAX; /* OFPTT_ALL */
        be32_put(p + 4, OF_PORT_ANY);
        be32_put(p + 8, UINT32_MAX); /* OFPG_ANY */
        be64_put(p + 16, cookie);
        be64_put(p + 24, mask);
        be16_put(p + FIXED, OF_MATCH_OXM);
        be16_put(p + FIXED + 2, OF_MATCH_HEADER);
    }
}

/* ---- packets to and from the switch ---- */

void of_put_set_config(struct strbuf *out, uint32_t xid, uint16_t miss_send_len)
{
    enum { FRAG_NX_MATCH = 3 }; /* ovs-ofctl(8), set-frags: the first fragment has its ports. */
    uint8_t *p = msg_room(out, OF_TYPE_SET_CONFIG, OF_HEADER_SIZE + 4, xid);
    if (p) {
        be16_put(p + 8, FRAG_NX_MATCH);
        be16_put(p + 10, miss_send_len);
    }
}

void of_put_meter_mod(struct strbuf *out, uint32_t xid, bool modify, uint32_t meter, uint32_t rate,
                      uint32_t burst)
{
    enum { FIXED = 8, BAND = 16, FLAGS_PKTPS_BURST = 2 | 4, BAND_DROP = 1 };
    uint8_t *p = msg_room(out, OF_TYPE_METER_MOD, OF_HEADER_SIZE + FIXED + BAND, xid);
    if (p) {
        be16_put(p + 8, modify);
        be16_put(p + 10, FLAGS_PKTPS_BURST);
        be32_put(p + 12, meter);
        be16_put(p + 16, BAND_DROP);
        be16_put(p + 18, BAND);
        be32_put(p + 20, rate);
        be32_put(p + 24, burst);
    }
}

void of_put_packet_in_table(struct strbuf *out, uint32_t xid, uint32_t in_port, uint8_t table,
                            unsigned reg, uint32_t value, const void *packet, size_t size)
{
    enum { FIXED = 16, SET = 16, RESUBMIT = 16 }; /* Buffer, in_port, length of actions, padding. */
    uint8_t *p =
        msg_room(out, OF_TYPE_PACKET_OUT, OF_HEADER_SIZE + FIXED + SET + RESUBMIT + size, xid);
    if (p) {
        be32_put(p + 8, UINT32_MAX); /* OFP_NO_BUFFER */
        be32_put(p + 12, in_port);
        be16_put(p + 16, SET + RESUBMIT);
        p += OF_HEADER_SIZE + FIXED;
        be16_put(p, ACT_SET_FIELD);
        be16_put(p + 2, SET);
        be32_put(p + 4, NXM_REG(reg));
        be32_put(p + 8, value);
        p += SET;
        be16_put(p, ACT_EXPERIMENTER);
        be16_put(p + 2, RESUBMIT);
        be32_put(p + 4, NX_VENDOR);
        be16_put(p + 8, NX_RESUBMIT_TABLE);
        be16_put(p + 10, (uint16_t) OF_PORT_IN_PORT);
        p[12] = table;
        memcpy(p + RESUBMIT, packet, size);
    }
}

/* ---- connections ---- */

/* Properties of NXT_CT_FLUSH and of the tuples in it (nicira-ext.h): type, length,
 * value, padding. */
enum { CT_ORIG_TUPLE, CT_REPLY_TUPLE, CT_ZONE };
enum { TUPLE_SRC, TUPLE_DST, TUPLE_SRC_PORT, TUPLE_DST_PORT };
enum { PROP = 4, PROP_ADDRESS = 24, PROP_NUMBER = 8 };

static uint8_t *put_number(uint8_t *p, unsigned type, uint16_t v)
{
    be16_put(p, (uint16_t) type);
    be16_put(p + 2, PROP + 2);
    be16_put(p + PROP, v);
    return p + PROP_NUMBER;
}

static size_t tuple_size(uint32_t ip, uint16_t port)
{
    size_t n = (ip ? PROP_ADDRESS : 0) + (size_t) (port ? PROP_NUMBER : 0);
    return n ? n + 8 : 0; /* Its header is padded. */
}

static uint8_t *put_tuple(uint8_t *p, unsigned tuple, unsigned ip_type, uint32_t ip,
                          unsigned port_type, uint16_t port)
{
    size_t size = tuple_size(ip, port);
    if (!size) {
        return p;
    }
    be16_put(p, (uint16_t) tuple);
    be16_put(p + 2, (uint16_t) size);
    p += 8;
    if (ip) {
        be16_put(p, (uint16_t) ip_type);
        be16_put(p + 2, PROP + 16);
        be16_put(p + PROP + 10, UINT16_MAX); /* IPv4 in IPv6 (RFC 4291 2.5.5.2) */
        be32_put(p + PROP + 12, ip);
        p += PROP_ADDRESS;
    }
    return port ? put_number(p, port_type, port) : p;
}

void of_put_ct_flush(struct strbuf *out, uint32_t xid, uint16_t zone, const struct of_connection *c)
{
    enum { FIXED = 16 }; /* Vendor, subtype, protocol, padding. */
    size_t size = OF_HEADER_SIZE + FIXED + tuple_size(c->dst, c->dst_port) +
                  tuple_size(c->reply_src, c->reply_src_port) + PROP_NUMBER;
    uint8_t *p = msg_room(out, OF_TYPE_EXPERIMENTER, size, xid);
    if (p) {
        be32_put(p + 8, NX_VENDOR);
        be32_put(p + 12, NX_MSG_CT_FLUSH);
        p[16] = c->proto;
        p += OF_HEADER_SIZE + FIXED;
        p = put_tuple(p, CT_ORIG_TUPLE, TUPLE_DST, c->dst, TUPLE_DST_PORT, c->dst_port);
        p = put_tuple(p, CT_REPLY_TUPLE, TUPLE_SRC, c->reply_src, TUPLE_SRC_PORT,
                      c->reply_src_port);
        put_number(p, CT_ZONE, zone);
    }
}
