/* SPDX-License-Identifier: Apache-2.0 */
/* Flows in canonical bytes, and the builder that makes them.
 *
 * The encodings are those of Open vSwitch 3.1's dumps in OpenFlow 1.4
 * (tests/unit/wire/test_openflow.c compares with the real one): matches are OXM except for
 * Nicira's registers and tunnel addresses; a whole field is set by OFPAT_SET_FIELD, part of one
 * by NXAST_REG_LOAD; "move" and "load" name fields by their NXM headers. */
#include "wire/openflow_priv.h"

#include "base/mem.h"

#define OXM_IN_PORT OXM(0x8000, 0, 4)
#define OXM_ETH_DST OXM(0x8000, 3, 6)
#define OXM_ETH_SRC OXM(0x8000, 4, 6)
#define OXM_ETH_TYPE OXM(0x8000, 5, 2)
#define OXM_VLAN_VID OXM(0x8000, 6, 2)
#define OXM_IP_PROTO OXM(0x8000, 10, 1)
#define OXM_IP_SRC OXM(0x8000, 11, 4)
#define OXM_IP_DST OXM(0x8000, 12, 4)
#define OXM_TCP_SRC OXM(0x8000, 13, 2)
#define OXM_TCP_DST OXM(0x8000, 14, 2)
#define OXM_UDP_SRC OXM(0x8000, 15, 2)
#define OXM_UDP_DST OXM(0x8000, 16, 2)
#define OXM_SCTP_DST OXM(0x8000, 18, 2)
#define OXM_ICMP_TYPE OXM(0x8000, 19, 1)
#define OXM_ARP_OP OXM(0x8000, 21, 2)
#define OXM_ARP_SPA OXM(0x8000, 22, 4)
#define OXM_ARP_TPA OXM(0x8000, 23, 4)
#define OXM_ARP_SHA OXM(0x8000, 24, 6)
#define OXM_TUN_ID OXM(0x8000, 38, 8)
#define ONFOXM_TCP_FLAGS_MASKED (0xffff0000u | 42 << 9 | OXM_HASMASK | 8) /* Id, value, mask. */
#define ONF_ID 0x4f4e4600u
#define NXM_TUN_SRC OXM(1, 31, 4)
#define NXM_TUN_DST OXM(1, 32, 4)
#define NXM_IP_FRAG OXM(1, 26, 1)
#define NXM_CONJ_ID OXM(1, 37, 4)
#define NXM_CT_STATE OXM(1, 105, 4)
#define NXM_CT_MARK OXM(1, 107, 4)
#define NXM_CT_NW_SRC OXM(1, 120, 4)
#define NXM_CT_NW_DST OXM(1, 121, 4)

#define NX_ACTION_SIZE 24 /* Size of the actions without a size of their own. */
#define NX_CONJUNCTION_SIZE 16
#define NX_MULTIPATH_SIZE 32
#define NX_RESUBMIT_SIZE 16
#define NX_HASH_SYMMETRIC_L3L4 2

/* NXM headers of 'enum of_field', and sizes in bits. */
static const struct {
    uint32_t header;
    unsigned bits;
} fields[] = {
    [OF_ETH_SRC] = {OXM(0, 2, 6), 48},  [OF_ETH_DST] = {OXM(0, 1, 6), 48},
    [OF_ARP_SHA] = {OXM(1, 17, 6), 48}, [OF_ARP_THA] = {OXM(1, 18, 6), 48},
    [OF_ARP_SPA] = {OXM(0, 16, 4), 32}, [OF_ARP_TPA] = {OXM(0, 17, 4), 32},
    [OF_TUN_ID] = {OXM(1, 16, 8), 64},  [OF_TUN_SRC] = {NXM_TUN_SRC, 32},
    [OF_TUN_DST] = {NXM_TUN_DST, 32},   [OF_IP_SRC] = {OXM(0, 7, 4), 32},
    [OF_IP_DST] = {OXM(0, 8, 4), 32},   [OF_REG0] = {NXM_REG(0), 32},
    [OF_REG1] = {NXM_REG(1), 32},       [OF_REG2] = {NXM_REG(2), 32},
    [OF_REG3] = {NXM_REG(3), 32},       [OF_REG7] = {NXM_REG(7), 32},
};

