/* SPDX-License-Identifier: Apache-2.0 */
/* The eBPF programs against the model: random networks, and frames as bytes, honest, forged and malformed, which the
 * kernel runs through the programs (BPF_PROG_TEST_RUN) without any link.  They and sdn/model.c must say the same, down to
 * the cause of a drop and the bytes with which a frame leaves.
 *
 * TENET_EBPF_CLUSTERS: how many networks, 100 frames each (default 600).  Each run begins with another seed, which it
 * prints; TENET_EBPF_SEED repeats one.
 *
 * And all three ways: the same frames are given to a real Open vSwitch with our flows (ofproto/trace), too.
 * TENET_THREE_FRAMES: how many (default 3,000; "make model" takes a million). */
#include "base/mem.h"
#include "base/str.h"
#include "datapath/ebpf/encode.h"
#include "datapath/ebpf/policy.h"
#include "datapath/ebpf/program.h"
#include "frames.h"
#include "random_policies.h"
#include "random_services.h"
#include "sdn/model.h"
#include "third_side.h"
#include "tracked_frames.h"
#include "wire_frames.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/pkt_cls.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include <cmocka.h>

#define IP(a, b, c, d) \
    ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))
#define HOST(i) IP(192, 168, 100, i)

enum {
    DEFAULT_CLUSTERS = 600,
    FRAMES = 100,
    FIRST_PORT = SWITCH_FIRST_PORT,
    MAX_PORTS = 9, /* More than pods: some are nobody's. */
    MAX_PODS = 6,
    MAX_REMOTES = 5,
    MAX_SERVICES = RANDOM_SERVICES,
    L4_SIZE = 20,
    MAX_HOSTS = 10,
    SIZE_MIN = 15, /* The kernel runs no program on a frame with nothing in it. */
};
static const struct devices devices = {.tun = 2001, .host = 2002, .vxlan = 2003};

struct cluster {
    struct sdn_network net;
    struct sdn_remote remotes[MAX_REMOTES];
    struct path ways[MAX_HOSTS]; /* To HOST(i); some are not known. */
    struct model_pod pods[MAX_PODS];
    size_t n_pods;
    struct sdn_service *parsed[MAX_SERVICES];
    struct model_service services[MAX_SERVICES];
    size_t n_services;
    struct random_policies policies; /* Under ovs-networkpolicy. */
};

#define NODE_NAME "this"

static struct program program;
static bool program_is_direct;             /* It puts outer headers on and takes them off, ... */
static uint64_t sent_direct, taken_direct; /* ... so often. */
static struct policy_maps policy_maps;
static struct table routes, vteps, pods, ports, services, backends, serving;

/* ---- random ---- */

static uint64_t seed, rng_state;

