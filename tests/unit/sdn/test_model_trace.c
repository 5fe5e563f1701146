/* SPDX-License-Identifier: Apache-2.0 */
/* The flows against the model: random networks and packets, honest and not, of which a real Open vSwitch with
 * our flows and sdn/model.c must say the same, down to the table in which a packet is dropped and to the
 * fields with which another leaves.
 *
 * TENET_MODEL_CLUSTERS: how many of them, 60 packets each (default 1,000: some seconds).  Each run begins with another seed,
 * which it prints; TENET_MODEL_SEED repeats one. */
#include "random_firewalls.h"
#include "random_policies.h"
#include "random_services.h"
#include "rng.h"
#include "sdn/model.h"
#include "sdn/service_flows.h"
#include "switch_side.h"
#include "switch_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define IP(a, b, c, d) \
    ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))
#define HOST(i) IP(192, 168, 100, i)
#define NODE_NAME "node"
#define PROTO_ICMP 1

enum {
    DEFAULT_CLUSTERS = 1000,
    PACKETS_A_CLUSTER = 60, /* All under way at once. */
    FIRST_PORT = SWITCH_FIRST_PORT,
    MAX_PORTS = SWITCH_PORTS,
    MAX_PODS = 8, /* So that ports without a pod remain. */
    MAX_REMOTES = 7,
    N_HOSTS = SWITCH_HOSTS - 3,
    MAX_SERVICES = 5,
    MAX_HOST_PORTS = 3,
};
static_assert(PACKETS_A_CLUSTER < UNIXCTL_MAX_UNDER_WAY, "");

struct cluster {
    struct sdn_network net;
    struct sdn_remote remotes[MAX_REMOTES];
    struct model_pod pods[MAX_PODS];
    size_t n_pods;
    uint32_t vnids[5];               /* Of which projects are made. */
    struct random_policies policies; /* Under ovs-networkpolicy. */
    struct random_firewalls firewalls;
    struct sdn_service *parsed[MAX_SERVICES + MAX_HOST_PORTS];
    struct sdn_project_service services[MAX_SERVICES + MAX_HOST_PORTS];
    size_t n_services, n_named; /* Behind those that have a name: addresses with host ports. */
};

static struct switch_side side;
static struct strbuf want = STRBUF_INIT, got = STRBUF_INIT;

/* ---- random ---- */

static uint64_t seed; /* Of the cluster, so that it can be had alone. */

/* Of a prefix: its first, second, last but one and last address, those around it, or any. */
static uint32_t near(struct ip4_prefix p)
{
    switch (below(10)) {
    case 0:
        return p.addr;
    case 1:
        return p.addr + 1;
    case 2:
        return prefix_last(p);
    case 3:
        return prefix_last(p) - 1;
    case 4:
        return p.addr - 1;
    case 5:
        return prefix_last(p) + 1;
    default:
        return p.addr + below(prefix_size(p));
    }
}

/* ---- clusters ---- */

static bool pod_has(const struct cluster *c, uint32_t ip, uint32_t port)
{
    for (size_t i = 0; i < c->n_pods; i++) {
        if (c->pods[i].ip == ip || c->pods[i].port == port) {
            return true;
        }
    }
    return false;
}

static bool subnet_taken(const struct cluster *c, struct ip4_prefix p)
{
    if (prefix_overlaps(p, c->net.local)) {
        return true;
    }
    for (size_t i = 0; i < c->net.n_remotes; i++) {
        if (c->remotes[i].subnet.len && prefix_overlaps(c->remotes[i].subnet, p)) {
            return true;
        }
    }
    return false;
}

static void add_pods(struct cluster *c)
{
    uint64_t room = prefix_size(c->net.local) - 3;
    for (size_t n = below(MAX_PODS + 1); n > 0; n--) {
        uint64_t among = chance(50) ? MIN(room, 16) : room;
        uint32_t ip = sdn_gateway(&c->net) + 1 + (chance(15) ? 0 : below(among));
        if (chance(15)) {
            ip = prefix_last(c->net.local) - 1;
        }
        uint32_t port = FIRST_PORT + below(MAX_PORTS);
        if (!pod_has(c, ip, port)) {
            c->pods[c->n_pods++] = (struct model_pod){.port = port,
                                                      .ip = ip,
                                                      .mac = mac_from_ip4(ip),
                                                      .vnid = PICK(c->vnids),
                                                      .has_also_vnid = chance(20),
                                                      .also_vnid = PICK(c->vnids)};
        }
    }
}