/* ---- flows ---- */

struct of_flow *of_flow_new(uint8_t table, uint16_t priority, uint64_t cookie, size_t match_size,
                            size_t instructions_size)
{
    assert(match_size <= UINT16_MAX && instructions_size <= UINT16_MAX);
    struct of_flow *f = xmalloc(sizeof *f + match_size + instructions_size);
    f->cookie = cookie;
    f->priority = priority;
    f->table = table;
    f->expires = 0;
    f->match_size = (uint16_t) match_size;
    f->instructions_size = (uint16_t) instructions_size;
    return f;
}

struct of_flow *of_flow_free(struct of_flow *f)
{
    free(f);
    return NULL;
}

struct of_flow *of_flow_clone(const struct of_flow *f)
{
    return xmemdup(f, of_flow_memory(f));
}

size_t of_flow_memory(const struct of_flow *f)
{
    return sizeof *f + f->match_size + f->instructions_size;
}

uint32_t of_flow_hash(const struct of_flow *f)
{
    uint64_t h = hash_bytes(f->bytes, f->match_size);
    h ^= (uint64_t) f->table << 16 | f->priority;
    h *= 0x9e3779b97f4a7c15u;
    return (uint32_t) (h >> 32);
}

bool of_flow_same_key(const struct of_flow *a, const struct of_flow *b)
{
    return a->table == b->table && a->priority == b->priority && a->match_size == b->match_size &&
           memcmp(a->bytes, b->bytes, a->match_size) == 0;
}

bool of_flow_equal(const struct of_flow *a, const struct of_flow *b)
{
    return a->cookie == b->cookie && a->expires == b->expires && of_flow_same_key(a, b) &&
           a->instructions_size == b->instructions_size &&
           memcmp(of_flow_instructions(a), of_flow_instructions(b), a->instructions_size) == 0;
}

void of_flow_list_add(struct of_flow_list *l, struct of_flow *f)
{
    l->flows = grow(l->flows, &l->cap, l->n + 1, sizeof *l->flows);
    l->flows[l->n++] = f;
}

void of_flow_list_done(struct of_flow_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        of_flow_free(l->flows[i]);
    }
    free(l->flows);
    *l = (struct of_flow_list){0};
}

/* ---- match ---- */

int of_oxm_check(const uint8_t *match, size_t size, struct err *e)
{
    for (size_t at = 0; at < size;) {
        if (size - at < 4) {
            return err_set(e, -EBADMSG, "match: field header cut short at byte %zu", at);
        }
        uint32_t header = be32_get(match + at);
        size_t n = oxm_size(header);
        if (n > size - at) {
            return err_set(e, -EBADMSG, "match: field %08x longer than the match", header);
        }
        if (n == 4 || (header & OXM_HASMASK && header & 1)) {
            return err_set(e, -EBADMSG, "match: field %08x of impossible length", header);
        }
        at += n;
    }
    return 0;
}

/* The sort key of a TLV: the basic class 0x8000 first, as all prerequisites are in it (7.2.3.6). */
static uint32_t oxm_rank(const uint8_t *tlv)
{
    return be32_get(tlv) ^ 0x80000000u;
}

/* Insertion sort: matches have few fields, and dumps mostly come in order.  The TLV at 'at' moves
 * before the first one that is greater. */
void of_oxm_sort(uint8_t *match, size_t size)
{
    uint32_t greatest = 0;
    for (size_t at = 0; at < size;) {
        uint32_t rank = oxm_rank(match + at);
        size_t n = oxm_size(be32_get(match + at));
        if (rank < greatest) {
            uint8_t tlv[4 + UINT8_MAX];
            size_t to = 0;
            while (oxm_rank(match + to) <= rank) {
                to += oxm_size(be32_get(match + to));
            }
            memcpy(tlv, match + at, n);
            memmove(match + to + n, match + to, at - to);
            memcpy(match + to, tlv, n);
        } else {
            greatest = rank;
        }
        at += n;
    }
}

