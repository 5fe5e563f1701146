/* SPDX-License-Identifier: Apache-2.0 */
#include "random_frames.h"

#include "rng.h"

enum { L4_SIZE = 20 };

/* What an honest sender puts in. */
static uint32_t enter(const struct cluster *c, struct frame *f, struct mac *ret_src)
{
    unsigned from = below(100);
    *ret_src = some_mac(c);
    if (from < 50) {
        const struct model_pod *p = c->n_pods ? &c->pods[below((uint32_t) c->n_pods)] : NULL;
        f->entry = MODEL_FROM_PORT;
        f->port = p && chance(95) ? p->port : FIRST_PORT + below(MAX_PORTS);
        *ret_src = p && chance(95) ? p->mac : *ret_src;
        return p && chance(95) ? p->ip : some_address(c);
    }
    if (from < 80) {
        const struct sdn_remote *r =
            c->net.n_remotes ? &c->remotes[below((uint32_t) c->net.n_remotes)] : NULL;
        f->entry = MODEL_FROM_TUNNEL;
        f->outer_src = r && chance(90) ? r->host_ip : HOST(1 + below(9));
        f->tunnel_id = chance(90) ? some_vnid() : below(SDN_VNID_MAX + 1);
        return r && r->subnet.len && chance(90)
                   ? r->subnet.addr + below((uint32_t) prefix_size(r->subnet))
                   : some_address(c);
    }
    f->entry = MODEL_FROM_HOST;
    return chance(60)   ? sdn_gateway(&c->net)
           : chance(60) ? (chance(50) ? HOST(1) : IP(8, 8, 4, 4))
                        : some_address(c);
}

/* By one of its addresses; mostly to a port that it has. */
static void aim_at_service(const struct cluster *c, struct frame *f, size_t l4)
{
    uint32_t number = below((uint32_t) c->n_services);
    const struct sdn_service *s = c->parsed[number];
    f->bytes[23] = chance(50) ? 6 : chance(90) ? MODEL_PROTO_UDP : 132;
    set16(f, l4 + 2, (chance(90) ? RANDOM_SERVICE_PORT : 1010) + number);
    set32(f, 30, chance(5) ? SDN_ITSELF_IP : s->cluster_ip);
    if (s->host_ports && chance(90)) {
        set16(f, l4 + 2, s->ports[below(s->n_ports)].port);
    }
    if (s->n_external_ips && chance(30)) {
        set32(f, 30, s->external_ips[below((uint32_t) s->n_external_ips)]);
    } else if (chance(30)) {
        set16(f, l4 + 2, RANDOM_NODE_PORT + number);
        set32(f, 30, chance(40) ? HOST(1) : chance(20) ? sdn_gateway(&c->net) : HOST(2 + below(8)));
    }
    if (f->bytes[23] == MODEL_PROTO_UDP && chance(20)) {
        set16(f, l4 + 6, 0); /* Without a checksum. */
    }
}

/* The datagram's rest becomes a frame that a tunnel carries (RFC 7348). */
static void add_tunnelled(const struct cluster *c, struct frame *f, size_t l4)
{
    f->size = l4 + 8;
    add32(f, 0x08000000);
    add32(f, some_vnid() << 8);
    add(f, some_mac(c).b, 6);
    add(f, some_mac(c).b, 6);
    add16(f, MODEL_ETH_IP4);
    add32(f, 0x45000014);
    add32(f, 0);
    add32(f, 0x40110000);
    add32(f, some_address(c));
    add32(f, some_address(c));
    set16(f, 16, (uint32_t) (f->size - 14));
    set16(f, l4 + 4, (uint32_t) (f->size - l4));
}

