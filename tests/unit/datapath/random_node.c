/* SPDX-License-Identifier: Apache-2.0 */
#include "random_node.h"

#include "rng.h"

static const uint32_t vnids[] = {SDN_VNID_GLOBAL, SDN_VNID_NOBODY, 42, 43,
                                 42 + 0x10000,    SDN_VNID_MAX};

uint32_t some_vnid(void)
{
    return PICK(vnids);
}

static void make_network(struct cluster *c)
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
                                  .block_metadata = chance(70),
                                  .mtu = 1450}};
    c->net.remotes = c->remotes;
    for (uint32_t slot = 0; slot < MAX_REMOTES; slot++) {
        struct sdn_remote r = {
            .host_ip = HOST(2 + below(6)),
            .subnet = {IP(10, 128, 4 + 2 * slot, 0), (uint8_t) (chance(70) ? 23 : 24 + below(3))},
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
                                                      .has_also_vnid = chance(20),
                                                      .also_vnid = PICK(vnids)};
        }
    }
}

static void make_ways(struct cluster *c)
{
    for (uint32_t i = 0; i < MAX_HOSTS; i++) {
        if (chance(70)) {
            c->paths[i] = (struct path){(int) (3001 + below(3)), HOST(below(MAX_HOSTS)),
                                        chance(80) ? 1500 : 84 + below(40)};
        }
    }
}

uint32_t some_address(const struct cluster *c)
{
    static const uint32_t others[] = {0,
                                      IP(8, 8, 8, 8),
                                      IP(127, 0, 0, 1),
                                      SDN_METADATA_IP,
                                      SDN_METADATA_IP,
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

struct mac some_mac(const struct cluster *c)
{
    return chance(80) ? mac_from_ip4(some_address(c)) : (struct mac){{2, 0, 0, 0, 0, 7}};
}

static void add_policies(struct cluster *c)
{
    random_policies_init(&c->policies, rng);
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

static void add_firewalls(struct cluster *c)
{
    static const uint32_t outside[] = {
        IP(8, 8, 8, 8), IP(223, 255, 255, 255), IP(127, 0, 0, 1), HOST(1),
        HOST(2),        IP(172, 16, 3, 4),      IP(172, 30, 0, 1)};
    random_firewalls_init(&c->firewalls);
    for (size_t i = 0; i < ARRAY_SIZE(vnids); i++) {
        if (vnids[i] != SDN_VNID_GLOBAL && c->net.plugin != SDN_SUBNET && chance(50)) {
            random_firewalls_add(&c->firewalls, vnids[i], outside, ARRAY_SIZE(outside));
        }
    }
}

static uint32_t endpoint_address(const void *ctx)
{
    return some_address(ctx);
}

/* HOST(1) to HOST(9) are nodes or may be one's further address. */
static void add_addresses(struct cluster *c)
{
    if (chance(50)) {
        sdn_addresses_add(&c->net.addresses, HOST(8));
    }
    for (size_t i = 0; i < c->net.n_remotes; i++) {
        if (chance(30)) {
            sdn_addresses_add(&c->remotes[i].addresses, HOST(2 + below(8)));
        }
    }
}

static void add_host_ports(struct cluster *c, uint32_t address)
{
    struct random_service_world w = {&c->net, NODE_NAME, rng, endpoint_address, c};
    struct sdn_service *s = random_host_ports(&w, address);
    if (s) {
        c->parsed[c->n_services] = s;
        c->services[c->n_services++] = (struct sdn_project_service){.service = s};
    }
}

static void add_services(struct cluster *c)
{
    struct random_service_world w = {&c->net, NODE_NAME, rng, endpoint_address, c};
    for (c->n_services = 0; c->n_services < below(2 * MAX_SERVICES) % (MAX_SERVICES + 1);) {
        size_t i = c->n_services++;
        c->parsed[i] = random_service(&w, (unsigned) i);
        c->services[i] =
            (struct sdn_project_service){c->parsed[i], PICK(vnids), chance(20), PICK(vnids)};
    }
    add_host_ports(c, HOST(1));
    if (c->net.addresses.n) {
        add_host_ports(c, c->net.addresses.ip[0]);
    }
    const struct sdn_remote *r =
        c->net.n_remotes ? &c->remotes[below((uint32_t) c->net.n_remotes)] : NULL;
    if (r && r->subnet.len && !prefix_overlaps(r->subnet, c->net.local)) {
        add_host_ports(c, r->host_ip);
    }
    c->net.service_by_host = c->net.plugin != SDN_NETWORKPOLICY && chance(10);
}

void cluster_make(struct cluster *c)
{
    make_network(c);
    make_ways(c);
    add_addresses(c);
    add_policies(c);
    add_services(c);
    add_firewalls(c);
}

void cluster_done(struct cluster *c)
{
    random_firewalls_done(&c->firewalls);
    for (size_t i = 0; i < c->n_services; i++) {
        sdn_service_free(c->parsed[i]);
    }
}

struct model_node cluster_node(const struct cluster *c)
{
    return (struct model_node){.net = &c->net,
                               .pods = c->pods,
                               .n_pods = c->n_pods,
                               .policies =
                                   c->net.plugin == SDN_NETWORKPOLICY ? &c->policies.model : NULL,
                               .services = c->services,
                               .n_services = c->n_services,
                               .firewalls = c->firewalls.list,
                               .n_firewalls = c->firewalls.n,
                               .name = NODE_NAME};
}