static uint64_t rng64(void)
{
    uint64_t z = rng_state += 0x9e3779b97f4a7c15; /* splitmix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static uint32_t rng(void)
{
    return (uint32_t) rng64();
}

static uint32_t below(uint32_t n)
{
    return rng() % n;
}

static bool chance(unsigned percent)
{
    return below(100) < percent;
}

#define PICK(array) ((array)[below(ARRAY_SIZE(array))])

/* ---- networks ---- */

static const uint32_t vnids[] = {SDN_VNID_GLOBAL, SDN_VNID_NOBODY, 42, 43,
                                 42 + 0x10000,    SDN_VNID_MAX};

static void make_cluster(struct cluster *c)
{
    static const struct ip4_prefix service_networks[] = {
        {0}, {IP(172, 30, 0, 0), 16}, {IP(10, 132, 0, 0), 24}};
    static const enum sdn_plugin plugins[] = {SDN_SUBNET, SDN_MULTITENANT, SDN_MULTITENANT,
                                              SDN_NETWORKPOLICY, SDN_NETWORKPOLICY};
    *c = (struct cluster){.net = {.plugin = PICK(plugins),
                                  .cluster = {{IP(10, 128, 0, 0), 14}, {IP(172, 16, 0, 0), 20}},
                                  .n_cluster = 1 + below(2),
                                  .service = PICK(service_networks),
                                  .local = {IP(10, 128, 2, 0), (uint8_t) (chance(50) ? 23 : 28)},
                                  .host_ip = HOST(1),
                                  .vxlan_port = chance(80) ? SDN_VXLAN_PORT : 4790,
                                  .refusal_meter = 1,
                                  .mtu = 1450}};
    c->net.remotes = c->remotes;
    for (uint32_t slot = 0; slot < MAX_REMOTES; slot++) {
        struct sdn_remote r = {.host_ip = HOST(2 + below(6)),
                               .subnet = {IP(10, 128, 4 + 2 * slot, 0), 23},
                               .has_fixed_vnid = chance(25),
                               .fixed_vnid = PICK(vnids)};
        if (chance(15)) {
            r.subnet = (struct ip4_prefix){0};
        } else if (chance(15)) { /* Claims this node's. */
            r.subnet = (struct ip4_prefix){IP(10, 128, 2, 0), (uint8_t) (22 + below(4))};
            r.subnet.addr &= prefix_mask(r.subnet.len);
        }
        if (chance(80)) {
            c->remotes[c->net.n_remotes++] = r;
        }
    }
    for (uint32_t i = 0; i < MAX_PODS; i++) {
        if (chance(80)) {
            uint32_t ip = sdn_gateway(&c->net) + 1 + 2 * i;
            c->pods[c->n_pods++] = (struct model_pod){.port = FIRST_PORT + i,
                                                      .ip = ip,
                                                      .mac = mac_from_ip4(ip),
                                                      .vnid = PICK(vnids),
                                                      .has_also = chance(20),
                                                      .also_vnid = PICK(vnids)};
        }
    }
}

static void make_ways(struct cluster *c)
{
    for (uint32_t i = 0; i < MAX_HOSTS; i++) {
        if (chance(70)) {
            c->ways[i] = (struct path){(int) (3001 + below(3)), HOST(below(MAX_HOSTS)),
                                       chance(80) ? 1500 : 84 + below(40)};
        }
    }
}

static void add_policies(struct cluster *c)
{
    random_policies_init(&c->policies, rng64);
    for (size_t i = 0; i < c->n_pods; i++) {
        random_policies_add(&c->policies, c->pods[i].ip, true, false);
    }
    for (size_t n = below(12); n > 0 && c->net.n_remotes; n--) {
        struct ip4_prefix p = c->remotes[below((uint32_t) c->net.n_remotes)].subnet;
        if (p.len && !prefix_overlaps(p, c->net.local)) {
            uint32_t ip = p.addr + below((uint32_t) prefix_size(p));
            random_policies_add(&c->policies, ip, false, false);
        }
    }
    for (size_t n = below(3); n > 0; n--) {
        random_policies_add(&c->policies, HOST(1 + below(3)), false, true);
    }
    random_policies_make(&c->policies);
}

static uint32_t some_address(const struct cluster *c);

static uint32_t endpoint_address(const void *ctx)
{
    return some_address(ctx);
}

static void add_services(struct cluster *c)
{
    struct random_service_world w = {&c->net, NODE_NAME, rng64, endpoint_address, c};
    for (c->n_services = 0; c->n_services < below(2 * MAX_SERVICES) % (MAX_SERVICES + 1);) {
        size_t i = c->n_services++;
        c->parsed[i] = random_service(&w, (unsigned) i);
        c->services[i] = (struct model_service){c->parsed[i], PICK(vnids), chance(20), PICK(vnids)};
    }
    c->net.service_by_host = c->net.plugin != SDN_NETWORKPOLICY && chance(10);
}

static void free_cluster(struct cluster *c)
{
    for (size_t i = 0; i < c->n_services; i++) {
        sdn_service_free(c->parsed[i]);
    }
}

static void put(struct table *t, struct table_row *rows, size_t n)
{
    struct err e = {0};
    size_t changes, refused;
    table_sync(t, rows, n, &changes, &refused, &e);
    assert_string_equal(e.text, "");
    assert_int_equal(refused, 0);
}

static void commit_policies(void)
{
    struct err e = {0};
    assert_int_equal(policy_maps_commit(&policy_maps, &e), 0);
    assert_string_equal(e.text, "");
}

/* The policies by one of the ways in which a cluster may have come to them. */
static struct policy *load_policies(const struct cluster *c)
{
    static const struct policy_ops no_flows = {0};
    struct policy *p = policy_new(c->net.local, &no_flows, NULL);
    policy_want_table(p, &policy_maps_ops, &policy_maps);
    if (c->net.plugin == SDN_NETWORKPOLICY) {
        random_policies_mislead(&c->policies, p);
        policy_flush(p);
        commit_policies();
        random_policies_tell(&c->policies, p);
        policy_flush(p);
    }
    commit_policies();
    return p;
}

/* Where what the link receives comes in; some are limited. */
static int inlet_of(uint32_t port)
{
    return (int) (port % 3 ? port : port + 500);
}

static void load(const struct cluster *c)
{
    size_t n;
    struct path ways[MAX_REMOTES];
    for (size_t i = 0; i < c->net.n_remotes; i++) {
        ways[i] = c->ways[c->remotes[i].host_ip - HOST(0)];
    }
    struct table_row *rows = encode_routes(&c->net, ways, &n);
    put(&routes, rows, n);
    rows = encode_vteps(&c->net, &n);
    put(&vteps, rows, n);
    struct table_row *a = xcalloc(MAX_PODS, sizeof *a), *b = xcalloc(MAX_PODS, sizeof *b);
    for (size_t i = 0; i < c->n_pods; i++) {
        const struct model_pod *p = &c->pods[i];
        struct encode_pod x = {.ip = p->ip,
                               .mac = p->mac,
                               .vnid = p->vnid,
                               .has_also = p->has_also,
                               .also_vnid = p->also_vnid,
                               .queued = chance(20),
                               .ifindex = (int) p->port,
                               .inlet = inlet_of(p->port)};
        assert_true(encode_pod(&c->net, &x, &a[i], &b[i]));
    }
    put(&pods, a, c->n_pods);
    put(&ports, b, c->n_pods);
    struct encoded_services es;
    encode_services(&c->net, NODE_NAME, c->services, c->n_services, &es);
    put(&services, es.services, es.n_services);
    put(&backends, es.backends, es.n_backends);
    put(&serving, es.serving, es.n_backends);
    struct ebpf_connection_key key;
    while (bpf_map_get_next_key(program.conns, NULL, &key) == 0) {
        bpf_map_delete_elem(program.conns, &key);
    }
    struct ebpf_affinity_key client;
    while (bpf_map_get_next_key(program.affinity, NULL, &client) == 0) {
        bpf_map_delete_elem(program.affinity, &client);
    }
    struct ebpf_settings s = encode_settings(&c->net, &devices, true);
    uint32_t zero = 0;
    assert_int_equal(bpf_map_update_elem(program.settings, &zero, &s, BPF_ANY), 0);
}

/* ---- frames ---- */

static uint32_t some_address(const struct cluster *c)
{
    static const uint32_t others[] = {0,
                                      IP(8, 8, 8, 8),
                                      IP(127, 0, 0, 1),
                                      IP(223, 255, 255, 255),
                                      IP(224, 0, 0, 0),
                                      IP(239, 255, 255, 255),
                                      IP(240, 0, 0, 0),
                                      IP(255, 255, 255, 255),
                                      IP(172, 30, 0, 1),
                                      IP(10, 132, 0, 7),
                                      IP(10, 131, 255, 255),
                                      IP(172, 16, 3, 4),
                                      HOST(1),
                                      HOST(2)};
    unsigned kind = below(100);
    if (chance(25) && c->policies.model.n_endpoints) {
        return c->policies.endpoints[below((uint32_t) c->policies.model.n_endpoints)].ip;
    }
    if (kind < 45 && c->n_pods) {
        return c->pods[below((uint32_t) c->n_pods)].ip;
    }
    if (kind < 55) {
        return c->net.local.addr + below((uint32_t) prefix_size(c->net.local));
    }
    if (kind < 60) {
        return sdn_gateway(&c->net);
    }
    return kind < 85 ? IP(10, 128, below(16), below(256)) : PICK(others);
}

static struct mac some_mac(const struct cluster *c)
{
    return chance(80) ? mac_from_ip4(some_address(c)) : (struct mac){{2, 0, 0, 0, 0, 7}};
}

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
        f->tunnel_id = chance(90) ? PICK(vnids) : below(SDN_VNID_MAX + 1);
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
    if (s->n_external_ips && chance(30)) {
        set32(f, 30, s->external_ips[below((uint32_t) s->n_external_ips)]);
    } else if (chance(30)) {
        set16(f, l4 + 2, RANDOM_NODE_PORT + number);
        set32(f, 30, chance(40) ? HOST(1) : chance(40) ? sdn_gateway(&c->net) : HOST(2 + below(6)));
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
    add32(f, PICK(vnids) << 8);
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
    add16(f, (uint16_t) ((0x40 | words) << 8 | (chance(70) ? 0 : below(256))));
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
        add32(f, rng());
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

static void make_frame(const struct cluster *c, struct frame *f)
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
    if (kind < 70) {
        add16(f, MODEL_ETH_IP4);
        add_ip(c, f, src);
    } else if (kind < 96) {
        add16(f, MODEL_ETH_ARP);
        add_arp(c, f, src, src_mac);
    } else {
        add16(f, PICK(odd));
        add32(f, rng());
    }
    if (chance(5)) {
        f->size = SIZE_MIN + below((uint32_t) (f->size - SIZE_MIN));
    }
    if (chance(10)) {
        f->bytes[12 + below((uint32_t) f->size - 12)] ^= (unsigned char) (1u << below(8));
    }
    /* Nor on one without the whole header that its type promises. */
    uint16_t type = get16(f, 12);
    f->size = MAX(f->size, type == MODEL_ETH_IP4 ? 34u : type == 0x86dd ? 54u : SIZE_MIN);
    f->connection = chance(50) ? MODEL_NEW : chance(50) ? MODEL_ONWARD : MODEL_REPLY;
    f->denied = f->connection != MODEL_NEW && chance(30);
}

/* ---- what the model says of bytes ---- */

/* Of a frame whose IP header is whole: what has ports has all of that header. */
static bool has_whole_l4(const struct frame *f)
{
    size_t l4 = 4 * (size_t) (f->bytes[14] & 15), size = get16(f, 16) - l4;
    if (f->bytes[23] == 6) {
        size_t own = size < 20 ? 0 : 4 * (size_t) (f->bytes[14 + l4 + 12] >> 4);
        return own >= 20 && own <= size;
    }
    return size >= (f->bytes[23] == 132 ? 12 : 8);
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
}

static struct model_packet read_frame(const struct frame *f)
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

/* A switch knows no fields of a header that is cut or contradicts itself. */
static bool is_malformed(const struct frame *f)
{
    struct model_packet p = read_frame(f);
    bool tagged = p.eth_type == 0x8100 || p.eth_type == 0x88a8;
    return (p.eth_type == MODEL_ETH_IP4 && !p.ip.src && !p.ip.dst) || (tagged && !p.has_vlan);
}

static bool ends_connection(const struct frame *f)
{
    return get16(f, 12) == MODEL_ETH_IP4 && f->bytes[23] == 6 && !(get16(f, 20) & 0x1fff) &&
           !is_malformed(f) && has_whole_l4(f) &&
           (f->bytes[14 + 4 * (f->bytes[14] & 15) + 13] & 5) != 0; /* FIN or RST. */
}

/* Whether the link's pod sent it, and nobody in its name. */
static bool is_honest(const struct cluster *c, const struct frame *f)
{
    for (size_t i = 0; i < c->n_pods; i++) {
        if (c->pods[i].port == f->port) {
            return mac_equal(get_mac(f, 6), c->pods[i].mac) && get32(f, 26) == c->pods[i].ip;
        }
    }
    return false;
}

/* What is refused aloud: what has ports, and no options before them; a service that sleeps is not dead. */
static bool may_be_told(const struct cluster *c, const struct frame *f,
                        const struct model_verdict *v)
{
    bool udp = f->bytes[23] == MODEL_PROTO_UDP;
    return (f->bytes[14] & 15) == 5 && (udp || f->bytes[23] == 6) && !(get16(f, 20) & 0x1fff) &&
           has_whole_l4(f) && v->cause != MODEL_SERVICE_IDLE && is_honest(c, f);
}

/* How it leaves, in words; and, changed in '*left', as what. */
static void expect(const struct cluster *c, const struct frame *f, const struct model_verdict *v,
                   struct strbuf *out, struct frame *left)
{
    switch (v->action) {
    case MODEL_DROP:
        strbuf_addf(out, "drop: %s", model_cause_name(v->cause));
        if (v->refused && may_be_told(c, f, v)) {
            strbuf_adds(out, ", refused");
        }
        break;
    case MODEL_DELIVER:
        strbuf_addf(out, "deliver to %u", v->port);
        memcpy(left->bytes, v->eth_dst.b, 6);
        break;
    case MODEL_TRANSLATE: /* The caller asks again with what it became. */
        fail();
        break;
    case MODEL_HOST:
        strbuf_addf(out, "host by %d", devices.tun);
        memcpy(left->bytes, v->eth_dst.b, 6);
        break;
    case MODEL_TUNNEL:
        strbuf_addf(out, "tunnel to %s id %u", IP4_TEXT(v->remote), v->tunnel_id);
        break;
    case MODEL_ANSWER:
        if (f->entry == MODEL_FROM_TUNNEL) {
            strbuf_addf(out, "answer by tunnel to %s id %u", IP4_TEXT(v->remote), v->tunnel_id);
        } else {
            strbuf_addf(out, "answer to %u",
                        f->entry == MODEL_FROM_PORT ? v->port : (uint32_t) devices.host);
        }
        /* RFC 826: the question's sender becomes the target. */
        memcpy(left->bytes, v->eth_dst.b, 6);
        memcpy(left->bytes + 6, v->answer_mac.b, 6);
        left->bytes[21] = 2;
        memcpy(left->bytes + 22, v->answer_mac.b, 6);
        memcpy(left->bytes + 28, f->bytes + 38, 4);
        memcpy(left->bytes + 32, f->bytes + 22, 6);
        memcpy(left->bytes + 38, f->bytes + 28, 4);
        break;
    }
}

/* ---- what the program says ---- */

static int run(int fd, const struct frame *f, struct __sk_buff *after, struct frame *left)
{
    struct __sk_buff in = {0};
    in.cb[EBPF_CB_PORT] = (uint32_t) inlet_of(f->port);
    in.cb[EBPF_CB_OUTER_SRC] = f->outer_src;
    in.cb[EBPF_CB_TUNNEL_ID] = f->tunnel_id;
    LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = f->bytes, .data_size_in = (uint32_t) f->size,
                .data_out = left->bytes, .data_size_out = sizeof left->bytes, .ctx_in = &in,
                .ctx_size_in = sizeof in, .ctx_out = after, .ctx_size_out = sizeof *after);
    int r = bpf_prog_test_run_opts(fd, &o);
    if (r < 0) {
        fail_msg("BPF_PROG_TEST_RUN of %zu bytes: %s", f->size, strerror(-r));
    }
    left->size = o.data_size_out;
    return (int) o.retval;
}