/* ---- builder ---- */

void of_begin(struct of_builder *b, uint8_t table, uint16_t priority, uint64_t cookie)
{
    b->cookie = cookie;
    b->priority = priority;
    b->table = table;
    b->match_size = 0;
    b->actions_size = 0;
    b->meter = 0;
    b->goto_table = -1;
}

struct of_flow *of_end(struct of_builder *b)
{
    size_t apply = b->actions_size ? 8 + b->actions_size : 0;
    struct of_flow *f = of_flow_new(b->table, b->priority, b->cookie, b->match_size,
                                    (b->meter ? 8 : 0) + apply + (b->goto_table >= 0 ? 8 : 0));
    if (b->match_size) {
        memcpy(f->bytes, b->match, b->match_size);
        of_oxm_sort(f->bytes, b->match_size);
    }
    uint8_t *p = f->bytes + b->match_size;
    if (b->meter) {
        be16_put(p, OF_INST_METER);
        be16_put(p + 2, 8);
        be32_put(p + 4, b->meter);
        p += 8;
    }
    if (apply) {
        be16_put(p, OF_INST_APPLY);
        be16_put(p + 2, (uint16_t) apply);
        be32_put(p + 4, 0);
        memcpy(p + 8, b->actions, b->actions_size);
        p += apply;
    }
    if (b->goto_table >= 0) {
        be64_put(p, (uint64_t) OF_INST_GOTO << 48 | (uint64_t) 8 << 32 |
                        (uint64_t) (unsigned) b->goto_table << 24);
    }
    return f;
}

void of_end_into(struct of_builder *b, struct of_flow_list *l)
{
    of_flow_list_add(l, of_end(b));
}

static uint8_t *match_room(struct of_builder *b, uint32_t header)
{
    size_t n = oxm_size(header);
    assert(b->match_size + n <= sizeof b->match);
    uint8_t *p = b->match + b->match_size;
    be32_put(p, header);
    b->match_size += n;
    return p + 4;
}

static void match_u8(struct of_builder *b, uint32_t header, uint8_t v)
{
    *match_room(b, header) = v;
}

static void match_u16(struct of_builder *b, uint32_t header, uint16_t v)
{
    be16_put(match_room(b, header), v);
}

static void match_u32(struct of_builder *b, uint32_t header, uint32_t v)
{
    be32_put(match_room(b, header), v);
}

static void match_mac(struct of_builder *b, uint32_t header, struct mac m)
{
    memcpy(match_room(b, header), m.b, sizeof m.b);
}

/* The header of 'header' with a mask: its length counts value and mask. */
static uint32_t masked(uint32_t header)
{
    return (header & ~0xffu) | OXM_HASMASK | (header & 0xff) * 2;
}

static void match_prefix(struct of_builder *b, uint32_t header, struct ip4_prefix p)
{
    if (p.len == 32) {
        match_u32(b, header, p.addr);
    } else if (p.len) {
        uint8_t *v = match_room(b, masked(header));
        be32_put(v, p.addr & prefix_mask(p.len));
        be32_put(v + 4, prefix_mask(p.len));
    }
}

static void match_u16_masked(struct of_builder *b, uint32_t header, uint16_t v, uint16_t mask)
{
    if (mask == UINT16_MAX) {
        match_u16(b, header, v);
    } else if (mask) {
        uint8_t *p = match_room(b, masked(header));
        be16_put(p, v & mask);
        be16_put(p + 2, mask);
    }
}

void of_match_in_port(struct of_builder *b, uint32_t port)
{
    match_u32(b, OXM_IN_PORT, port);
}

void of_match_eth_type(struct of_builder *b, uint16_t type)
{
    match_u16(b, OXM_ETH_TYPE, type);
}

void of_match_eth_src(struct of_builder *b, struct mac m)
{
    match_mac(b, OXM_ETH_SRC, m);
}

void of_match_eth_dst(struct of_builder *b, struct mac m)
{
    match_mac(b, OXM_ETH_DST, m);
}

