/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/encode.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <string.h>

static_assert(sizeof(struct ebpf_route_key) <= TABLE_KEY_MAX, "a key fits");
static_assert(sizeof(struct ebpf_route) <= TABLE_VALUE_MAX, "a value fits");
static_assert(sizeof(struct ebpf_pod) <= TABLE_VALUE_MAX, "a value fits");
static_assert(sizeof(struct ebpf_backend_key) <= TABLE_KEY_MAX, "a key fits");
static_assert(sizeof(struct ebpf_serving_key) <= TABLE_KEY_MAX, "a key fits");
static_assert(sizeof(struct ebpf_service) <= TABLE_VALUE_MAX, "a value fits");

/* 'kind' first in the value: by_row puts the kind that takes precedence last. */
static void set_route(struct table_row *row, struct ip4_prefix p, const struct ebpf_route *r)
{
    struct ebpf_route_key key = {.len = p.len, .addr = htonl(p.addr)};
    memset(row, 0, sizeof *row);
    memcpy(row->key, &key, sizeof key);
    memcpy(row->value, r, sizeof *r);
}

/* A node without a subnet has no pods; a node that claims our subnet is ignored. */
static bool takes_part(const struct sdn_network *n, const struct sdn_remote *r)
{
    return r->subnet.len > 0 && !prefix_overlaps(r->subnet, n->local);
}

struct table_row *encode_routes(const struct sdn_network *n, const struct path *paths,
                                size_t *ret_n)
{
    struct table_row *rows = xcalloc(n->n_cluster + n->n_remotes + 3, sizeof *rows);
    size_t k = 0;
    for (size_t i = 0; i < n->n_cluster; i++) {
        set_route(&rows[k++], n->cluster[i], &(struct ebpf_route){.kind = EBPF_CLUSTER});
    }
    if (n->service.len) {
        set_route(&rows[k++], n->service, &(struct ebpf_route){.kind = EBPF_SERVICE});
    }
    set_route(&rows[k++], n->local, &(struct ebpf_route){.kind = EBPF_LOCAL});
    set_route(&rows[k++], (struct ip4_prefix){sdn_gateway(n), 32},
              &(struct ebpf_route){.kind = EBPF_GATEWAY});
    for (size_t i = 0; i < n->n_remotes; i++) {
        const struct sdn_remote *r = &n->remotes[i];
        if (takes_part(n, r)) {
            struct ebpf_route v = {.kind = EBPF_REMOTE,
                                   .vtep = r->host_ip,
                                   .has_fixed = r->has_fixed_vnid,
                                   .fixed_vnid = r->has_fixed_vnid ? r->fixed_vnid : 0};
            if (paths) {
                v.ifindex = (uint32_t) paths[i].ifindex;
                v.next = htonl(paths[i].next);
                v.mtu = (uint16_t) MIN(paths[i].mtu, UINT16_MAX);
            }
            set_route(&rows[k++], r->subnet, &v);
        }
    }
    *ret_n = k;
    return rows;
}

static struct ebpf_route_key route_key(const struct table_row *row)
{
    struct ebpf_route_key key;
    memcpy(&key, row->key, sizeof key);
    return key;
}

static bool is_remote(const struct table_row *row)
{
    struct ebpf_route r;
    memcpy(&r, row->value, sizeof r);
    return r.kind == EBPF_REMOTE;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
    return (x > y) - (x < y);
}

struct table_row *encode_subnets(const struct table_row *routes, size_t n, uint8_t *ret_len,
                                 size_t *ret_n)
{
    size_t count[33] = {0}, n_longer = 0, k = 0;
    uint32_t len = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t l = route_key(&routes[i]).len;
        count[l] += is_remote(&routes[i]);
        len = count[l] > count[len] ? l : len;
    }
    struct table_row *rows = xcalloc(count[len] + 1, sizeof *rows);
    /* Index of the containing prefix. */
    CLEANUP_FREE uint32_t *longer = xcalloc(n + 1, sizeof *longer);
    for (size_t i = 0; i < n; i++) {
        struct ebpf_route_key key = route_key(&routes[i]);
        if (key.len > len) {
            longer[n_longer++] = ntohl(key.addr) & prefix_mask((uint8_t) len);
        }
    }
    qsort(longer, n_longer, sizeof *longer, by_number);
    for (size_t i = 0; i < n; i++) {
        struct ebpf_route_key key = route_key(&routes[i]);
        uint32_t addr = ntohl(key.addr);
        if (key.len == len && is_remote(&routes[i]) &&
            !bsearch(&addr, longer, n_longer, sizeof addr, by_number)) {
            rows[k++] = routes[i];
        }
    }
    *ret_len = (uint8_t) len;
    *ret_n = k;
    return rows;
}