static bool is_wired(const struct cluster *c, uint32_t ip)
{
    for (size_t i = 0; i < c->n_pods; i++) {
        if (c->pods[i].ip == ip) {
            return true;
        }
    }
    return false;
}

/* As it came by the wire: from_wire takes what is for a pod here, and leaves all else as it is to the VXLAN device.
 * Whether it took it. */
static bool run_from_wire(const struct cluster *c, const struct frame *f, struct __sk_buff *after,
                          struct frame *left, int *ret_action)
{
    struct wire_ends ends = {f->outer_src, HOST(1), c->net.vxlan_port, f->tunnel_id};
    struct frame outer = *f;
    uint8_t ecn = f->bytes[WIRE_ETH + 1] & 3, tos = (uint8_t) (below(64) << 2);
    tos |= chance(50) ? ecn : chance(50) ? 2 : 0;
    outer.size = wire_put(&ends, tos, f->bytes, f->size, outer.bytes);
    bool spoiled = chance(30);
    if (spoiled) {
        wire_spoil(below(WIRE_DOUBTS), outer.bytes);
    }
    bool ours = !spoiled && get16(f, 12) == MODEL_ETH_IP4 && is_wired(c, get32(f, 30));
    *ret_action = run(program.from_wire, &outer, after, left);
    if (!ours) {
        assert_int_equal(*ret_action, TC_ACT_UNSPEC);
        assert_int_equal(left->size, outer.size);
        assert_memory_equal(left->bytes, outer.bytes, outer.size);
    }
    return ours;
}