void of_match_eth_dst_masked(struct of_builder *b, struct mac m, struct mac mask)
{
    static const struct mac none, all = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    if (mac_equal(mask, all)) {
        of_match_eth_dst(b, m);
    } else if (!mac_equal(mask, none)) {
        uint8_t *v = match_room(b, masked(OXM_ETH_DST));
        for (size_t i = 0; i < sizeof m.b; i++) {
            v[i] = m.b[i] & mask.b[i];
            v[i + sizeof m.b] = mask.b[i];
        }
    }
}

void of_match_vlan_tagged(struct of_builder *b)
{
    uint8_t *v = match_room(b, masked(OXM_VLAN_VID));
    be16_put(v, 0x1000); /* OFPVID_PRESENT, of any id (7.2.3.7) */
    be16_put(v + 2, 0x1000);
}

void of_match_ip_proto(struct of_builder *b, uint8_t proto)
{
    match_u8(b, OXM_IP_PROTO, proto);
}

void of_match_ip_src(struct of_builder *b, struct ip4_prefix p)
{
    match_prefix(b, OXM_IP_SRC, p);
}

void of_match_ip_dst(struct of_builder *b, struct ip4_prefix p)
{
    match_prefix(b, OXM_IP_DST, p);
}

void of_match_tcp_dst(struct of_builder *b, uint16_t port)
{
    match_u16(b, OXM_TCP_DST, port);
}

void of_match_udp_dst(struct of_builder *b, uint16_t port)
{
    match_u16(b, OXM_UDP_DST, port);
}

void of_match_l4_dst(struct of_builder *b, uint8_t proto, uint16_t port, uint16_t mask)
{
    assert(proto == 6 || proto == 17 || proto == 132);
    match_u16_masked(b,
                     proto == 6    ? OXM_TCP_DST
                     : proto == 17 ? OXM_UDP_DST
                                   : OXM_SCTP_DST,
                     port, mask);
}

void of_match_l4_src(struct of_builder *b, uint8_t proto, uint16_t port, uint16_t mask)
{
    assert(proto == 6 || proto == 17);
    match_u16_masked(b, proto == 6 ? OXM_TCP_SRC : OXM_UDP_SRC, port, mask);
}

void of_match_ip_src_bits(struct of_builder *b, uint32_t value, uint32_t mask)
{
    if (mask) {
        uint8_t *v = match_room(b, masked(OXM_IP_SRC));
        be32_put(v, value & mask);
        be32_put(v + 4, mask);
    }
}

void of_match_icmp_type(struct of_builder *b, uint8_t type)
{
    match_u8(b, OXM_ICMP_TYPE, type);
}

void of_match_ct_state(struct of_builder *b, uint32_t value, uint32_t mask)
{
    uint8_t *v = match_room(b, masked(NXM_CT_STATE));
    be32_put(v, value & mask);
    be32_put(v + 4, mask);
}

void of_match_ct_mark(struct of_builder *b, uint32_t mark)
{
    match_u32(b, NXM_CT_MARK, mark);
}

void of_match_ct_nw_src(struct of_builder *b, uint32_t ip)
{
    match_u32(b, NXM_CT_NW_SRC, ip);
}

void of_match_ct_nw_dst(struct of_builder *b, uint32_t ip)
{
    match_u32(b, NXM_CT_NW_DST, ip);
}

void of_match_tcp_flags(struct of_builder *b, uint16_t flags)
{
    uint8_t *v = match_room(b, ONFOXM_TCP_FLAGS_MASKED);
    be32_put(v, ONF_ID);
    be16_put(v + 4, flags);
    be16_put(v + 6, flags);
}

void of_match_ip_later_fragment(struct of_builder *b)
{
    uint8_t *v = match_room(b, masked(NXM_IP_FRAG));
    v[0] = v[1] = 2; /* FLOW_NW_FRAG_LATER */
}

void of_match_ip_fragment(struct of_builder *b)
{
    uint8_t *v = match_room(b, masked(NXM_IP_FRAG));
    v[0] = v[1] = 1; /* FLOW_NW_FRAG_ANY */
}