static void set_address(struct table_row *row, uint32_t ip, enum ebpf_node_address is)
{
    uint32_t value = is;
    memcpy(row->key, &ip, sizeof ip);
    memcpy(row->value, &value, sizeof value);
}

/* An address that is both counts as a VTEP: table_sync keeps the larger value of a key. */
struct table_row *encode_vteps(const struct sdn_network *n, size_t *ret_n)
{
    size_t k = 0, most = n->addresses.n + 1;
    for (size_t i = 0; i < n->n_remotes; i++) {
        most += 1 + n->remotes[i].addresses.n;
    }
    struct table_row *rows = xcalloc(most, sizeof *rows);
    for (size_t i = 0; i < n->addresses.n; i++) {
        set_address(&rows[k++], n->addresses.ip[i], EBPF_IS_OTHER_ADDRESS);
    }
    for (size_t i = 0; i < n->n_remotes; i++) {
        const struct sdn_remote *r = &n->remotes[i];
        for (size_t j = 0; takes_part(n, r) && j < r->addresses.n; j++) {
            set_address(&rows[k++], r->addresses.ip[j], EBPF_IS_OTHER_ADDRESS);
        }
    }
    for (size_t i = 0; i < n->n_remotes; i++) {
        if (takes_part(n, &n->remotes[i])) {
            set_address(&rows[k++], n->remotes[i].host_ip, EBPF_IS_VTEP);
        }
    }
    *ret_n = k;
    return rows;
}

struct ebpf_settings encode_settings(const struct sdn_network *n, const struct devices *d,
                                     bool has_services)
{
    struct mac mac = mac_from_ip4(sdn_gateway(n));
    struct ebpf_settings v = {
        .tun_ifindex = (uint32_t) d->tun,
        .host_ifindex = (uint32_t) d->host,
        .vxlan_ifindex = (uint32_t) d->vxlan,
        .gateway = htonl(sdn_gateway(n)),
        .host = htonl(n->host_ip),
        .local = htonl(n->local.addr),
        .mask = htonl(prefix_mask(n->local.len)),
        .has_services = has_services,
        .services_by_host = n->service_by_host,
        .vxlan_port = htons(n->vxlan_port),
        .carry_vnids = sdn_plugin_has_vnids(n->plugin),
        .has_policy = n->plugin == SDN_NETWORKPOLICY,
        .compare_vnids = sdn_plugin_compares_vnids(n->plugin),
        .metadata = n->block_metadata ? htonl(SDN_METADATA_IP) : 0,
    };
    memcpy(v.tun_mac, mac.b, sizeof v.tun_mac);
    return v;
}

/* ---- services ---- */

/* Addresses that name no host: "this" network and host, link-local, multicast. */
static bool is_special(uint32_t ip)
{
    return ip >> 24 == 0 || ip >> 24 == 127 || ip >> 16 == 0xa9fe || ip >> 29 == 7;
}

static bool in_networks(const struct sdn_network *n, uint32_t ip)
{
    bool in = n->service.len && prefix_contains(n->service, ip);
    for (size_t i = 0; i < n->n_cluster; i++) {
        in = in || prefix_contains(n->cluster[i], ip);
    }
    return in;
}

static void add_row(struct table_row **rows, size_t *cap, size_t n, const void *key,
                    size_t key_size, const void *value, size_t value_size)
{
    *rows = grow(*rows, cap, n + 1, sizeof **rows);
    struct table_row *row = &(*rows)[n];
    *row = (struct table_row){0};
    memcpy(row->key, key, key_size);
    memcpy(row->value, value, value_size);
}

struct serving_node {
    const struct sdn_network *net;
    const char *name;
};

/* One address (0: node ports) and port of a service with its backends; 'local': only the local
 * ones. */