/* Its outer header is right, and comes off, if it is to have one. */
static void take_outer(const struct cluster *c, size_t size, uint32_t vtep, uint32_t vnid,
                       struct frame *left)
{
    struct wire_ends ends = {HOST(1), vtep, c->net.vxlan_port, vnid};
    const struct path *way = &c->ways[vtep - HOST(0)];
    if (!program_is_direct || !way->ifindex || size - WIRE_ETH + WIRE_OUTER > way->mtu) {
        return;
    }
    struct frame inner = {.size = size};
    memcpy(inner.bytes, left->bytes + WIRE_OUTER, inner.size);
    const char *wrong = wire_check(&ends, inner.bytes, inner.size, left->bytes, left->size);
    if (wrong) {
        fail_msg("%s of an outer header is wrong (TENET_EBPF_SEED=%lu)", wrong,
                 (unsigned long) seed);
    }
    memcpy(left->bytes, inner.bytes, inner.size);
    left->size = inner.size;
    sent_direct++;
}

static void observe(const struct cluster *c, const struct frame *f, struct strbuf *out,
                    struct frame *left)
{
    struct __sk_buff after = {0};
    int action, fd = f->entry == MODEL_FROM_PORT     ? program.from_pod
                     : f->entry == MODEL_FROM_TUNNEL ? program.from_tunnel
                                                     : program.from_host;
    bool by_wire = program_is_direct && f->entry == MODEL_FROM_TUNNEL &&
                   run_from_wire(c, f, &after, left, &action);
    if (by_wire) {
        taken_direct++;
    } else {
        action = run(fd, f, &after, left);
    }
    uint32_t verdict = after.cb[EBPF_CB_VERDICT] & 0xffff, target = after.cb[EBPF_CB_TARGET];
    uint32_t id = after.cb[EBPF_CB_TUNNEL_ID];
    if (verdict == EBPF_DROP || verdict == EBPF_REFUSED) {
        assert_int_equal(action, verdict == EBPF_DROP ? TC_ACT_SHOT : TC_ACT_REDIRECT);
        strbuf_addf(out, "drop: %s%s",
                    model_cause_name(encode_cause(after.cb[EBPF_CB_VERDICT] >> 16)),
                    verdict == EBPF_DROP ? "" : ", refused");
        return;
    }
    assert_int_equal(action, TC_ACT_REDIRECT);
    if (verdict == EBPF_DELIVER) {
        strbuf_addf(out, "deliver to %u", target);
    } else if (verdict == EBPF_HOST) {
        strbuf_addf(out, "host by %u", target);
    } else if (verdict == EBPF_TUNNEL || f->entry == MODEL_FROM_TUNNEL) {
        strbuf_addf(out, "%s to %s id %u", verdict == EBPF_TUNNEL ? "tunnel" : "answer by tunnel",
                    IP4_TEXT(target), id);
        if (verdict == EBPF_TUNNEL) {
            take_outer(c, f->size, target, id, left);
        }
    } else {
        strbuf_addf(out, "answer to %u", target);
    }
}