void of_match_conj_id(struct of_builder *b, uint32_t id)
{
    match_u32(b, NXM_CONJ_ID, id);
}

void of_match_arp_op(struct of_builder *b, uint16_t op)
{
    match_u16(b, OXM_ARP_OP, op);
}

void of_match_arp_spa(struct of_builder *b, struct ip4_prefix p)
{
    match_prefix(b, OXM_ARP_SPA, p);
}

void of_match_arp_tpa(struct of_builder *b, struct ip4_prefix p)
{
    match_prefix(b, OXM_ARP_TPA, p);
}

void of_match_arp_sha(struct of_builder *b, struct mac m)
{
    match_mac(b, OXM_ARP_SHA, m);
}

void of_match_tun_src(struct of_builder *b, uint32_t ip)
{
    match_u32(b, NXM_TUN_SRC, ip);
}

void of_match_tun_id(struct of_builder *b, uint64_t id)
{
    be64_put(match_room(b, OXM_TUN_ID), id);
}

void of_match_reg(struct of_builder *b, unsigned reg, uint32_t value)
{
    match_u32(b, NXM_REG(reg), value);
}

/* ---- actions ---- */

/* Adds one zeroed action of 'size' bytes (padded to 8), with its type and length. */
static uint8_t *action_room(struct of_builder *b, uint16_t type, size_t size)
{
    size_t n = pad8(size);
    assert(b->actions_size + n <= sizeof b->actions);
    uint8_t *p = b->actions + b->actions_size;
    memset(p, 0, n);
    be16_put(p, type);
    be16_put(p + 2, (uint16_t) n);
    b->actions_size += n;
    return p;
}

static uint8_t *nx_action_room(struct of_builder *b, uint16_t subtype)
{
    size_t size = subtype == NX_CONJUNCTION      ? NX_CONJUNCTION_SIZE
                  : subtype == NX_MULTIPATH      ? NX_MULTIPATH_SIZE
                  : subtype == NX_RESUBMIT_TABLE ? NX_RESUBMIT_SIZE
                                                 : NX_ACTION_SIZE;
    uint8_t *p = action_room(b, ACT_EXPERIMENTER, size);
    be32_put(p + 4, NX_VENDOR);
    be16_put(p + 8, subtype);
    return p;
}

/* Adds a set-field action for the field; returns the place of its value. */
static uint8_t *set_field_room(struct of_builder *b, uint32_t header)
{
    uint8_t *p = action_room(b, ACT_SET_FIELD, 4 + oxm_size(header));
    be32_put(p + 4, header);
    return p + 8;
}

void of_act_output(struct of_builder *b, uint32_t port)
{
    uint8_t *p = action_room(b, ACT_OUTPUT, 16);
    be32_put(p + 4, port);
}

void of_act_controller(struct of_builder *b, uint16_t max_bytes)
{
    uint8_t *p = action_room(b, ACT_OUTPUT, 16);
    be32_put(p + 4, OF_PORT_CONTROLLER);
    be16_put(p + 8, max_bytes);
}

void of_act_output_reg(struct of_builder *b, unsigned reg)
{
    uint8_t *p = nx_action_room(b, NX_OUTPUT_REG);
    be16_put(p + 10, 31); /* From bit 0, 32 bits. */
    be32_put(p + 12, NXM_REG(reg));
    be16_put(p + 16, UINT16_MAX); /* Bytes for a controller; none of our ports is one. */
}

void of_act_load_reg(struct of_builder *b, unsigned reg, uint32_t v)
{
    be32_put(set_field_room(b, NXM_REG(reg)), v);
}

void of_act_set_eth_src(struct of_builder *b, struct mac m)
{
    memcpy(set_field_room(b, OXM_ETH_SRC), m.b, sizeof m.b);
}

void of_act_set_eth_dst(struct of_builder *b, struct mac m)
{
    memcpy(set_field_room(b, OXM_ETH_DST), m.b, sizeof m.b);
}

void of_act_set_tun_dst(struct of_builder *b, uint32_t ip)
{
    be32_put(set_field_room(b, NXM_TUN_DST), ip);
}