static void add_service(struct encoded_services *r, const struct serving_node *node,
                        const struct sdn_project_service *m, const struct sdn_service_port *p,
                        uint32_t addr, uint16_t port, bool local)
{
    static const uint32_t one = 1;
    const struct sdn_backend **list = NULL;
    size_t n = sdn_service_choose(m->service, p, local ? node->name : NULL, &list);
    struct ebpf_service_key key = {
        .addr = htonl(addr), .port = htons(port), .protocol = p->protocol};
    struct ebpf_service v = {.vnid = m->vnid,
                             .affinity_s = m->service->affinity_s,
                             .flags = m->service->host_ports ? EBPF_SERVICE_HOST_PORT : 0};
    if (m->has_also_vnid) {
        v.flags |= EBPF_SERVICE_ALSO_VNID;
        v.also_vnid = m->also_vnid;
    }
    if (sdn_service_waits(m->service, p)) {
        v.flags |= EBPF_SERVICE_IDLE;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t ip = list[i]->endpoint->ip;
        /* No packet may be translated to the tunnels' port. */
        if (is_special(ip) || (p->protocol == SDN_UDP && list[i]->port == node->net->vxlan_port)) {
            continue;
        }
        struct ebpf_backend b = {.addr = htonl(ip), .port = htons(list[i]->port)};
        struct ebpf_backend_key at = {.service = key, .index = v.count++};
        struct ebpf_serving_key serving = {.service = key, .backend = b};
        add_row(&r->backends, &r->cap_backends, r->n_backends, &at, sizeof at, &b, sizeof b);
        add_row(&r->serving, &r->cap_serving, r->n_backends++, &serving, sizeof serving, &one,
                sizeof one);
    }
    free(list);
    if (m->service->host_ports && !v.count) {
        return; /* No packet may be translated to that port, so the host port is left out. */
    }
    add_row(&r->services, &r->cap_services, r->n_services++, &key, sizeof key, &v, sizeof v);
}

static void add_service_port(struct encoded_services *r, const struct serving_node *node,
                             const struct sdn_project_service *m, const struct sdn_service_port *p)
{
    const struct sdn_service *s = m->service;
    if (node->net->service.len && prefix_contains(node->net->service, s->cluster_ip)) {
        add_service(r, node, m, p, s->cluster_ip, p->port, s->internal_local);
    }
    for (size_t i = 0; i < s->n_external_ips; i++) {
        uint32_t ip = s->external_ips[i];
        if (!is_special(ip) && !in_networks(node->net, ip)) {
            add_service(r, node, m, p, ip, p->port, false);
        }
    }
    if (p->node_port) {
        add_service(r, node, m, p, 0, p->node_port, false);
    }
}

/* ---- host ports ---- */

static int by_service_key(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct ebpf_service_key));
}

static bool has_key(const struct table_row *rows, size_t n, uint32_t addr,
                    const struct sdn_service_port *p)
{
    struct ebpf_service_key key = {
        .addr = htonl(addr), .port = htons(p->port), .protocol = p->protocol};
    return n && bsearch(&key, rows, n, sizeof *rows, by_service_key);
}

/* A service with the same address and port takes precedence. */
static void add_host_ports(struct encoded_services *r, const struct serving_node *node,
                           const struct sdn_project_service *list, size_t n_list)
{
    size_t n = r->n_services;
    CLEANUP_FREE struct table_row *taken = NULL;
    for (size_t i = 0; i < n_list; i++) {
        const struct sdn_service *s = list[i].service;
        if (s->host_ports && !taken && n) {
            taken = xmemdup(r->services, n * sizeof *taken);
            qsort(taken, n, sizeof *taken, by_service_key);
        }
        for (size_t k = 0; s->host_ports && k < s->n_ports; k++) {
            const struct sdn_service_port *p = &s->ports[k];
            if (!has_key(taken, n, s->cluster_ip, p) && !has_key(taken, n, 0, p)) {
                add_service(r, node, &list[i], p, s->cluster_ip, p->port, false);
            }
        }
    }
}

void encode_services(const struct sdn_network *n, const char *node,
                     const struct sdn_project_service *list, size_t n_list,
                     struct encoded_services *ret)
{
    struct serving_node here = {n, node};
    *ret = (struct encoded_services){0};
    for (size_t i = 0; i < n_list; i++) {
        const struct sdn_service *s = list[i].service;
        for (size_t k = 0; s->cluster_ip && !s->host_ports && k < s->n_ports; k++) {
            if (s->ports[k].protocol == SDN_TCP || s->ports[k].protocol == SDN_UDP) {
                add_service_port(ret, &here, &list[i], &s->ports[k]);
            }
        }
    }
    add_host_ports(ret, &here, list, n_list);
}

bool encode_pod(const struct sdn_network *n, const struct encode_pod *p, struct table_row *ret_pod,
                struct table_row *ret_port)
{
    uint32_t addr = htonl(p->ip), inlet = (uint32_t) (p->inlet ? p->inlet : p->ifindex);
    struct ebpf_pod v = {
        .reach = {.ifindex = (uint32_t) p->ifindex, .vnid = p->vnid}, .inlet = inlet, .addr = addr};
    if (!prefix_contains(n->local, p->ip) || p->ip == sdn_gateway(n)) {
        return false;
    }
    memcpy(v.mac, p->mac.b, sizeof v.mac);
    if (p->has_also_vnid) {
        v.flags |= EBPF_POD_ALSO_VNID;
        v.also_vnid = p->also_vnid;
    }
    if (p->queued) {
        v.flags |= EBPF_POD_QUEUED;
    }
    *ret_pod = *ret_port = (struct table_row){0};
    memcpy(ret_pod->key, &addr, sizeof addr);
    memcpy(ret_pod->value, &v, sizeof v);
    memcpy(ret_port->key, &inlet, sizeof inlet);
    memcpy(ret_port->value, &addr, sizeof addr);
    return true;
}