/* ---- services ---- */

/* 'left' is as 'f' would be with these ends, and with checksums that are right if they were. */
static void check_sums(const struct frame *f, struct frame *left)
{
    bool none = f->bytes[23] == MODEL_PROTO_UDP && get16(f, checksum_of(f)) == 0;
    assert_int_equal(sum_of(f, true), sum_of(left, true));
    if (none) {
        assert_int_equal(get16(left, checksum_of(left)), 0);
    } else {
        assert_int_equal(sum_of(f, false), sum_of(left, false));
    }
}

/* An ICMP error about 'f' from the gateway to its pod, which quotes it as the pod sent it. */
static void check_refusal(const struct cluster *c, const struct frame *f, const struct frame *got)
{
    bool udp = f->bytes[23] == MODEL_PROTO_UDP;
    size_t quoted = udp ? 28 : 40;
    assert_int_equal(got->size, 14 + 28 + quoted);
    assert_memory_equal(got->bytes, f->bytes + 6, 6);
    assert_memory_equal(got->bytes + 6, f->bytes, 6);
    assert_int_equal(get16(got, 12), MODEL_ETH_IP4);
    assert_int_equal(got->bytes[14], 0x45);
    assert_int_equal(get16(got, 16), 28 + quoted);
    assert_int_equal(got->bytes[23], 1);
    assert_int_equal(get32(got, 26), sdn_gateway(&c->net));
    assert_int_equal(get32(got, 30), get32(f, 26));
    assert_int_equal(ones_sum(got, 14, 34), 0);
    assert_int_equal(ones_sum(got, 34, got->size), 0);
    assert_int_equal(got->bytes[34], 3);
    /* But for checksums, which were changed there and back: zero has two forms. */
    struct frame quote = *f;
    memcpy(quote.bytes + 24, got->bytes + 42 + 10, 2);
    memcpy(quote.bytes + checksum_of(f), got->bytes + 42 + checksum_of(f) - 14, 2);
    assert_memory_equal(got->bytes + 42, quote.bytes + 14, quoted);
}

struct comparison {
    const struct cluster *c;
    struct model_node node;
    struct third_side *third; /* NULL: only two are compared. */
    struct strbuf want, got;
    uint64_t differences, translated, answered, refused, later, errors;
    uint64_t actions[MODEL_TRANSLATE + 1], causes[MODEL_N_CAUSES];
};

static void check_same(struct comparison *x, const struct frame *f, const struct frame *want,
                       const struct frame *got)
{
    bool dropped = str_has_prefix(strbuf_cstr(&x->want), "drop");
    if (str_has_suffix(strbuf_cstr(&x->got), ", refused")) {
        check_refusal(x->c, f, got);
        x->refused++;
    }
    bool same =
        streq(strbuf_cstr(&x->want), strbuf_cstr(&x->got)) &&
        (dropped || (want->size == got->size && memcmp(want->bytes, got->bytes, want->size) == 0));
    if (same) {
        return;
    }
    x->differences++;
    fprintf(stderr,
            "difference (TENET_EBPF_SEED=%lu), entry %d, port %u, from %s id %u\n"
            "model:   %s\nprogram: %s\n",
            (unsigned long) seed, (int) f->entry, f->port, IP4_TEXT(f->outer_src), f->tunnel_id,
            strbuf_cstr(&x->want), strbuf_cstr(&x->got));
    const struct frame *all[] = {f, want, got};
    static const char *const names[] = {"frame  ", "model  ", "program"};
    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        fprintf(stderr, "%s:", names[i]);
        for (size_t k = 0; k < all[i]->size; k++) {
            fprintf(stderr, " %02x", all[i]->bytes[k]);
        }
        fprintf(stderr, "\n");
    }
}

