/* SPDX-License-Identifier: Apache-2.0 */
/* OpenFlow 1.4 messages and the Open vSwitch extensions that the pipeline uses.  Pure:
 * bytes in, values out.
 *
 * Sources: OpenFlow Switch Specification 1.4.0 (sections named at each function) and
 * ovs-fields(7), ovs-actions(7).  1.4 because its bundles (7.3.9) are native: a change of the
 * pipeline is one transaction.  Everything read from the switch is bounds-checked; a
 * malformed message is -EBADMSG with the reason.
 *
 * A 'struct of_flow' is one flow in canonical bytes: OXM fields sorted by header (class 0x8000
 * first, for it has the prerequisites of all others), instructions as Open vSwitch itself would
 * dump them, so that "same as what the switch reports" is memcmp.  Any flow found in a dump,
 * from any controller, can be sent back in a flow-mod, for example to delete it.
 *
 * The maker of a flow or a list owns it; the builder is a plain value that owns nothing.
 * Addresses, ports and all other numbers are in host byte order.  No global state: any thread,
 * each object on one at a time. */
#pragma once

#include "base/err.h"
#include "base/ip.h"
#include "base/list.h"
#include "base/str.h"

#define OF_VERSION 0x05 /* OpenFlow 1.4 */
#define OF_HEADER_SIZE 8
#define OF_PORT_IN_PORT 0xfffffff8u
#define OF_PORT_LOCAL 0xfffffffeu
#define OF_PORT_CONTROLLER 0xfffffffdu
#define OF_PORT_ANY 0xffffffffu

/* ---- flows ---- */

struct of_flow {
    uint64_t cookie;
    uint16_t priority;
    uint8_t table;
    uint8_t expires;     /* 1: found with a timeout; ours have none, so it equals none of ours. */
    uint16_t match_size; /* OXM TLVs without ofp_match header and padding. */
    uint16_t instructions_size; /* Multiple of 8. */
    uint8_t bytes[];            /* Match, then instructions. */
};

static inline const uint8_t *of_flow_match(const struct of_flow *f)
{
    return f->bytes;
}
static inline const uint8_t *of_flow_instructions(const struct of_flow *f)
{
    return f->bytes + f->match_size;
}
struct of_flow *of_flow_free(struct of_flow *f); /* NULL is fine; returns NULL. */
struct of_flow *of_flow_clone(const struct of_flow *f);
/* The key of a flow is its table, priority and match: the switch has one flow of a key (6.4). */
uint32_t of_flow_hash(const struct of_flow *f); /* Hash of the key. */
bool of_flow_same_key(const struct of_flow *a, const struct of_flow *b);
bool of_flow_equal(const struct of_flow *a, const struct of_flow *b); /* All, cookie included. */
size_t of_flow_memory(const struct of_flow *f);                       /* Bytes it takes. */

/* Appends "ip,in_port=3,ip_dst=10.128.0.0/23", and "set:reg0=0xa,goto:50" or "drop", for people;
 * the flow was built here or came from a dump. */
void of_flow_match_text(const struct of_flow *f, struct strbuf *out);
void of_flow_actions_text(const struct of_flow *f, struct strbuf *out);

struct of_flow_list {
    struct of_flow **flows; /* Owned. */
    size_t n, cap;
};
void of_flow_list_add(struct of_flow_list *l, struct of_flow *f); /* Takes 'f' over. */
void of_flow_list_done(struct of_flow_list *l);                   /* Frees all; empty and usable. */

/* Builder: of_begin, any of_match_*, any of_act_* in order, of_goto at most once, of_end.  Fields
 * are those of ovs-fields(7), each matched at most once, in any order; prerequisites (eth_type,
 * ip_proto) are the caller's to set.  Actions are those of ovs-actions(7) and are done in order;
 * the goto after them.  Bits outside a range, a table that does not lie ahead, or more than the
 * builder holds, are errors of the program and abort it. */