/* 'lens': of the nodes' subnets, for each cluster network. */
static void add_remotes(struct cluster *c, const uint8_t *lens)
{
    for (size_t n = below(MAX_REMOTES + 1); n > 0; n--) {
        struct sdn_remote r = {.host_ip = HOST(2 + below(N_HOSTS)), .id = rng()};
        size_t k = below(c->net.n_cluster);
        uint32_t size = UINT32_C(1) << (32 - lens[k]);
        uint64_t slots = prefix_size(c->net.cluster[k]) / size;
        r.subnet = (struct ip4_prefix){c->net.cluster[k].addr + below(slots) * size, lens[k]};
        unsigned kind = below(100);
        if (kind < 25) { /* This node's neighbour. */
            uint32_t local = (uint32_t) prefix_size(c->net.local);
            r.subnet = c->net.local;
            r.subnet.addr += chance(50) ? local : -local;
        } else if (kind < 33) { /* None yet. */
            r.subnet = (struct ip4_prefix){0};
        } else if (kind < 41) { /* Claims this node's, more than that or a part of it. */
            uint8_t len = (uint8_t) (c->net.local.len + below(5) - 2);
            r.subnet = (struct ip4_prefix){near(c->net.local) & prefix_mask(len), len};
        } else if (kind < 46) { /* Of another network. */
            r.subnet = (struct ip4_prefix){IP(203, 0, 113, 64 * below(4)), 26};
        }
        bool unbelieved = r.subnet.len && prefix_overlaps(r.subnet, c->net.local);
        if (r.subnet.len && !unbelieved && subnet_taken(c, r.subnet)) {
            continue;
        }
        if (chance(25)) {
            r.has_fixed_vnid = true;
            r.fixed_vnid = chance(60) ? PICK(c->vnids) : below(SDN_VNID_MAX + 1u);
        }
        c->remotes[c->net.n_remotes++] = r;
    }
}

static void add_policies(struct cluster *c)
{
    random_policies_init(&c->policies, rng);
    for (size_t i = 0; i < c->n_pods; i++) {
        random_policies_add(&c->policies, c->pods[i].ip, true, false);
    }
    for (size_t n = below(12); n > 0 && c->net.n_remotes; n--) {
        struct ip4_prefix p = c->remotes[below(c->net.n_remotes)].subnet;
        if (p.len && !prefix_overlaps(p, c->net.local)) {
            random_policies_add(&c->policies, p.addr + below(prefix_size(p)), false, false);
        }
    }
    for (size_t n = below(3); n > 0; n--) {
        random_policies_add(&c->policies, HOST(1 + below(3)), false, true);
    }
    random_policies_make(&c->policies);
}

static uint32_t some_address(const void *cluster);

static struct sdn_service *make_service(const struct cluster *c, unsigned number)
{
    struct random_service_world w = {&c->net, NODE_NAME, rng, some_address, c};
    return random_service(&w, number);
}

static void add_host_ports(struct cluster *c, uint32_t address)
{
    struct random_service_world w = {&c->net, NODE_NAME, rng, some_address, c};
    struct sdn_service *s = random_host_ports(&w, address);
    if (s) {
        c->parsed[c->n_services] = s;
        c->services[c->n_services++] = (struct sdn_project_service){.service = s};
    }
}

static void add_services(struct cluster *c)
{
    c->n_services = below(MAX_SERVICES + 1);
    for (size_t i = 0; i < c->n_services; i++) {
        c->parsed[i] = make_service(c, (unsigned) i);
        c->services[i] =
            (struct sdn_project_service){c->parsed[i], PICK(c->vnids), chance(20), PICK(c->vnids)};
    }
    c->n_named = c->n_services;
    add_host_ports(c, c->net.host_ip);
    if (c->net.addresses.n) {
        add_host_ports(c, c->net.addresses.ip[0]);
    }
    const struct sdn_remote *r = c->net.n_remotes ? &c->remotes[below(c->net.n_remotes)] : NULL;
    if (r && r->subnet.len && !prefix_overlaps(r->subnet, c->net.local)) {
        add_host_ports(c, r->host_ip);
    }
}

/* Addresses that hosts have beside those of their VTEPs: of this node, of others, some of VTEPs. */
static void add_addresses(struct cluster *c)
{
    if (chance(50)) {
        sdn_addresses_add(&c->net.addresses, HOST(2 + N_HOSTS));
    }
    for (size_t i = 0; i < c->net.n_remotes; i++) {
        if (chance(30)) {
            sdn_addresses_add(&c->remotes[i].addresses, HOST(2 + below(N_HOSTS + 2)));
        }
    }
}