/* Where the endpoint answers from; false: it is nowhere that an answer could come from. */
static bool answer_enters(const struct cluster *c, struct frame *f, uint32_t endpoint)
{
    f->entry = MODEL_FROM_HOST;
    f->port = f->outer_src = f->tunnel_id = 0;
    for (size_t i = 0; i < c->n_pods; i++) {
        if (c->pods[i].ip == endpoint) {
            f->entry = MODEL_FROM_PORT;
            f->port = c->pods[i].port;
            memcpy(f->bytes + 6, c->pods[i].mac.b, 6);
            return true;
        }
    }
    for (size_t i = 0; i < c->net.n_remotes; i++) {
        if (c->remotes[i].subnet.len && prefix_contains(c->remotes[i].subnet, endpoint)) {
            f->entry = MODEL_FROM_TUNNEL;
            f->outer_src = c->remotes[i].host_ip;
            return true;
        }
    }
    return endpoint == HOST(1) || endpoint == HOST(2) || endpoint == IP(8, 8, 8, 8);
}

/* ---- what follows a connection without having its ports ---- */

static void make_later(struct frame *f)
{
    set16(f, 20, 1 + below(0x1ff));
}

static bool has_more_parts(const struct frame *f)
{
    return get16(f, 20) & 0x2000;
}

/* The rest of a packet fares as its beginning, 'v', and has its addresses. */
static void compare_later(struct comparison *x, const struct frame *first,
                          const struct model_verdict *v, uint32_t src, uint32_t dst)
{
    struct frame later = *first, want, got;
    make_later(&later);
    want = later;
    strbuf_reset(&x->want);
    strbuf_reset(&x->got);
    observe(x->c, &later, &x->got, &got);
    expect(x->c, &later, v, &x->want, &want);
    if (v->action != MODEL_DROP) {
        set32(&want, 26, src);
        set32(&want, 30, dst);
        assert_int_equal(sum_of(&later, true), sum_of(&got, true));
        memcpy(want.bytes + 24, got.bytes + 24, 2);
    }
    check_same(x, &later, &want, &got);
    x->later++;
}

/* The error leaves from and to these addresses, and speaks of a packet between these ends; 'target' is what it is judged
 * for. */
static void compare_error(struct comparison *x, const struct frame *f, uint32_t target,
                          bool is_tracked, uint32_t src, uint32_t dst, struct ends quote)
{
    struct frame want = *f, got;
    struct model_packet p = read_frame(f);
    p.ip.translated = true;
    p.ip.connection = is_tracked ? MODEL_RELATED : MODEL_NEW;
    p.ip.dst = target;
    struct model_verdict v = model_judge(&x->node, &p);
    strbuf_reset(&x->want);
    strbuf_reset(&x->got);
    observe(x->c, f, &x->got, &got);
    expect(x->c, f, &v, &x->want, &want);
    if (v.action != MODEL_DROP && got.size == f->size) {
        size_t l4 = QUOTE_AT + 4 * (size_t) (f->bytes[QUOTE_AT] & 15);
        set32(&want, 26, src);
        set32(&want, 30, dst);
        set32(&want, QUOTE_AT + 12, quote.src);
        set32(&want, QUOTE_AT + 16, quote.dst);
        set16(&want, l4, quote.src_port);
        set16(&want, l4 + 2, quote.dst_port);
        assert_int_equal(ones_sum(&got, 14, ICMP_AT), 0);
        assert_int_equal(ones_sum(&got, ICMP_AT, got.size), 0);
        assert_int_equal(ones_sum(&got, QUOTE_AT, l4), ones_sum(f, QUOTE_AT, l4));
        static const size_t sums[] = {24, ICMP_AT + 2, QUOTE_AT + 10};
        for (size_t i = 0; i < ARRAY_SIZE(sums); i++) {
            memcpy(want.bytes + sums[i], got.bytes + sums[i], 2);
        }
        x->errors++;
    }
    check_same(x, f, &want, &got);
}

static bool answer_enters(const struct cluster *c, struct frame *f, uint32_t endpoint);

/* 'f' went out as 'sent', and 'answer' came back as 'received': errors about each are about what their receiver sent. */
static void compare_errors(struct comparison *x, const struct frame *f, const struct frame *sent,
                           const struct frame *answer, const struct frame *received)
{
    struct frame e = *answer;
    uint32_t endpoint = get32(sent, 30), client = get32(f, 26), asked = get32(f, 30);
    bool tracked = tracked_may_begin(sent->bytes, sent->size);
    bool itself = endpoint == client;
    make_error(&e, sent, endpoint, get32(answer, 30));
    compare_error(x, &e, client, tracked, asked, client, ends_of(f));
    if (!itself && answer_enters(x->c, &e, HOST(2))) { /* By somebody on the way. */
        make_error(&e, sent, IP(9, 9, 9, 9), client);
        compare_error(x, &e, client, tracked, IP(9, 9, 9, 9), client, ends_of(f));
    }
    e = *f;
    make_error(&e, received, client, asked);
    compare_error(x, &e, endpoint, tracked, itself ? SDN_ITSELF_IP : client, endpoint,
                  ends_of(answer));
}

/* What the endpoint sends back comes from the service. */
static void compare_answer(struct comparison *x, const struct frame *f, const struct frame *sent)
{
    struct frame back = *f, want, got;
    size_t l4 = l4_of(f);
    uint32_t endpoint = get32(sent, 30), client = get32(f, 26), asked = get32(f, 30);
    uint16_t endpoint_port = get16(sent, l4 + 2), client_port = get16(f, l4);
    if (!answer_enters(x->c, &back, endpoint)) {
        return;
    }
    bool itself = endpoint == client;
    set_ends(&back, &back, endpoint, endpoint_port, itself ? SDN_ITSELF_IP : client, client_port);
    strbuf_reset(&x->want);
    strbuf_reset(&x->got);
    observe(x->c, &back, &x->got, &got);
    struct model_packet p = read_frame(&back);
    p.ip.translated = true; /* Of a connection that is known: nothing to look for. */
    p.ip.connection = tracked_may_begin(sent->bytes, sent->size) ? MODEL_REPLY : MODEL_NEW;
    p.ip.dst = client;
    struct model_verdict v = model_judge(&x->node, &p);
    want = back;
    expect(x->c, &back, &v, &x->want, &want);
    if (v.action == MODEL_DELIVER) {
        set_ends(&got, &want, asked, get16(f, l4 + 2), client, client_port);
        check_sums(&back, &got);
        x->answered++;
    }
    check_same(x, &back, &want, &got);
    if (v.action != MODEL_DELIVER) {
        return;
    }
    if (has_more_parts(&back)) {
        compare_later(x, &back, &v, asked, client);
    }
    compare_errors(x, f, sent, &back, &got);
}