#define OF_MAX_CONJUNCTIONS 1000 /* Limit of one flow, which must fit in a message. */
struct of_builder {
    uint64_t cookie;
    uint16_t priority;
    uint8_t table;
    uint8_t match[256];
    size_t match_size;
    uint8_t actions[OF_MAX_CONJUNCTIONS * 16 + 1024];
    size_t actions_size;
    uint32_t meter; /* 0: none. */
    int goto_table; /* -1: none. */
};
void of_begin(struct of_builder *b, uint8_t table, uint16_t priority, uint64_t cookie);
struct of_flow *of_end(struct of_builder *b); /* Owned flow; no action and no goto means drop. */
void of_end_into(struct of_builder *b, struct of_flow_list *l);

void of_match_in_port(struct of_builder *b, uint32_t port);
void of_match_eth_type(struct of_builder *b, uint16_t type);
void of_match_eth_src(struct of_builder *b, struct mac m);
void of_match_eth_dst(struct of_builder *b, struct mac m);
void of_match_eth_dst_masked(struct of_builder *b, struct mac m, struct mac mask);
void of_match_vlan_tagged(struct of_builder *b); /* Any 802.1Q tag: vlan_tci=0x1000/0x1000 */
void of_match_ip_proto(struct of_builder *b, uint8_t proto);
void of_match_ip_src(struct of_builder *b, struct ip4_prefix p); /* len 0: no match at all. */
void of_match_ip_dst(struct of_builder *b, struct ip4_prefix p);
void of_match_tcp_dst(struct of_builder *b, uint16_t port);
void of_match_udp_dst(struct of_builder *b, uint16_t port);
/* TCP (6), UDP (17) or SCTP (132), as set by of_match_ip_proto; mask 0xffff: exactly 'port'; 0:
 * no match. */
void of_match_l4_dst(struct of_builder *b, uint8_t proto, uint16_t port, uint16_t mask);
/* The lowest bits of an address: those of 'mask'. */
void of_match_ip_src_bits(struct of_builder *b, uint32_t value, uint32_t mask);
/* TCP or UDP, as of_match_l4_dst. */
void of_match_l4_src(struct of_builder *b, uint8_t proto, uint16_t port, uint16_t mask);
void of_match_icmp_type(struct of_builder *b, uint8_t type);
void of_match_arp_op(struct of_builder *b, uint16_t op);
void of_match_arp_spa(struct of_builder *b, struct ip4_prefix p);
void of_match_arp_tpa(struct of_builder *b, struct ip4_prefix p);
void of_match_arp_sha(struct of_builder *b, struct mac m);
void of_match_tun_src(struct of_builder *b, uint32_t ip); /* NXM_NX_TUN_IPV4_SRC */
void of_match_tun_id(struct of_builder *b, uint64_t id);
void of_match_reg(struct of_builder *b, unsigned reg, uint32_t value); /* reg: 0-15 */
/* The connection tracker's view of the packet, ovs-fields(7): ct_state=value/mask with
 * these bits. */
#define OF_CT_NEW 0x01u
#define OF_CT_EST 0x02u
#define OF_CT_REL 0x04u
#define OF_CT_RPL 0x08u
#define OF_CT_INV 0x10u
#define OF_CT_TRK 0x20u
#define OF_CT_DNAT 0x80u
void of_match_ct_state(struct of_builder *b, uint32_t value, uint32_t mask);
void of_match_ct_mark(struct of_builder *b, uint32_t mark);
/* The connection's first packet had this source or destination; of_match_ct_state must also
 * match a bit beside OF_CT_TRK. */
