/* SPDX-License-Identifier: Apache-2.0 */
#include "frame_reader.h"

bool has_whole_l4(const struct frame *f)
{
    size_t l4 = 4 * (size_t) (f->bytes[14] & 15), size = get16(f, 16) - l4;
    if (f->bytes[23] == 6) {
        size_t own = size < 20 ? 0 : 4 * (size_t) (f->bytes[14 + l4 + 12] >> 4);
        return own >= 20 && own <= size;
    }
    return size >= (f->bytes[23] == 132 ? 12 : 8);
}

/* RFC 792: what quotes a packet of its receiver. */
static void read_error(const struct frame *f, struct model_packet *p)
{
    size_t icmp = l4_of(f), quote = icmp + 8;
    if (p->ip.proto != 1 || p->ip.later_fragment || quote > 14 + (size_t) get16(f, 16)) {
        return;
    }
    uint8_t type = f->bytes[icmp];
    p->ip.icmp_error = type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
    p->ip.quoted_dst = quote + 20 <= f->size ? get32(f, quote + 16) : 0;
}

static void read_ip(const struct frame *f, struct model_packet *p)
{
    unsigned words = f->bytes[14] & 15;
    size_t total = get16(f, 16);
    if (f->size < 34 || words < 5 || total < 4 * (size_t) words || total > f->size - 14) {
        return; /* Says that it is IPv4, and has none of it. */
    }
    p->ip.proto = f->bytes[23];
    p->ip.src = get32(f, 26);
    p->ip.dst = get32(f, 30);
    p->ip.later_fragment = get16(f, 20) & 0x1fff;
    size_t ports_at = 14 + 4 * (size_t) words;
    if (!p->ip.later_fragment && has_whole_l4(f)) {
        p->ip.src_port = get16(f, ports_at);
        p->ip.dst_port = get16(f, ports_at + 2);
    }
    read_error(f, p);
}

struct model_packet read_frame(const struct frame *f)
{
    struct model_packet p = {.entry = f->entry,
                             .port = f->port,
                             .outer_src = f->outer_src,
                             .tunnel_id = f->tunnel_id,
                             .eth_dst = get_mac(f, 0),
                             .eth_src = get_mac(f, 6),
                             .eth_type = get16(f, 12)};
    p.has_vlan = (p.eth_type == 0x8100 || p.eth_type == 0x88a8) && f->size >= 18;
    if (p.eth_type == MODEL_ETH_IP4) {
        read_ip(f, &p);
    } else if (p.eth_type == MODEL_ETH_ARP && f->size >= 42 && get16(f, 14) == 1 &&
               get16(f, 16) == MODEL_ETH_IP4 && f->bytes[18] == 6 && f->bytes[19] == 4) {
        p.arp.op = get16(f, 20);
        p.arp.sha = get_mac(f, 22);
        p.arp.spa = get32(f, 28);
        p.arp.tha = get_mac(f, 32);
        p.arp.tpa = get32(f, 38);
    }
    return p;
}

bool is_malformed(const struct frame *f)
{
    struct model_packet p = read_frame(f);
    bool tagged = p.eth_type == 0x8100 || p.eth_type == 0x88a8;
    return (p.eth_type == MODEL_ETH_IP4 && !p.ip.src && !p.ip.dst) || (tagged && !p.has_vlan);
}

bool is_first_fragment(const struct frame *f)
{
    return get16(f, 12) == MODEL_ETH_IP4 && (get16(f, 20) & 0x3fff) == 0x2000 && !is_malformed(f);
}

bool ends_connection(const struct frame *f)
{
    return get16(f, 12) == MODEL_ETH_IP4 && f->bytes[23] == 6 && !(get16(f, 20) & 0x1fff) &&
           !is_malformed(f) && has_whole_l4(f) &&
           (f->bytes[14 + 4 * (f->bytes[14] & 15) + 13] & 5) != 0; /* FIN or RST. */
}