static void compare_translated(struct comparison *x, const struct frame *f, struct model_packet *p,
                               const struct model_verdict *v)
{
    struct frame want = *f, got;
    observe(x->c, f, &x->got, &got);
    if (f->size < checksum_of(f) + 2) { /* It cannot be kept right. */
        strbuf_adds(&x->want, "drop: service-invalid");
        check_same(x, f, &want, &got);
        return;
    }
    p->ip.translated = true;
    if (str_has_suffix(strbuf_cstr(&x->got), ", refused")) {
        /* Its endpoint is nowhere: who asked hears it of the service. */
        enum model_cause cause = str_has_prefix(strbuf_cstr(&x->got), "drop: service")
                                     ? MODEL_SERVICE_NOT_AVAILABLE
                                     : MODEL_NO_SUCH_NODE;
        strbuf_addf(&x->want, "drop: %s, refused", model_cause_name(cause));
        check_same(x, f, &want, &got);
        x->causes[cause]++;
        return;
    }
    p->ip.dst = get32(&got, 30);
    p->ip.dst_port = get16(&got, l4_of(f) + 2);
    if (!model_may_get(&x->node, v, p->ip.dst, p->ip.dst_port)) {
        strbuf_addf(&x->want, "an endpoint, not %s:%u", IP4_TEXT(p->ip.dst), p->ip.dst_port);
    }
    struct model_verdict after = model_judge(&x->node, p);
    bool itself = p->ip.dst == p->ip.src;
    expect(x->c, f, &after, &x->want, &want);
    set_ends(&got, &want, itself ? SDN_ITSELF_IP : p->ip.src, p->ip.src_port, p->ip.dst,
             p->ip.dst_port);
    check_sums(f, &got);
    check_same(x, f, &want, &got);
    x->translated++;
    x->causes[after.cause]++;
    if (has_more_parts(f)) {
        compare_later(x, f, &after, itself ? SDN_ITSELF_IP : p->ip.src, p->ip.dst);
    }
    if (after.action != MODEL_DROP) {
        compare_answer(x, f, &got);
    }
}

/* Has the tracker know of the frame's connection what the frame says, if it can. */
static void set_connection(const struct comparison *x, const struct frame *f,
                           struct model_packet *p)
{
    if (p->eth_type != MODEL_ETH_IP4 || !x->node.policies) {
        return;
    }
    tracked_clear(&program);
    if (model_judge(&x->node, p).action == MODEL_TRANSLATE || f->connection == MODEL_NEW) {
        return;
    }
    if (tracked_put(&program, f->bytes, f->size, f->connection, f->denied)) {
        p->ip.connection = f->connection;
        p->ip.denied = f->denied;
    }
}

static void ask_third(struct comparison *x, const struct frame *f, const struct model_packet *p,
                      const struct model_verdict *v)
{
    struct third_frame raw = {.bytes = f->bytes,
                              .size = f->size,
                              .malformed = is_malformed(f),
                              .first_fragment =
                                  p->eth_type == MODEL_ETH_IP4 && (get16(f, 20) & 0x3fff) == 0x2000,
                              .ends = ends_connection(f)};
    if (x->third && !third_side_agrees(x->third, &x->node, p, v, &raw)) {
        x->differences++;
        fprintf(stderr, "difference to the switch (TENET_EBPF_SEED=%lu)\n", (unsigned long) seed);
    }
}

static void compare_frame(struct comparison *x, const struct frame *f)
{
    struct frame want = *f, got;
    struct model_packet p = read_frame(f);
    set_connection(x, f, &p);
    struct model_verdict v = model_judge(&x->node, &p);
    x->actions[v.action]++;
    x->causes[v.cause]++;
    ask_third(x, f, &p, &v);
    strbuf_reset(&x->want);
    strbuf_reset(&x->got);
    if (v.action == MODEL_TRANSLATE) {
        compare_translated(x, f, &p, &v);
        return;
    }
    expect(x->c, f, &v, &x->want, &want);
    observe(x->c, f, &x->got, &got);
    check_same(x, f, &want, &got);
}

static uint64_t setting(const char *name, uint64_t dflt)
{
    const char *s = getenv(name);
    if (s && str_to_u64(s, UINT64_MAX / 2, &dflt) < 0) {
        fail_msg("%s=%s is not a number", name, s);
    }
    return dflt;
}

static void open_tables(bool latest)
{
    struct err e = {0}, why = {0};
    struct program_features f = {0};
    if (latest && program_probe(NULL, &f, &why) < 0) {
        fail_msg("%s", why.text);
    }
    f.ringbuf = false;
    program_is_direct = f.encap;
    if (program_load(NULL, &f, true, &program, &e) < 0) {
        fail_msg("%s", e.text);
    }
    assert_int_equal(table_load(&routes, program.routes, &e), 0);
    assert_int_equal(table_load(&vteps, program.vteps, &e), 0);
    assert_int_equal(table_load(&pods, program.pods, &e), 0);
    assert_int_equal(table_load(&ports, program.ports, &e), 0);
    assert_int_equal(table_load(&services, program.services, &e), 0);
    assert_int_equal(table_load(&backends, program.backends, &e), 0);
    assert_int_equal(table_load(&serving, program.serving, &e), 0);
    policy_maps_init(&policy_maps, NULL, NULL);
    assert_int_equal(policy_maps_load(&policy_maps, &program, &e), 0);
}