void of_match_ct_nw_src(struct of_builder *b, uint32_t ip);
void of_match_ct_nw_dst(struct of_builder *b, uint32_t ip);
/* tcp_flags=flags/flags: all of these bits, as in the header (RFC 9293). */
#define OF_TCP_FIN 0x01u
#define OF_TCP_RST 0x04u
void of_match_tcp_flags(struct of_builder *b, uint16_t flags);
void of_match_ip_later_fragment(struct of_builder *b); /* ip_frag=2/2: later fragments. */
void of_match_ip_fragment(struct of_builder *b);       /* ip_frag=1/1: all fragments. */
void of_match_conj_id(struct of_builder *b, uint32_t id);

void of_act_output(struct of_builder *b, uint32_t port);
/* Sends a packet-in with the first 'max_bytes' of the packet to the controllers. */
void of_act_controller(struct of_builder *b, uint16_t max_bytes);
void of_act_output_reg(struct of_builder *b, unsigned reg); /* output:NXM_NX_REGn[] */
void of_act_load_reg(struct of_builder *b, unsigned reg, uint32_t v);
void of_act_set_eth_src(struct of_builder *b, struct mac m);
void of_act_set_eth_dst(struct of_builder *b, struct mac m);
void of_act_set_tun_dst(struct of_builder *b, uint32_t ip);
void of_act_set_tun_id(struct of_builder *b, uint64_t id);
void of_act_set_arp_op(struct of_builder *b, uint16_t op);
/* move:SRC[sofs..sofs+bits-1]->DST[dofs..]; the enum names a whole field. */
enum of_field {
    OF_ETH_SRC,
    OF_ETH_DST,
    OF_ARP_SHA,
    OF_ARP_THA,
    OF_ARP_SPA,
    OF_ARP_TPA,
    OF_TUN_ID,
    OF_TUN_SRC,
    OF_TUN_DST,
    OF_IP_SRC,
    OF_IP_DST,
    OF_REG0,
    OF_REG1,
    OF_REG2,
    OF_REG3,
    OF_REG7
};
void of_act_move(struct of_builder *b, enum of_field src, unsigned sofs, enum of_field dst,
                 unsigned dofs, unsigned bits);
/* load:value->FIELD[ofs..ofs+bits-1]; 'value' has no other bits. */
void of_act_load(struct of_builder *b, enum of_field dst, unsigned ofs, unsigned bits,
                 uint64_t value);
/* conjunction(id, clause/n): 'clause' counts from 1 and 2 <= n <= 64.  A flow with
 * conjunctions has no other action; the flow that matches of_match_conj_id(id) at the
 * same priority says what happens. */
void of_act_conjunction(struct of_builder *b, uint32_t id, unsigned clause, unsigned n);
/* ct(zone=NXM_NX_REGn[0..15],table=t): the packet continues in table 't', any, with its
 * ct_state. */
void of_act_ct(struct of_builder *b, unsigned zone_reg, uint8_t table);
/* ct(commit,zone=NXM_NX_REGn[0..15],exec(set_field:mark->ct_mark)): commits the connection. */
void of_act_ct_commit(struct of_builder *b, unsigned zone_reg, uint32_t mark);
/* ct(zone=Z,nat,table=t): like of_act_ct, and applies the connection's translation to the
 * packet. */
void of_act_ct_nat(struct of_builder *b, uint16_t zone, uint8_t table);
/* ct(commit,zone=Z,nat(dst=IP:PORT),table=t): commits the connection with a translated
 * destination. */
void of_act_ct_nat_dst(struct of_builder *b, uint16_t zone, uint32_t ip, uint16_t port,
                       uint8_t table);
/* ct(commit,zone=Z,nat(src=IP),table=t) */
void of_act_ct_nat_src(struct of_builder *b, uint16_t zone, uint32_t ip, uint8_t table);
/* resubmit(,t): applies table 't' to the packet, then continues with the next action. */
void of_act_resubmit(struct of_builder *b, uint8_t table);
/* learn(table=t,...): makes, or refreshes, a flow that expires when no packet matched it for
 * 'idle_s' seconds: it matches IPv4 packets that have this one's values of two registers and its
 * IP source, and loads two values.  The switch deletes it with the last learning flow of the
 * same 'cookie' and table (delete_learned). */