static void add_ip(const struct cluster *c, struct frame *f, uint32_t src)
{
    static const uint8_t protocols[] = {1, 6, 17, 17, 17, 132, 4, 47};
    unsigned words = chance(85) ? 5 : 5 + below(11);
    bool later = chance(15);
    unsigned version = chance(98) ? 4 : below(16);
    add16(f, (uint16_t) ((version << 4 | words) << 8 | (chance(70) ? 0 : below(256))));
    add16(f, (uint16_t) (4 * words + L4_SIZE));
    add16(f, (uint16_t) rng());
    add16(f, later ? (uint16_t) (1 + below(0x1fff)) : chance(10) ? 0x2000 : 0x4000);
    f->bytes[f->size++] = 64;
    f->bytes[f->size++] = PICK(protocols);
    add16(f, 0);
    add32(f, src);
    add32(f, f->entry == MODEL_FROM_TUNNEL && chance(50) && c->n_pods
                 ? c->pods[below((uint32_t) c->n_pods)].ip
                 : some_address(c));
    for (unsigned i = 5; i < words; i++) {
        add32(f, 0x01010101); /* Options that do nothing. */
    }
    static const uint16_t judged[] = {53, 80, 8080, 65535};
    add16(f, (uint16_t) rng());
    add16(f, chance(15) ? c->net.vxlan_port : chance(40) ? PICK(judged) : (uint16_t) rng());
    for (size_t i = 4; i < L4_SIZE; i += 4) {
        add32(f, (uint32_t) rng());
    }
    size_t l4 = 14 + 4 * (size_t) words;
    if (f->entry == MODEL_FROM_PORT && c->n_services && chance(50)) {
        aim_at_service(c, f, l4);
    }
    if (f->bytes[23] == 6 && chance(95)) {
        f->bytes[l4 + 12] = 0x50; /* Five words. */
    }
    if (f->bytes[23] == MODEL_PROTO_UDP && get16(f, l4 + 2) == c->net.vxlan_port && !later) {
        add_tunnelled(c, f, l4);
    }
}

/* About a packet that the receiver sent to the sender, or not. */
static void add_error(const struct cluster *c, struct frame *f, uint32_t src)
{
    static const uint8_t types[] = {3, 4, 5, 11, 12};
    struct frame about = {.size = 14};
    uint32_t dst = some_address(c);
    if (f->entry == MODEL_FROM_TUNNEL && chance(50) && c->n_pods) {
        dst = c->pods[below((uint32_t) c->n_pods)].ip;
    }
    add_ip(c, &about, chance(90) ? dst : some_address(c));
    if (chance(50)) {
        set32(&about, 30, src);
    }
    make_error(f, &about, src, dst);
    f->bytes[ICMP_AT] = PICK(types);
    f->connection = chance(80) ? MODEL_RELATED : MODEL_NEW;
}

static void add_arp(const struct cluster *c, struct frame *f, uint32_t src, struct mac mac)
{
    static const uint16_t ops[] = {1, 1, 1, 1, 1, 1, 1, 2, 0, 8};
    struct mac sha = chance(95) ? mac : some_mac(c), tha = some_mac(c);
    add16(f, chance(97) ? 1 : 6);
    add16(f, chance(97) ? MODEL_ETH_IP4 : 0x86dd);
    f->bytes[f->size++] = chance(97) ? 6 : 8;
    f->bytes[f->size++] = chance(97) ? 4 : 16;
    add16(f, PICK(ops));
    add(f, sha.b, 6);
    add32(f, src);
    add(f, tha.b, 6);
    add32(f, some_address(c));
}

void make_frame(const struct cluster *c, struct frame *f)
{
    static const uint16_t odd[] = {0x86dd, 0x8035, 0x88cc, 0x0600, 0x9000};
    *f = (struct frame){0};
    struct mac src_mac, dst_mac = some_mac(c);
    uint32_t src = enter(c, f, &src_mac);
    add(f, dst_mac.b, 6);
    add(f, src_mac.b, 6);
    if (chance(4)) {
        add16(f, chance(70) ? 0x8100 : 0x88a8);
        add16(f, (uint16_t) rng());
    }
    unsigned kind = below(100);
    bool error = f->size == 12 && kind < 8;
    if (error) {
        add16(f, MODEL_ETH_IP4);
        add_error(c, f, src);
    } else if (kind < 70) {
        add16(f, MODEL_ETH_IP4);
        add_ip(c, f, src);
    } else if (kind < 96) {
        add16(f, MODEL_ETH_ARP);
        add_arp(c, f, src, src_mac);
    } else {
        add16(f, PICK(odd));
        add32(f, (uint32_t) rng());
    }
    if (chance(5)) {
        f->size = RANDOM_FRAME_MIN + below((uint32_t) (f->size - RANDOM_FRAME_MIN));
    }
    if (chance(10)) {
        f->bytes[12 + below((uint32_t) f->size - 12)] ^= (unsigned char) (1u << below(8));
    }
    /* Nor on one without the whole header that its type promises. */
    uint16_t type = get16(f, 12);
    f->size = MAX(f->size, type == MODEL_ETH_IP4 ? 34u : type == 0x86dd ? 54u : RANDOM_FRAME_MIN);
    if (!error) {
        f->connection = chance(50) ? MODEL_NEW : chance(50) ? MODEL_ORIGINAL : MODEL_REPLY;
    }
    f->denied = f->connection != MODEL_NEW && chance(30);
}
