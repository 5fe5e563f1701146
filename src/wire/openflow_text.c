/* SPDX-License-Identifier: Apache-2.0 */
/* Flows as text, in the syntax of ovs-fields(7) and ovs-actions(7). */
#include "wire/openflow_priv.h"

#include <inttypes.h>
#include <stdio.h>

enum form { DECIMAL, HEX, IP4, MAC, PORT, ETH_TYPE };

/* By class and field, of both NXM and OXM. */
static const struct {
    uint16_t class;
    uint8_t field;
    enum form form;
    const char *name;
} fields[] = {
    {0x8000, 0, PORT, "in_port"},
    {0x8000, 3, MAC, "eth_dst"},
    {0x8000, 4, MAC, "eth_src"},
    {0x8000, 5, ETH_TYPE, "eth_type"},
    {0x8000, 6, HEX, "vlan_vid"},
    {0x8000, 10, DECIMAL, "ip_proto"},
    {0x8000, 11, IP4, "ip_src"},
    {0x8000, 12, IP4, "ip_dst"},
    {0x8000, 13, DECIMAL, "tcp_src"},
    {0x8000, 14, DECIMAL, "tcp_dst"},
    {0x8000, 15, DECIMAL, "udp_src"},
    {0x8000, 16, DECIMAL, "udp_dst"},
    {0x8000, 17, DECIMAL, "sctp_src"},
    {0x8000, 18, DECIMAL, "sctp_dst"},
    {0x8000, 19, DECIMAL, "icmp_type"},
    {0x8000, 20, DECIMAL, "icmp_code"},
    {0x8000, 21, DECIMAL, "arp_op"},
    {0x8000, 22, IP4, "arp_spa"},
    {0x8000, 23, IP4, "arp_tpa"},
    {0x8000, 24, MAC, "arp_sha"},
    {0x8000, 25, MAC, "arp_tha"},
    {0x8000, 38, HEX, "tun_id"},
    {0, 1, MAC, "eth_dst"},
    {0, 2, MAC, "eth_src"},
    {0, 7, IP4, "ip_src"},
    {0, 8, IP4, "ip_dst"},
    {0, 16, IP4, "arp_spa"},
    {0, 17, IP4, "arp_tpa"},
    {1, 16, HEX, "tun_id"},
    {1, 17, MAC, "arp_sha"},
    {1, 18, MAC, "arp_tha"},
    {1, 31, IP4, "tun_src"},
    {1, 32, IP4, "tun_dst"},
    {1, 26, HEX, "ip_frag"},
    {1, 34, HEX, "tcp_flags"},
    {1, 37, DECIMAL, "conj_id"},
    {1, 105, HEX, "ct_state"},
    {1, 106, DECIMAL, "ct_zone"},
    {1, 107, HEX, "ct_mark"},
    {1, 120, IP4, "ct_nw_src"},
    {1, 121, IP4, "ct_nw_dst"},
};

static const char *field_name(uint32_t header, enum form *ret_form, char buf[32])
{
    uint16_t class = (uint16_t) (header >> 16);
    uint8_t field = header >> 9 & 0x7f;
    *ret_form = HEX;
    if (class == 1 && field < 16) {
        snprintf(buf, 32, "reg%u", field);
        return buf;
    }
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        if (fields[i].class == class && fields[i].field == field) {
            *ret_form = fields[i].form;
            return fields[i].name;
        }
    }
    snprintf(buf, 32, "field%u.%u", class, field);
    return buf;
}

static uint64_t number(const uint8_t *p, size_t size)
{
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++) {
        v = v << 8 | p[i];
    }
    return v;
}

static void put_port(uint32_t port, struct strbuf *out)
{
    switch (port) {
    case OF_PORT_IN_PORT:
        strbuf_adds(out, "IN_PORT");
        break;
    case OF_PORT_CONTROLLER:
        strbuf_adds(out, "CONTROLLER");
        break;
    case OF_PORT_LOCAL:
        strbuf_adds(out, "LOCAL");
        break;
    default:
        strbuf_addf(out, "%" PRIu32, port);
    }
}