struct of_learn {
    uint8_t table;
    uint16_t priority, idle_s;
    uint64_t cookie;
    unsigned match_regs[2];
    unsigned load_regs[2];
    uint32_t load[2];
};
void of_act_learn(struct of_builder *b, const struct of_learn *l);
/* multipath(symmetric_l3l4,0,modulo_n,2^bits,0,NXM_NX_REGn[0..bits-1]): a hash of addresses and
 * ports (of TCP and SCTP) that is the same both ways; 1 <= bits <= 16. */
void of_act_hash_symmetric(struct of_builder *b, unsigned reg, unsigned bits);
void of_goto(struct of_builder *b, uint8_t table);
/* Drops packets above the meter's rate before the first action (5.9). */
void of_meter(struct of_builder *b, uint32_t meter);

/* ---- messages to the switch ---- */

/* Each is appended to 'out' whole, or, when 'out' is full, not at all (out->failed). */

void of_put_hello(struct strbuf *out, uint32_t xid); /* 7.5.1, version bitmap */
void of_put_echo_request(struct strbuf *out, uint32_t xid);
/* With the request's xid and body. */
void of_put_echo_reply(struct strbuf *out, uint32_t xid, const void *data, size_t size);
void of_put_barrier_request(struct strbuf *out, uint32_t xid); /* 7.3.7 */
void of_put_features_request(struct strbuf *out, uint32_t xid);
enum of_flow_command {
    OF_FLOW_ADD = 0,
    OF_FLOW_MODIFY_STRICT = 2,
    OF_FLOW_DELETE = 3,
    OF_FLOW_DELETE_STRICT = 4
};
/* 7.3.4.1.  Add replaces a flow of the same key, cookie included, and keeps its counters; modify
 * keeps the cookie.  Delete ignores instructions and matches any cookie; table 255 is all
 * tables. */
void of_put_flow_mod(struct strbuf *out, uint32_t xid, enum of_flow_command cmd,
                     const struct of_flow *f);
/* 7.3.9: ordered and atomic.  The switch checks a message when it is added; one that it refuses
 * then is merely left out, and a commit goes through without it.  Hence: open, add all, close; wait
 * for the close's reply; commit only when no error came before it, discard otherwise.  Errors at
 * the commit undo all of it.  A reply's type is the request's plus 1. */
enum of_bundle_ctrl {
    OF_BUNDLE_OPEN = 0,
    OF_BUNDLE_CLOSE = 2,
    OF_BUNDLE_COMMIT = 4,
    OF_BUNDLE_DISCARD = 6
};
void of_put_bundle_control(struct strbuf *out, uint32_t xid, uint32_t bundle,
                           enum of_bundle_ctrl type);
void of_put_bundle_flow_mod(struct strbuf *out, uint32_t xid, uint32_t bundle,
                            enum of_flow_command cmd, const struct of_flow *f);
/* Like the previous one, an add; the flow expires when no packet matched it for 'idle_s'
 * seconds. */
void of_put_bundle_flow_retire(struct strbuf *out, uint32_t xid, uint32_t bundle, uint16_t idle_s,
                               const struct of_flow *f);
void of_put_flow_dump_request(struct strbuf *out, uint32_t xid); /* 7.3.5.2, all tables */
/* Like the previous one, for flows whose cookie equals 'cookie' in the bits of 'mask'. */
void of_put_flow_dump_request_of(struct strbuf *out, uint32_t xid, uint64_t cookie, uint64_t mask);
/* 7.3.4.4: adds (or, 'modify', changes) a meter with one band, which drops what exceeds 'rate'
 * packets a second after a burst of 'burst' packets. */
void of_put_meter_mod(struct strbuf *out, uint32_t xid, bool modify, uint32_t meter, uint32_t rate,
                      uint32_t burst);