static void close_tables(void)
{
    table_done(&routes);
    table_done(&vteps);
    table_done(&pods);
    table_done(&ports);
    table_done(&services);
    table_done(&backends);
    table_done(&serving);
    policy_maps_done(&policy_maps);
    program_done(&program);
}

static void assert_nothing_of_policy(void)
{
    const int fds[] = {program.classes, program.blocks, program.pairs, program.port_sets};
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        unsigned char key[16];
        assert_int_equal(bpf_map_get_next_key(fds[i], NULL, key), -ENOENT);
    }
}

static void compare(uint64_t clusters, bool latest, struct third_side *third)
{
    uint64_t first = 0;
    struct comparison x = {.third = third, .want = STRBUF_INIT, .got = STRBUF_INIT};
    assert_int_equal(getrandom(&first, 4, 0), 4);
    first = setting("TENET_EBPF_SEED", first);
    print_message("%lu clusters from TENET_EBPF_SEED=%lu\n", (unsigned long) clusters,
                  (unsigned long) first);
    open_tables(latest);
    sent_direct = taken_direct = 0;
    for (seed = first; seed < first + clusters && x.differences < 3; seed++) {
        rng_state = seed;
        struct cluster c;
        make_cluster(&c);
        make_ways(&c);
        add_policies(&c);
        add_services(&c);
        load(&c);
        struct policy *policy = load_policies(&c);
        x.c = &c;
        x.node = (struct model_node){
            .net = &c.net,
            .pods = c.pods,
            .n_pods = c.n_pods,
            .policies = c.net.plugin == SDN_NETWORKPOLICY ? &c.policies.model : NULL,
            .services = c.services,
            .n_services = c.n_services,
            .name = NODE_NAME};
        if (third) {
            third_side_load(third, &x.node, x.node.policies ? &c.policies : NULL);
        }
        for (size_t i = 0; i < FRAMES; i++) {
            struct frame f;
            make_frame(&c, &f);
            compare_frame(&x, &f);
        }
        policy_free(policy);
        commit_policies();
        free_cluster(&c);
    }
    assert_nothing_of_policy();
    close_tables();
    strbuf_done(&x.want);
    strbuf_done(&x.got);
    assert_int_equal(x.differences, 0);
    /* Agreement on what never happened is none. */
    for (size_t i = 0; i < ARRAY_SIZE(x.actions); i++) {
        assert_true(x.actions[i] >= clusters * FRAMES / 100 || clusters < 100);
    }
    print_message(
        "%6lu translated, %lu answered, %lu refused, %lu later parts, %lu errors, %lu sent "
        "and %lu taken directly\n",
        (unsigned long) x.translated, (unsigned long) x.answered, (unsigned long) x.refused,
        (unsigned long) x.later, (unsigned long) x.errors, (unsigned long) sent_direct,
        (unsigned long) taken_direct);
    assert_true(x.later >= clusters * FRAMES / 2000 || clusters < 100);
    assert_true(x.errors >= clusters * FRAMES / 500 || clusters < 100);
    uint64_t least = program_is_direct && clusters >= 100 ? clusters * FRAMES / 200 : 0;
    assert_true(sent_direct >= least && taken_direct >= least);
    assert_true(x.refused >= clusters * FRAMES / 500 || clusters < 100);
    assert_true(x.answered >= clusters * FRAMES / 500 || clusters < 100);
    for (uint32_t i = 1; i < EBPF_N_CAUSES; i++) {
        enum model_cause cause = encode_cause(i);
        print_message("%6lu %s\n", (unsigned long) x.causes[cause], model_cause_name(cause));
        assert_true(x.causes[cause] >= clusters * FRAMES / 2000 || clusters < 100);
    }
}

static void programs_and_model_agree(void **state)
{
    (void) state;
    compare(setting("TENET_EBPF_CLUSTERS", DEFAULT_CLUSTERS), true, NULL);
}

static void programs_of_older_kernels_agree_too(void **state)
{
    (void) state;
    compare(MIN(setting("TENET_EBPF_CLUSTERS", 100), 100), false, NULL);
}

/* All three judge the same frames. */
static void programs_model_and_switch_agree(void **state)
{
    (void) state;
    const char *why;
    struct third_side *third = third_side_new(&why);
    if (!third) {
        print_message("skipped: %s\n", why);
        skip();
    }
    uint64_t frames = setting("TENET_THREE_FRAMES", 3000);
    compare((frames + FRAMES - 1) / FRAMES, true, third);
    print_message(
        "%6lu frames judged by all three (%lu malformed, %lu sent on to endpoints of services);\n"
        "%6lu of them first fragments whose ports decide: the switch was asked without\n"
        "%6lu more of another version than IPv4, which the switch cannot see\n",
        (unsigned long) third->asked, (unsigned long) third->malformed,
        (unsigned long) third->translated, (unsigned long) third->fragments,
        (unsigned long) third->unseen);
    third_side_free(third);
}

int main(void)
{
    struct program_features f;
    struct err e = {0};
    if (program_probe(NULL, &f, &e) < 0) {
        print_message("skipped: %s\n", e.text);
        return 77; /* What meson counts as skipped. */
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_and_model_agree),
        cmocka_unit_test(programs_of_older_kernels_agree_too),
        cmocka_unit_test(programs_model_and_switch_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