struct table_row *encode_pod_cache(const struct table_row *pods, size_t n, size_t *ret_n)
{
    struct table_row *rows = xcalloc(n + 1, sizeof *rows);
    CLEANUP_FREE uint32_t *pods_at = xcalloc(EBPF_POD_CACHE_SIZE, sizeof *pods_at);
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        struct ebpf_pod v;
        memcpy(&v, pods[i].value, sizeof v);
        pods_at[ntohl(v.addr) % EBPF_POD_CACHE_SIZE]++;
    }
    for (size_t i = 0; i < n; i++) {
        struct ebpf_pod v;
        memcpy(&v, pods[i].value, sizeof v);
        uint32_t index = ntohl(v.addr) % EBPF_POD_CACHE_SIZE;
        if (pods_at[index] == 1 && !(v.flags & EBPF_POD_ALSO_VNID)) {
            memcpy(rows[k].key, &index, sizeof index);
            memcpy(rows[k++].value, &v, sizeof v);
        }
    }
    *ret_n = k;
    return rows;
}

static const enum model_cause causes[EBPF_N_CAUSES] = {
    [EBPF_VLAN_TAGGED] = MODEL_VLAN_TAGGED,
    [EBPF_NOT_IP] = MODEL_NOT_IP,
    [EBPF_MULTICAST] = MODEL_MULTICAST,
    [EBPF_NOT_FOR_THIS_NODE] = MODEL_NOT_FOR_THIS_NODE,
    [EBPF_FORGED_TUNNEL] = MODEL_FORGED_TUNNEL,
    [EBPF_UNKNOWN_PORT] = MODEL_UNKNOWN_PORT,
    [EBPF_UNKNOWN_VTEP] = MODEL_UNKNOWN_VTEP,
    [EBPF_SPOOFED_SOURCE] = MODEL_SPOOFED_SOURCE,
    [EBPF_ARP_NOT_ASKED] = MODEL_ARP_NOT_ASKED,
    [EBPF_ARP_OFF_NETWORK] = MODEL_ARP_OFF_NETWORK,
    [EBPF_SERVICE_NOT_AVAILABLE] = MODEL_SERVICE_NOT_AVAILABLE,
    [EBPF_NO_SUCH_NODE] = MODEL_NO_SUCH_NODE,
    [EBPF_NO_SUCH_POD] = MODEL_NO_SUCH_POD,
    [EBPF_OWN_ADDRESS] = MODEL_OWN_ADDRESS,
    [EBPF_VNID_MISMATCH] = MODEL_VNID_MISMATCH,
    [EBPF_BACK_TO_HOST] = MODEL_BACK_TO_HOST,
    [EBPF_SERVICE_INVALID] = MODEL_SERVICE_INVALID,
    [EBPF_SERVICE_FOREIGN] = MODEL_SERVICE_FOREIGN,
    [EBPF_SERVICE_NO_ENDPOINTS] = MODEL_SERVICE_NO_ENDPOINTS,
    [EBPF_SERVICE_IS_IDLE] = MODEL_SERVICE_IDLE,
    [EBPF_CONNECTION_DENIED] = MODEL_CONNECTION_DENIED,
    [EBPF_EGRESS_DENIED] = MODEL_EGRESS_DENIED,
    [EBPF_INGRESS_DENIED] = MODEL_INGRESS_DENIED,
    [EBPF_FORGED_ERROR] = MODEL_FORGED_ERROR,
    [EBPF_METADATA] = MODEL_METADATA,
    [EBPF_FIREWALL_DENIED] = MODEL_FIREWALL_DENIED,
};

enum model_action encode_action(uint32_t verdict)
{
    switch (verdict) {
    case EBPF_DELIVER:
        return MODEL_DELIVER;
    case EBPF_HOST:
        return MODEL_HOST;
    case EBPF_TUNNEL:
        return MODEL_TUNNEL;
    case EBPF_ANSWER:
        return MODEL_ANSWER;
    default:
        return MODEL_DROP;
    }
}

enum model_cause encode_cause(uint32_t cause)
{
    return cause < EBPF_N_CAUSES ? causes[cause] : MODEL_NOT_DROPPED;
}