/* 7.3.2: 'miss_send_len' other than 0 makes Open vSwitch send packet-ins to this connection; and
 * flows see the ports of a packet's first fragment, else they are 0 (an extension). */
void of_put_set_config(struct strbuf *out, uint32_t xid, uint16_t miss_send_len);
/* 7.3.6: sends 'packet' to table 't' as if received by port 'in_port', with 'value' in register
 * 'reg'. */
void of_put_packet_in_table(struct strbuf *out, uint32_t xid, uint32_t in_port, uint8_t table,
                            unsigned reg, uint32_t value, const void *packet, size_t size);
/* NXT_CT_FLUSH (Open vSwitch 3.1): removes the IPv4 connections of 'zone' that match; 0: any. */
struct of_connection {
    uint8_t proto;
    uint32_t dst; /* Destination of its first packet. */
    uint16_t dst_port;
    uint32_t reply_src; /* Source of the answers. */
    uint16_t reply_src_port;
};
void of_put_ct_flush(struct strbuf *out, uint32_t xid, uint16_t zone,
                     const struct of_connection *c);

/* ---- messages from the switch ---- */

enum of_type {
    OF_HELLO = 0,
    OF_ERROR = 1,
    OF_ECHO_REQUEST = 2,
    OF_ECHO_REPLY = 3,
    OF_FEATURES_REPLY = 6,
    OF_PACKET_IN = 10,
    OF_FLOW_REMOVED = 11,
    OF_PORT_STATUS = 12,
    OF_FLOW_MOD = 14,
    OF_MULTIPART_REPLY = 19,
    OF_BARRIER_REPLY = 21,
    OF_BUNDLE_CONTROL = 33
};
struct of_msg {
    uint8_t version;
    uint8_t type;
    uint32_t xid;
    const uint8_t *body; /* After the header; points into the input. */
    size_t body_size;
};
/* First message of 'data'; '*ret_used' is its size.  -EAGAIN: more bytes needed ('e' is
 * not set); -EBADMSG: not OpenFlow 1.4 (a hello or an error may be of another version).
 * A message has at most 65,535 bytes. */
int of_msg_parse(const void *data, size_t size, struct of_msg *ret, size_t *ret_used,
                 struct err *e);

/* 7.5.4; the message's xid is that of the request which failed, of a bundle's single message too.
 * The parsers below return -EBADMSG for a message of another type. */
struct of_error {
    uint16_t type, code;
};
int of_error_parse(const struct of_msg *m, struct of_error *ret, struct err *e);
/* "bundle failed: message failed" and the like; numbers when unknown. */
const char *of_error_text(const struct of_error *er, char out[96]);
/* 7.5.1: 0 when 'm' is the hello of a switch that can speak 1.4; -EPROTO when it cannot. */
int of_hello_negotiate(const struct of_msg *m, struct err *e);
/* 7.4.1. 'in_port' is 0 when the message does not have it; 'data' points into the message. */
struct of_packet_in {
    uint8_t table;
    uint64_t cookie;
    uint32_t in_port;
    const uint8_t *data;
    size_t size;
};
int of_packet_in_parse(const struct of_msg *m, struct of_packet_in *ret, struct err *e);
int of_bundle_control_parse(const struct of_msg *m, uint32_t *ret_bundle, uint16_t *ret_type,
                            struct err *e);

/* One multipart reply with flow statistics (7.3.5.2): appends the flows to 'out', and when 'stats'
 * is not NULL stores the counters of out->flows[i] in (*stats)[i], an array that the caller frees.
 * '*ret_more' says whether further replies follow.  On failure 'out' is unchanged. */
struct of_counters {
    uint64_t packets, bytes;
};
int of_flow_dump_parse(const struct of_msg *m, struct of_flow_list *out, struct of_counters **stats,
                       size_t *stats_cap, bool *ret_more, struct err *e);