static void put_value(enum form form, const uint8_t *p, size_t size, struct strbuf *out)
{
    if (form == IP4 && size == 4) {
        strbuf_adds(out, IP4_TEXT(be32_get(p)));
    } else if (form == MAC && size == 6) {
        struct mac m;
        memcpy(m.b, p, sizeof m.b);
        strbuf_adds(out, MAC_TEXT(m));
    } else if (form == PORT && size == 4) {
        put_port(be32_get(p), out);
    } else if (size > 8) {
        strbuf_adds(out, "0x");
        for (size_t i = 0; i < size; i++) {
            strbuf_addf(out, "%02x", p[i]);
        }
    } else {
        strbuf_addf(out, form == DECIMAL ? "%" PRIu64 : "%#" PRIx64, number(p, size));
    }
}

/* Bits of a mask that is a prefix; -1: it is none. */
static int prefix_bits(const uint8_t *mask, size_t size)
{
    uint32_t m = size == 4 ? be32_get(mask) : 1;
    uint32_t rest = ~m;
    return m == 1 || rest & (rest + 1) ? -1 : __builtin_popcount(m);
}

static void put_field(uint32_t header, const uint8_t *value, struct strbuf *out)
{
    char buf[32];
    enum form form;
    const char *name = field_name(header, &form, buf);
    bool masked = header & OXM_HASMASK;
    size_t size = (header & 0xff) / (masked ? 2 : 1);
    if (form == ETH_TYPE && size == 2 && !masked) {
        uint16_t type = be16_get(value);
        if (type == 0x0800 || type == 0x0806 || type == 0x86dd) {
            strbuf_adds(out, type == 0x0800 ? "ip" : type == 0x0806 ? "arp" : "ipv6");
            return;
        }
    }
    if (header >> 16 == 0xffff && (header >> 9 & 0x7f) == 42 && (header & 0xff) == 8) {
        /* A field of an ONF experimenter: its id, value, mask. */
        strbuf_addf(out, "tcp_flags=%#x/%#x", be16_get(value + 4), be16_get(value + 6));
        return;
    }
    strbuf_addf(out, "%s=", name);
    put_value(form, value, size, out);
    if (masked) {
        int bits = form == IP4 ? prefix_bits(value + size, size) : -1;
        strbuf_addc(out, '/');
        if (bits >= 0) {
            strbuf_addf(out, "%d", bits);
        } else {
            put_value(form, value + size, size, out);
        }
    }
}

void of_flow_match_text(const struct of_flow *f, struct strbuf *out)
{
    const uint8_t *p = of_flow_match(f);
    for (size_t at = 0; at < f->match_size;) {
        uint32_t header = be32_get(p + at);
        strbuf_adds(out, at ? "," : "");
        put_field(header, p + at + 4, out);
        at += oxm_size(header);
    }
}

/* "NAME[OFS..OFS+BITS-1]" */
static void put_range(uint32_t header, unsigned ofs, unsigned bits, struct strbuf *out)
{
    char buf[32];
    enum form form;
    strbuf_addf(out, "%s[%u..%u]", field_name(header, &form, buf), ofs, ofs + bits - 1);
}

static void put_actions(const uint8_t *p, size_t size, struct strbuf *out);

static void put_ct(const uint8_t *p, size_t size, struct strbuf *out)
{
    char buf[32];
    enum form form;
    uint32_t zone = be32_get(p + 12); /* A field; none: a number. */
    strbuf_adds(out, be16_get(p + 10) & NX_CT_COMMIT ? "ct(commit," : "ct(");
    if (zone) {
        strbuf_addf(out, "zone=%s", field_name(zone, &form, buf));
    } else {
        strbuf_addf(out, "zone=%u", be16_get(p + 16));
    }
    if (p[18] != NX_CT_NO_TABLE) {
        strbuf_addf(out, ",table=%u", p[18]);
    }
    if (size > 24) {
        bool nat = size >= 24 + 16 && be16_get(p + 24) == ACT_EXPERIMENTER &&
                   be16_get(p + 24 + 8) == NX_NAT;
        strbuf_adds(out, nat ? "," : ",exec(");
        put_actions(p + 24, size - 24, out);
        strbuf_adds(out, nat ? "" : ")");
    }
    strbuf_addc(out, ')');
}

static void put_nat(const uint8_t *p, size_t size, struct strbuf *out)
{
    unsigned flags = be16_get(p + 12), has = be16_get(p + 14);
    if (!(flags & (NX_NAT_SRC | NX_NAT_DST)) || !(has & NX_NAT_HAS_IP) || size < 24) {
        strbuf_adds(out, "nat");
        return;
    }
    strbuf_addf(out, "nat(%s=%s", flags & NX_NAT_SRC ? "src" : "dst", IP4_TEXT(be32_get(p + 16)));
    if (has == (NX_NAT_HAS_IP | NX_NAT_HAS_PORT)) {
        strbuf_addf(out, ":%u", be16_get(p + 20));
    }
    strbuf_addc(out, ')');
}