static void add_firewalls(struct cluster *c)
{
    static const uint32_t outside[] = {IP(8, 8, 8, 8),   IP(127, 0, 0, 1), IP(223, 255, 255, 255),
                                       IP(240, 0, 0, 0), HOST(1),          HOST(2)};
    for (size_t i = 0; i < ARRAY_SIZE(c->vnids); i++) {
        bool has = c->vnids[i] == SDN_VNID_GLOBAL || c->net.plugin == SDN_SUBNET;
        for (size_t k = 0; k < c->firewalls.n; k++) {
            has |= c->firewalls.list[k].vnid == c->vnids[i];
        }
        if (!has && chance(60)) {
            random_firewalls_add(&c->firewalls, c->vnids[i], outside, ARRAY_SIZE(outside));
        }
    }
}

static void make_cluster(struct cluster *c)
{
    /* Disjoint; some follow each other directly. */
    static const struct ip4_prefix networks[] = {
        {IP(10, 128, 0, 0), 14},  {IP(10, 64, 0, 0), 16},     {IP(10, 65, 0, 0), 16},
        {IP(172, 16, 0, 0), 20},  {IP(192, 168, 128, 0), 22}, {IP(100, 64, 0, 0), 12},
        {IP(223, 255, 0, 0), 16},
    };
    static const struct ip4_prefix services[] = {
        {0}, {IP(172, 30, 0, 0), 16}, {IP(172, 16, 16, 0), 20}, {IP(10, 132, 0, 0), 24}};
    static const uint32_t vnids[] = {
        SDN_VNID_GLOBAL, SDN_VNID_NOBODY, SDN_VNID_MIN, 42,          43,
        42 + 0x100,      42 + 0x10000,    0x800000,     SDN_VNID_MAX};
    *c = (struct cluster){
        .net = {.plugin = chance(50)   ? SDN_NETWORKPOLICY
                          : chance(70) ? SDN_MULTITENANT
                                       : SDN_SUBNET,
                .n_cluster = 1 + below(4),
                .service = PICK(services),
                .host_ip = HOST(1),
                .vxlan_port = chance(80) ? SDN_VXLAN_PORT : 4790,
                .refusal_meter = chance(50) ? SWITCH_REFUSAL_METER : 0,
                .block_metadata = chance(70),
                .mtu = 1450},
    };
    c->net.remotes = c->remotes;
    c->net.service_by_host = c->net.plugin != SDN_NETWORKPOLICY && chance(20);
    for (size_t i = 0; i < ARRAY_SIZE(c->vnids); i++) {
        c->vnids[i] = PICK(vnids);
    }
    uint8_t lens[SDN_MAX_CLUSTER_NETWORKS];
    for (size_t i = 0, first = below(ARRAY_SIZE(networks)); i < c->net.n_cluster; i++) {
        struct ip4_prefix p = networks[(first + i) % ARRAY_SIZE(networks)];
        c->net.cluster[i] = p;
        uint8_t shortest = MAX(p.len + 2, 22);
        lens[i] = (uint8_t) (shortest + below(31 - shortest));
    }
    size_t k = below(c->net.n_cluster);
    uint64_t slots = UINT64_C(1) << (lens[k] - c->net.cluster[k].len);
    uint32_t slot = chance(25) ? 0 : chance(25) ? (uint32_t) slots - 1 : below(slots);
    c->net.local = (struct ip4_prefix){
        c->net.cluster[k].addr + slot * (UINT32_C(1) << (32 - lens[k])), lens[k]};
    add_pods(c);
    add_remotes(c, lens);
    add_policies(c);
    add_addresses(c);
    add_services(c);
    add_firewalls(c);
}

static void free_cluster(struct cluster *c)
{
    random_firewalls_done(&c->firewalls);
    for (size_t i = 0; i < c->n_services; i++) {
        sdn_service_free(c->parsed[i]);
    }
}

static void tell_service(const struct cluster *c, size_t i, struct service_flows *f)
{
    const struct sdn_project_service *s = &c->services[i];
    struct sdn_vnids v = {s->vnid, s->has_also_vnid, s->also_vnid};
    service_flows_set(f, c->parsed[i], &v);
}