void of_act_set_tun_id(struct of_builder *b, uint64_t id)
{
    be64_put(set_field_room(b, OXM_TUN_ID), id);
}

void of_act_set_arp_op(struct of_builder *b, uint16_t op)
{
    be16_put(set_field_room(b, OXM_ARP_OP), op);
}

void of_act_move(struct of_builder *b, enum of_field src, unsigned sofs, enum of_field dst,
                 unsigned dofs, unsigned bits)
{
    assert(bits && sofs + bits <= fields[src].bits && dofs + bits <= fields[dst].bits);
    uint8_t *p = nx_action_room(b, NX_REG_MOVE);
    be16_put(p + 10, (uint16_t) bits);
    be16_put(p + 12, (uint16_t) sofs);
    be16_put(p + 14, (uint16_t) dofs);
    be32_put(p + 16, fields[src].header);
    be32_put(p + 20, fields[dst].header);
}

void of_act_load(struct of_builder *b, enum of_field dst, unsigned ofs, unsigned bits,
                 uint64_t value)
{
    assert(bits && ofs + bits <= fields[dst].bits && (bits == 64 || value >> bits == 0));
    uint8_t *p = nx_action_room(b, NX_REG_LOAD);
    be16_put(p + 10, (uint16_t) (ofs << 6 | (bits - 1)));
    be32_put(p + 12, fields[dst].header);
    be64_put(p + 16, value);
}

void of_act_conjunction(struct of_builder *b, uint32_t id, unsigned clause, unsigned n)
{
    assert(n >= 2 && n <= 64 && clause >= 1 && clause <= n);
    uint8_t *p = nx_action_room(b, NX_CONJUNCTION);
    p[10] = (uint8_t) (clause - 1);
    p[11] = (uint8_t) n;
    be32_put(p + 12, id);
}

static void ct_put(struct of_builder *b, uint16_t flags, unsigned zone_reg, uint8_t table)
{
    uint8_t *p = nx_action_room(b, NX_CT);
    be16_put(p + 10, flags);
    be32_put(p + 12, NXM_REG(zone_reg));
    be16_put(p + 16, 15); /* From bit 0, 16 bits. */
    p[18] = table;
}

void of_act_ct(struct of_builder *b, unsigned zone_reg, uint8_t table)
{
    ct_put(b, 0, zone_reg, table);
}

/* Actions inside of the one that begins at 'at' are part of it. */
static void end_outer(struct of_builder *b, size_t at)
{
    be16_put(b->actions + at + 2, (uint16_t) (b->actions_size - at));
}

void of_act_ct_commit(struct of_builder *b, unsigned zone_reg, uint32_t mark)
{
    size_t at = b->actions_size;
    ct_put(b, NX_CT_COMMIT, zone_reg, NX_CT_NO_TABLE);
    be32_put(set_field_room(b, NXM_CT_MARK), mark);
    end_outer(b, at);
}

static uint8_t *ct_nat_begin(struct of_builder *b, uint16_t flags, uint16_t zone, uint8_t table,
                             size_t size)
{
    uint8_t *p = nx_action_room(b, NX_CT);
    be16_put(p + 10, flags);
    be16_put(p + 16, zone); /* Immediate: no field before it. */
    p[18] = table;
    p = action_room(b, ACT_EXPERIMENTER, size);
    be32_put(p + 4, NX_VENDOR);
    be16_put(p + 8, NX_NAT);
    return p;
}

void of_act_ct_nat(struct of_builder *b, uint16_t zone, uint8_t table)
{
    size_t at = b->actions_size;
    ct_nat_begin(b, 0, zone, table, 16);
    end_outer(b, at);
}

void of_act_ct_nat_dst(struct of_builder *b, uint16_t zone, uint32_t ip, uint16_t port,
                       uint8_t table)
{
    size_t at = b->actions_size;
    uint8_t *p = ct_nat_begin(b, NX_CT_COMMIT, zone, table, 22);
    be16_put(p + 12, NX_NAT_DST);
    be16_put(p + 14, NX_NAT_HAS_IP | NX_NAT_HAS_PORT);
    be32_put(p + 16, ip);
    be16_put(p + 20, port);
    end_outer(b, at);
}