static void put_nicira(const uint8_t *p, size_t size, struct strbuf *out)
{
    unsigned subtype = be16_get(p + 8);
    if (subtype == NX_REG_MOVE && size >= 24) {
        unsigned bits = be16_get(p + 10);
        strbuf_adds(out, "move:");
        put_range(be32_get(p + 16), be16_get(p + 12), bits, out);
        strbuf_adds(out, "->");
        put_range(be32_get(p + 20), be16_get(p + 14), bits, out);
    } else if (subtype == NX_REG_LOAD && size >= 24) {
        unsigned range = be16_get(p + 10);
        strbuf_addf(out, "load:%#" PRIx64 "->", be64_get(p + 16));
        put_range(be32_get(p + 12), range >> 6, (range & 63) + 1, out);
    } else if (subtype == NX_OUTPUT_REG && size >= 24) {
        char buf[32];
        enum form form;
        strbuf_addf(out, "output:%s", field_name(be32_get(p + 12), &form, buf));
    } else if (subtype == NX_CONJUNCTION && size >= 16) {
        strbuf_addf(out, "conjunction(%" PRIu32 ",%u/%u)", be32_get(p + 12), p[10] + 1, p[11]);
    } else if (subtype == NX_MULTIPATH && size >= 32) {
        strbuf_adds(out, "multipath->");
        put_range(be32_get(p + 28), be16_get(p + 26) >> 6, (be16_get(p + 26) & 63) + 1, out);
    } else if (subtype == NX_CT && size >= 24) {
        put_ct(p, size, out);
    } else if (subtype == NX_NAT && size >= 16) {
        put_nat(p, size, out);
    } else if (subtype == NX_RESUBMIT_TABLE && size >= 16) {
        strbuf_addf(out, "resubmit(,%u)", p[12]);
    } else if (subtype == NX_LEARN && size >= 32) {
        strbuf_addf(out, "learn(table=%u,idle_timeout=%u)", p[26], be16_get(p + 10));
    } else {
        strbuf_addf(out, "nicira:%u", subtype);
    }
}

static void put_action(const uint8_t *p, size_t size, struct strbuf *out)
{
    unsigned type = be16_get(p);
    if (type == ACT_OUTPUT && size >= 16) {
        uint32_t port = be32_get(p + 4);
        strbuf_adds(out, port == OF_PORT_CONTROLLER ? "" : "output:");
        put_port(port, out);
    } else if (type == ACT_SET_FIELD && size >= 8) {
        uint32_t header = be32_get(p + 4);
        bool whole = !(header & OXM_HASMASK) && 8 + (header & 0xff) <= size;
        strbuf_adds(out, "set:");
        if (whole) {
            put_field(header, p + 8, out);
        }
    } else if (type == ACT_EXPERIMENTER && size >= 16 && be32_get(p + 4) == NX_VENDOR) {
        put_nicira(p, size, out);
    } else {
        strbuf_addf(out, "action%u", type);
    }
}

static void put_actions(const uint8_t *p, size_t size, struct strbuf *out)
{
    for (size_t at = 0; size - at >= 8;) {
        size_t n = be16_get(p + at + 2);
        if (n < 8 || n > size - at) {
            return;
        }
        strbuf_adds(out, at ? "," : "");
        put_action(p + at, n, out);
        at += n;
    }
}

void of_flow_actions_text(const struct of_flow *f, struct strbuf *out)
{
    const uint8_t *p = of_flow_instructions(f);
    if (!f->instructions_size) {
        strbuf_adds(out, "drop");
    }
    for (size_t at = 0; at < f->instructions_size;) {
        size_t n = be16_get(p + at + 2);
        strbuf_adds(out, at ? "," : "");
        switch (be16_get(p + at)) {
        case OF_INST_METER:
            strbuf_addf(out, "meter:%" PRIu32, be32_get(p + at + 4));
            break;
        case OF_INST_APPLY:
            put_actions(p + at + 8, n - 8, out);
            break;
        case OF_INST_GOTO:
            strbuf_addf(out, "goto:%u", p[at + 4]);
            break;
        default:
            strbuf_addf(out, "instruction%u", be16_get(p + at));
        }
        at += n;
    }
}