/* Flows of services, which a compiler that has seen other times makes as a new one does. */
static void add_service_flows(const struct cluster *c, struct of_flow_list *l)
{
    const struct service_flows_ops ops = {.set_group = group_store_ops.set_group};
    struct group_store used, fresh;
    group_store_init(&used);
    group_store_init(&fresh);
    struct service_flows *f = service_flows_new(NODE_NAME, &ops, &used);
    struct service_flows *g = service_flows_new(NODE_NAME, &ops, &fresh);
    struct sdn_network before = c->net;
    before.plugin = (enum sdn_plugin) below(SDN_N_PLUGINS);
    service_flows_set_network(f, &before);
    service_flows_set_network(g, &c->net);
    for (size_t n = below(4); n > 0; n--) {
        CLEANUP(sdn_service_free)
        struct sdn_service *other = make_service(c, below(RANDOM_SERVICES));
        service_flows_set(f, other, NULL);
        if (chance(50)) {
            service_flows_flush(f);
        }
    }
    service_flows_set_network(f, &c->net);
    for (size_t i = 0; i < RANDOM_SERVICES; i++) {
        char name[8];
        snprintf(name, sizeof name, "s%zu", i);
        if (i >= c->n_named || chance(30)) {
            service_flows_delete(f, "project", name);
        }
    }
    for (size_t i = c->n_services; i-- > 0;) {
        tell_service(c, i, f);
    }
    for (size_t i = 0; i < c->n_services; i++) {
        tell_service(c, i, g);
    }
    service_flows_flush(f);
    service_flows_flush(g);
    if (!group_store_equal(&used, &fresh)) {
        fail_msg("a compiler with a past differs (TENET_MODEL_SEED=%lu)", (unsigned long) seed);
    }
    group_store_flows(&used, l);
    service_flows_free(f);
    service_flows_free(g);
    group_store_done(&used);
    group_store_done(&fresh);
}

/* Flows of policy, which a compiler that has seen other times makes as a new one does. */
static void add_policy_flows(const struct cluster *c, struct of_flow_list *l)
{
    struct group_store used, fresh;
    group_store_init(&used);
    group_store_init(&fresh);
    struct policy *p = policy_new_anywhere(c->net.local, &group_store_ops, &used);
    struct policy *q = policy_new_anywhere(c->net.local, &group_store_ops, &fresh);
    random_policies_mislead(&c->policies, p);
    random_policies_tell(&c->policies, p);
    random_policies_tell(&c->policies, q);
    if (!group_store_equal(&used, &fresh)) {
        fail_msg("a compiler with a past differs (TENET_MODEL_SEED=%lu)", (unsigned long) seed);
    }
    group_store_flows(&used, l);
    policy_free(p);
    policy_free(q);
    assert_int_equal(group_store_count(&used) + group_store_count(&fresh), 0);
    group_store_done(&used);
    group_store_done(&fresh);
}

static void load(const struct cluster *c)
{
    struct of_flow_list l = {0};
    if (c->net.plugin == SDN_NETWORKPOLICY) {
        add_policy_flows(c, &l);
    }
    add_service_flows(c, &l);
    random_firewalls_flows(c->firewalls.list, c->firewalls.n, &l);
    switch_side_load(&side, &c->net, c->pods, c->n_pods, &l);
}

/* ---- packets ---- */

/* Anywhere that matters. */
static uint32_t some_address(const void *cluster)
{
    const struct cluster *c = cluster;
    static const uint32_t others[] = {
        0,
        IP(8, 8, 8, 8),
        IP(127, 0, 0, 1),
        SDN_METADATA_IP,
        SDN_METADATA_IP,
        SDN_METADATA_IP,
        IP(223, 255, 255, 255),
        IP(224, 0, 0, 0),
        IP(239, 255, 255, 255),
        IP(240, 0, 0, 0),
        IP(255, 255, 255, 254),
        IP(255, 255, 255, 255),
        HOST(1),
        HOST(2),
    };
    unsigned kind = below(100);
    if (chance(25) && c->policies.model.n_endpoints) {
        return c->policies.endpoints[below(c->policies.model.n_endpoints)].ip;
    }
    if (kind < 35 && c->n_pods) {
        return c->pods[below(c->n_pods)].ip;
    }
    if (kind < 42) {
        return sdn_gateway(&c->net);
    }
    if (kind < 55) {
        return near(c->net.local);
    }
    if (kind < 75 && c->net.n_remotes) {
        return near(c->remotes[below(c->net.n_remotes)].subnet);
    }
    if (kind < 83) {
        return near(c->net.cluster[below(c->net.n_cluster)]);
    }
    if (kind < 88 && c->net.service.len) {
        return near(c->net.service);
    }
    return kind < 98 ? PICK(others) : (uint32_t) rng();
}