void of_act_ct_nat_src(struct of_builder *b, uint16_t zone, uint32_t ip, uint8_t table)
{
    size_t at = b->actions_size;
    uint8_t *p = ct_nat_begin(b, NX_CT_COMMIT, zone, table, 20);
    be16_put(p + 12, NX_NAT_SRC);
    be16_put(p + 14, NX_NAT_HAS_IP);
    be32_put(p + 16, ip);
    end_outer(b, at);
}

void of_act_resubmit(struct of_builder *b, uint8_t table)
{
    uint8_t *p = nx_action_room(b, NX_RESUBMIT_TABLE);
    be16_put(p + 10, (uint16_t) OF_PORT_IN_PORT); /* Port in 16 bits: the input port. */
    p[12] = table;
}

/* ---- learn ---- */

#define LEARN_FIXED 32
#define LEARN_DELETE 2 /* NX_LEARN_F_DELETE_LEARNED */
#define LEARN_FROM_VALUE 0x2000
#define LEARN_LOAD 0x0800
#define NXM_ETH_TYPE OXM(0, 3, 2)
#define NXM_IP_SRC OXM(0, 7, 4)

/* Makes 'bits' of a field of the packet, from bit 0, a match of the learned flow. */
static uint8_t *learn_match_same(uint8_t *p, uint32_t header, unsigned bits)
{
    be16_put(p, (uint16_t) bits);
    be32_put(p + 2, header);
    be16_put(p + 6, 0);
    be32_put(p + 8, header);
    be16_put(p + 12, 0);
    return p + 14;
}

static uint8_t *learn_load(uint8_t *p, unsigned reg, uint32_t value)
{
    be16_put(p, LEARN_FROM_VALUE | LEARN_LOAD | 32);
    be32_put(p + 2, value);
    be32_put(p + 6, NXM_REG(reg));
    be16_put(p + 10, 0);
    return p + 12;
}

void of_act_learn(struct of_builder *b, const struct of_learn *l)
{
    enum { SIZE = LEARN_FIXED + 10 + 3 * 14 + 2 * 12 };
    uint8_t *p = action_room(b, ACT_EXPERIMENTER, SIZE);
    be32_put(p + 4, NX_VENDOR);
    be16_put(p + 8, NX_LEARN);
    be16_put(p + 10, l->idle_s);
    be16_put(p + 14, l->priority);
    be64_put(p + 16, l->cookie);
    be16_put(p + 24, LEARN_DELETE);
    p[26] = l->table;
    p += LEARN_FIXED;
    be16_put(p, LEARN_FROM_VALUE | 16);
    be16_put(p + 2, 0x0800);
    be32_put(p + 4, NXM_ETH_TYPE);
    be16_put(p + 8, 0);
    p += 10;
    for (size_t i = 0; i < ARRAY_SIZE(l->match_regs); i++) {
        p = learn_match_same(p, NXM_REG(l->match_regs[i]), 32);
    }
    p = learn_match_same(p, NXM_IP_SRC, 32);
    for (size_t i = 0; i < ARRAY_SIZE(l->load_regs); i++) {
        p = learn_load(p, l->load_regs[i], l->load[i]);
    }
}

void of_act_hash_symmetric(struct of_builder *b, unsigned reg, unsigned bits)
{
    assert(bits >= 1 && bits <= 16);
    uint8_t *p = nx_action_room(b, NX_MULTIPATH);
    be16_put(p + 10, NX_HASH_SYMMETRIC_L3L4);
    be16_put(p + 18,
             (uint16_t) ((1u << bits) - 1)); /* Greatest value; the algorithm, modulo, is 0. */
    be16_put(p + 26, (uint16_t) (bits - 1));
    be32_put(p + 28, NXM_REG(reg));
}

void of_goto(struct of_builder *b, uint8_t table)
{
    assert(b->goto_table < 0 && table > b->table);
    b->goto_table = table;
}

void of_meter(struct of_builder *b, uint32_t meter)
{
    b->meter = meter;
}