static struct mac some_mac(const struct cluster *c)
{
    switch (below(4)) {
    case 0:
        return (struct mac){{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
    case 1: {
        uint64_t r = rng();
        struct mac m;
        memcpy(m.b, &r, sizeof m.b);
        return m;
    }
    default:
        return mac_from_ip4(some_address(c));
    }
}

static uint32_t some_vnid(const struct cluster *c)
{
    return chance(70) ? PICK(c->vnids) : chance(50) ? 42 : below(SDN_VNID_MAX + 1u);
}

/* What an honest sender puts into a packet; where nobody is, nobody is honest. */
static uint32_t enter(const struct cluster *c, struct model_packet *p)
{
    unsigned from = below(100);
    if (from < 50) {
        p->entry = MODEL_FROM_PORT;
        if (!c->n_pods) {
            p->port = FIRST_PORT;
            return some_address(c);
        }
        const struct model_pod *pod = &c->pods[below(c->n_pods)];
        p->port = pod->port;
        p->eth_src = pod->mac;
        return pod->ip;
    }
    p->eth_src = some_mac(c);
    if (from < 80) {
        p->entry = MODEL_FROM_TUNNEL;
        p->tunnel_id = some_vnid(c);
        if (!c->net.n_remotes) {
            p->outer_src = HOST(2);
            return some_address(c);
        }
        const struct sdn_remote *r = &c->remotes[below(c->net.n_remotes)];
        p->outer_src = r->host_ip;
        p->eth_src = mac_from_ip4(r->subnet.addr + below(prefix_size(r->subnet)));
        for (size_t i = 0; chance(60) && i < c->policies.model.n_endpoints; i++) {
            uint32_t ip = c->policies.endpoints[i].ip;
            if (r->subnet.len && prefix_contains(r->subnet, ip)) {
                return ip;
            }
        }
        return r->subnet.addr + below(prefix_size(r->subnet));
    }
    p->entry = MODEL_FROM_HOST;
    p->eth_src = mac_from_ip4(sdn_gateway(&c->net));
    return chance(60) ? sdn_gateway(&c->net) : chance(50) ? HOST(1) : IP(8, 8, 4, 4);
}

/* One lie. */
static void corrupt(const struct cluster *c, struct model_packet *p)
{
    static const uint16_t types[] = {0x86dd, 0x8035, 0x88cc, 0x8847, 0x9000, 0x0600};
    static const uint8_t protocols[] = {0, 1, 2, 4, 47, 50, 132, 255};
    static const uint16_t ops[] = {0, 1, 2, 3, 8, 255};
    bool ip = p->eth_type == MODEL_ETH_IP4, arp = p->eth_type == MODEL_ETH_ARP;
    switch (below(12)) {
    case 0:
        p->has_vlan = true;
        p->vlan_tci = chance(30) ? 0 : (uint16_t) rng() & 0xefff;
        break;
    case 1:
        if (chance(50)) {
            p->eth_type = PICK(types);
        }
        break;
    case 2:
        p->eth_src = some_mac(c);
        break;
    case 3:
        p->port = chance(70) ? FIRST_PORT + below(MAX_PORTS) : SWITCH_LOCAL_PORT;
        break;
    case 4:
    case 5:
        p->outer_src = HOST(1 + below(N_HOSTS + 3));
        break;
    case 6:
        p->tunnel_id = below(SDN_VNID_MAX + 1u);
        break;
    case 7:
        if (ip) {
            p->ip.proto = chance(80) ? MODEL_PROTO_UDP : 6;
            p->ip.dst_port = chance(70) ? c->net.vxlan_port : (uint16_t) (4788 + below(4));
            p->ip.src_port = (uint16_t) (4788 + below(4));
        }
        break;
    case 8:
        if (ip) {
            p->ip.proto = PICK(protocols);
        }
        break;
    case 9:
        if (arp) {
            p->arp.op = PICK(ops);
        }
        break;
    case 10:
        if (arp) {
            p->arp.sha = some_mac(c);
        }
        break;
    default:
        if (ip) {
            p->ip.src = some_address(c);
        } else if (arp) {
            p->arp.spa = some_address(c);
        }
        break;
    }
}

/* About a packet that the error's receiver sent, to the error's sender or not, of a connection that is known or not. */
static void make_error(const struct cluster *c, struct model_packet *p)
{
    p->ip.proto = PROTO_ICMP;
    p->ip.src_port = p->ip.dst_port = 0;
    p->ip.icmp_error = true;
    p->ip.connection = chance(75) ? MODEL_RELATED : MODEL_INVALID;
    p->ip.quoted_dst = chance(50) ? p->ip.src : some_address(c);
    p->ip.denied = p->ip.connection == MODEL_RELATED && chance(30);
}

/* What the connection tracker is to say of an IP packet. */
static void make_connection(const struct cluster *c, struct model_packet *p)
{
    if (chance(15)) {
        make_error(c, p);
        return;
    }
    static const enum model_connection states[] = {MODEL_NEW, MODEL_ORIGINAL, MODEL_REPLY,
                                                   MODEL_INVALID};
    p->ip.connection = chance(50) ? MODEL_NEW : PICK(states);
    p->ip.denied = p->ip.connection != MODEL_NEW && p->ip.connection != MODEL_INVALID && chance(40);
    p->ip.later_fragment = chance(10);
    if (p->ip.later_fragment) {
        p->ip.src_port = p->ip.dst_port = 0;
    }
}

/* By one of its addresses; mostly to a port that it has. */
static void aim_at_service(const struct cluster *c, struct model_packet *p)
{
    unsigned number = below(c->n_services);
    const struct sdn_service *s = c->parsed[number];
    p->ip.proto = chance(50) ? 6 : chance(80) ? MODEL_PROTO_UDP : 132;
    p->ip.dst_port = (uint16_t) ((chance(90) ? RANDOM_SERVICE_PORT : 1010) + number);
    p->ip.dst = chance(5) ? SDN_ITSELF_IP : s->cluster_ip;
    if (s->host_ports && chance(90)) {
        p->ip.dst_port = s->ports[below(s->n_ports)].port;
    }
    if (s->n_external_ips && chance(30)) {
        p->ip.dst = s->external_ips[below(s->n_external_ips)];
    } else if (chance(30)) {
        p->ip.dst_port = (uint16_t) (RANDOM_NODE_PORT + number);
        p->ip.dst = chance(40)         ? HOST(1)
                    : chance(20)       ? sdn_gateway(&c->net)
                    : chance(40)       ? HOST(2 + below(N_HOSTS + 2))
                    : c->net.n_remotes ? c->remotes[below(c->net.n_remotes)].host_ip
                                       : HOST(3);
    }
    if (p->ip.later_fragment) {
        p->ip.dst_port = 0;
    }
    p->ip.denied =
        false; /* A trace forgets the mark at the first lookup, and this is not that of policy. */
}

static void make_packet(const struct cluster *c, struct model_packet *p)
{
    static const uint8_t protocols[] = {1, 6, 17, 132};
    static const uint16_t ports[] = {80, 80, 81, 443, 8080, 53, 1024, 65535, 1};
    *p = (struct model_packet){0};
    uint32_t src = enter(c, p);
    uint32_t dst = p->entry == MODEL_FROM_TUNNEL && chance(60) && c->n_pods
                       ? c->pods[below(c->n_pods)].ip
                       : some_address(c);
    p->eth_dst = chance(50) ? mac_from_ip4(sdn_gateway(&c->net)) : some_mac(c);
    if (chance(75)) {
        p->eth_type = MODEL_ETH_IP4;
        p->ip.src = src;
        p->ip.dst = dst;
        p->ip.proto = PICK(protocols);
        p->ip.src_port = (uint16_t) rng();
        p->ip.dst_port = chance(80) ? PICK(ports) : (uint16_t) rng();
    } else {
        p->eth_type = MODEL_ETH_ARP;
        p->arp.op = MODEL_ARP_REQUEST;
        p->arp.spa = src;
        p->arp.sha = p->eth_src;
        p->arp.tpa = dst;
        p->arp.tha = chance(80) ? (struct mac){0} : some_mac(c);
    }
    for (unsigned lies = chance(60) ? 0 : 1 + below(2); lies > 0; lies--) {
        corrupt(c, p);
    }
    if (p->eth_type == MODEL_ETH_IP4 && c->net.plugin == SDN_NETWORKPOLICY) {
        make_connection(c, p);
    }
    if (p->eth_type == MODEL_ETH_IP4 && p->entry == MODEL_FROM_PORT && c->n_services &&
        !p->ip.icmp_error && chance(40)) {
        aim_at_service(c, p);
    }
}

/* As ofproto/trace takes it. */
static void packet_text(const struct cluster *c, const struct model_packet *p, struct strbuf *ret)
{
    switch_metadata_text(&c->net, p, ret);
    strbuf_addf(ret, "dl_src=%s,dl_dst=%s,", MAC_TEXT(p->eth_src), MAC_TEXT(p->eth_dst));
    if (p->has_vlan) { /* The bit says that there is a tag; its VLAN may be 0. */
        strbuf_addf(ret, "vlan_tci=0x%04x,", 0x1000 | p->vlan_tci);
    }
    if (p->eth_type == MODEL_ETH_IP4) {
        const char *with_ports = p->ip.proto == 6                 ? "tcp"
                                 : p->ip.proto == MODEL_PROTO_UDP ? "udp"
                                 : p->ip.proto == 132             ? "sctp"
                                                                  : NULL;
        strbuf_addf(ret, "%s,nw_src=%s,nw_dst=%s", with_ports ? with_ports : "ip",
                    IP4_TEXT(p->ip.src), IP4_TEXT(p->ip.dst));
        if (p->ip.denied) {
            strbuf_adds(ret, ",ct_mark=1");
        }
        if (p->ip.later_fragment) {
            strbuf_adds(ret, ",ip_frag=later");
        }
        if (with_ports && !p->ip.later_fragment) {
            strbuf_addf(ret, ",%s_src=%u,%s_dst=%u", with_ports, p->ip.src_port, with_ports,
                        p->ip.dst_port);
        } else if (!with_ports) {
            strbuf_addf(ret, ",nw_proto=%u", p->ip.proto);
        }
        if (p->ip.icmp_error) {
            static const uint8_t errors[] = {3, 4, 5, 11, 12};
            strbuf_addf(ret, ",icmp_type=%u", errors[p->ip.quoted_dst % ARRAY_SIZE(errors)]);
        }
        if (p->ip.connection == MODEL_RELATED) {
            strbuf_addc(ret, ',');
            switch_quoted_text(p, ret);
        }
    } else if (p->eth_type == MODEL_ETH_ARP) {
        strbuf_addf(ret, "arp,arp_op=%u,arp_spa=%s,arp_tpa=%s,arp_sha=%s,arp_tha=%s", p->arp.op,
                    IP4_TEXT(p->arp.spa), IP4_TEXT(p->arp.tpa), MAC_TEXT(p->arp.sha),
                    MAC_TEXT(p->arp.tha));
    } else {
        strbuf_addf(ret, "dl_type=0x%04x", p->eth_type);
    }
}

/* ---- set-up ---- */

static int set_up(void **state)
{
    switch_side_open(&side);
    return 0;
}

static int tear_down(void **state)
{
    switch_side_close(&side);
    strbuf_done(&want);
    strbuf_done(&got);
    return 0;
}

/* ---- the comparison ---- */

static void cluster_text(const struct cluster *c, struct strbuf *ret)
{
    const struct sdn_network *n = &c->net;
    strbuf_addf(ret, "%s, cluster", sdn_plugin_name(n->plugin));
    for (size_t i = 0; i < n->n_cluster; i++) {
        strbuf_addf(ret, " %s", PREFIX_TEXT(n->cluster[i]));
    }
    strbuf_addf(ret, ", services %s, VXLAN port %u, this node %s %s\n", PREFIX_TEXT(n->service),
                n->vxlan_port, IP4_TEXT(n->host_ip), PREFIX_TEXT(n->local));
    for (size_t i = 0; i < n->n_remotes; i++) {
        strbuf_addf(ret, "  node %s %s", IP4_TEXT(n->remotes[i].host_ip),
                    PREFIX_TEXT(n->remotes[i].subnet));
        if (n->remotes[i].has_fixed_vnid) {
            strbuf_addf(ret, " fixed VNID %u", n->remotes[i].fixed_vnid);
        }
        strbuf_addc(ret, '\n');
    }
    for (size_t i = 0; i < c->n_pods; i++) {
        strbuf_addf(ret, "  pod p%u %s VNID %u", c->pods[i].port - FIRST_PORT,
                    IP4_TEXT(c->pods[i].ip), c->pods[i].vnid);
        if (c->pods[i].has_also_vnid) {
            strbuf_addf(ret, " and %u", c->pods[i].also_vnid);
        }
        strbuf_addc(ret, '\n');
    }
}

static void explain(const struct cluster *c, const struct model_packet *p,
                    const struct model_verdict *v, const char *trace)
{
    CLEANUP_STRBUF struct strbuf about = STRBUF_INIT;
    cluster_text(c, &about);
    strbuf_adds(&about, "packet: ");
    packet_text(c, p, &about);
    /* cmocka's functions cut long texts. */
    fprintf(stderr, "difference (TENET_MODEL_SEED=%lu)\n%s\nmodel:  %s %s\nswitch: %s\n%s\n",
            (unsigned long) seed, strbuf_cstr(&about), strbuf_cstr(&want),
            model_cause_name(v->cause), strbuf_cstr(&got), trace);
}

static void model_and_switch_agree(void **state)
{
    uint64_t clusters = rng_setting("TENET_MODEL_CLUSTERS", DEFAULT_CLUSTERS);
    uint64_t first = rng_first_seed("TENET_MODEL_SEED", clusters, "clusters");
    uint64_t packets = clusters * PACKETS_A_CLUSTER, differences = 0, to_itself = 0, own_errors = 0;
    uint64_t actions[MODEL_TRANSLATE + 1] = {0}, causes[MODEL_N_CAUSES] = {0};
    for (seed = first; seed < first + clusters && differences < 3; seed++) {
        rng_start(seed);
        struct cluster c;
        struct model_packet p[PACKETS_A_CLUSTER];
        make_cluster(&c);
        bool policy = c.net.plugin == SDN_NETWORKPOLICY;
        struct model_node node = {.net = &c.net,
                                  .pods = c.pods,
                                  .n_pods = c.n_pods,
                                  .policies =
                                      c.net.plugin == SDN_NETWORKPOLICY ? &c.policies.model : NULL,
                                  .services = c.services,
                                  .n_services = c.n_services,
                                  .firewalls = c.firewalls.list,
                                  .n_firewalls = c.firewalls.n,
                                  .name = NODE_NAME};
        load(&c);
        for (size_t i = 0; i < PACKETS_A_CLUSTER; i++) {
            make_packet(&c, &p[i]);
            CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
            packet_text(&c, &p[i], &text);
            switch_side_send(&side, &node, &p[i], strbuf_cstr(&text), NULL);
        }
        for (size_t i = 0; i < PACKETS_A_CLUSTER; i++) {
            const char *trace = switch_side_receive(&side);
            struct model_verdict v = model_judge(&node, &p[i]);
            actions[v.action]++;
            strbuf_reset(&want);
            strbuf_reset(&got);
            if (v.action == MODEL_TRANSLATE && switch_translates(trace, &node, &v, &p[i])) {
                v = model_judge(&node, &p[i]);
                actions[v.action]++;
                to_itself += v.to_itself;
            }
            switch_expected_text(&c.net, &p[i], &v, &want);
            switch_text(trace, &p[i], &got);
            causes[v.cause]++;
            own_errors += policy && p[i].entry == MODEL_FROM_PORT &&
                          p[i].eth_type == MODEL_ETH_IP4 && p[i].ip.icmp_error &&
                          v.action != MODEL_DROP;
            if (!streq(strbuf_cstr(&want), strbuf_cstr(&got))) {
                explain(&c, &p[i], &v, trace);
                differences++;
            }
        }
        free_cluster(&c);
    }
    assert_int_equal(differences, 0);
    /* Agreement on what never happened is none. */
    assert_true(to_itself >= packets / 4000 || clusters < DEFAULT_CLUSTERS);
    assert_true(own_errors >= packets / 1000 || clusters < DEFAULT_CLUSTERS);
    print_message("%6lu errors of pods about what they received\n", (unsigned long) own_errors);
    for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
        assert_true(actions[i] >= packets / 100 || clusters < DEFAULT_CLUSTERS);
    }
    for (enum model_cause i = 1; i < MODEL_N_CAUSES; i++) {
        print_message("%6lu %s\n", (unsigned long) causes[i], model_cause_name(i));
        assert_true(causes[i] >= packets / 1000 || clusters < DEFAULT_CLUSTERS);
    }
}

int main(void)
{
    if (ovs_unavailable()) {
        print_message("skipped: %s\n", ovs_unavailable());
        return 77; /* What meson counts as skipped. */
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(model_and_switch_agree)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
