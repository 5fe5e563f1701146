/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/model.h"

#include <assert.h>
#include <stdlib.h>

static const char *const cause_names[] = {
    [MODEL_NOT_DROPPED] = "",
    [MODEL_VLAN_TAGGED] = "vlan-tagged",
    [MODEL_NOT_IP] = "not-ip",
    [MODEL_MULTICAST] = "multicast",
    [MODEL_NOT_FOR_THIS_NODE] = "not-for-this-node",
    [MODEL_FORGED_TUNNEL] = "forged-tunnel",
    [MODEL_UNKNOWN_PORT] = "unknown-port",
    [MODEL_UNKNOWN_VTEP] = "unknown-vtep",
    [MODEL_SPOOFED_SOURCE] = "spoofed-source",
    [MODEL_ARP_NOT_ASKED] = "arp-not-asked",
    [MODEL_ARP_OFF_NETWORK] = "arp-off-network",
    [MODEL_SERVICE_NOT_AVAILABLE] = "service-not-available",
    [MODEL_CONNECTION_DENIED] = "connection-denied",
    [MODEL_EGRESS_DENIED] = "egress-denied",
    [MODEL_NO_SUCH_NODE] = "no-such-node",
    [MODEL_INGRESS_DENIED] = "ingress-denied",
    [MODEL_NO_SUCH_POD] = "no-such-pod",
    [MODEL_OWN_ADDRESS] = "own-address",
    [MODEL_VNID_MISMATCH] = "vnid-mismatch",
    [MODEL_BACK_TO_HOST] = "back-to-host",
    [MODEL_SERVICE_INVALID] = "service-invalid",
    [MODEL_SERVICE_FOREIGN] = "service-of-other-project",
    [MODEL_SERVICE_NO_ENDPOINTS] = "service-without-endpoints",
    [MODEL_SERVICE_IDLE] = "service-idle",
    [MODEL_FORGED_ERROR] = "forged-error",
    [MODEL_METADATA] = "metadata-blocked",
    [MODEL_FIREWALL_DENIED] = "egress-firewall",
};
static_assert(ARRAY_SIZE(cause_names) == MODEL_N_CAUSES, "a name for each cause");

const char *model_cause_name(enum model_cause c)
{
    return cause_names[c];
}

static struct model_verdict drop(enum model_cause why)
{
    return (struct model_verdict){.action = MODEL_DROP, .cause = why};
}

/* Errors are only sent for causes that do not depend on the existing pods. */
static struct model_verdict refuse(const struct model_node *n, const struct model_packet *p,
                                   enum model_cause why)
{
    struct model_verdict v = drop(why);
    v.refused = n->net->refusal_meter && p->entry == MODEL_FROM_PORT;
    return v;
}

/* ---- the network ---- */

static const struct model_pod *pod_on(const struct model_node *n, uint32_t port)
{
    for (size_t i = 0; i < n->n_pods; i++) {
        if (n->pods[i].port == port) {
            return &n->pods[i];
        }
    }
    return NULL;
}

static const struct model_pod *pod_at(const struct model_node *n, uint32_t ip)
{
    for (size_t i = 0; i < n->n_pods; i++) {
        if (n->pods[i].ip == ip) {
            return &n->pods[i];
        }
    }
    return NULL;
}

static bool in_cluster(const struct sdn_network *net, uint32_t ip)
{
    for (size_t i = 0; i < net->n_cluster; i++) {
        if (prefix_contains(net->cluster[i], ip)) {
            return true;
        }
    }
    return false;
}

static bool is_service(const struct sdn_network *net, uint32_t ip)
{
    return net->service.len > 0 && prefix_contains(net->service, ip);
}

/* A node without a subnet has no pods; a node that claims our subnet is ignored. */
static bool takes_part(const struct sdn_network *net, const struct sdn_remote *r)
{
    return r->subnet.len > 0 && !prefix_overlaps(r->subnet, net->local);
}

static const struct sdn_remote *owner_of(const struct sdn_network *net, uint32_t ip)
{
    for (size_t i = 0; i < net->n_remotes; i++) {
        const struct sdn_remote *r = &net->remotes[i];
        if (takes_part(net, r) && prefix_contains(r->subnet, ip)) {
            return r;
        }
    }
    return NULL;
}

/* A host that has two subnets may send from both. */
static enum model_cause check_tunnel(const struct sdn_network *net, uint32_t outer_src,
                                     uint32_t src)
{
    enum model_cause c = MODEL_UNKNOWN_VTEP;
    for (size_t i = 0; i < net->n_remotes; i++) {
        const struct sdn_remote *r = &net->remotes[i];
        if (r->host_ip != outer_src || !takes_part(net, r)) {
            continue;
        }
        if (prefix_contains(r->subnet, src)) {
            return MODEL_NOT_DROPPED;
        }
        c = MODEL_SPOOFED_SOURCE;
    }
    return c;
}

/* ---- policy ---- */

/* It answers or concerns a connection that was allowed: not judged again. */
static bool is_answer(const struct model_packet *p)
{
    return p->ip.connection == MODEL_REPLY || p->ip.connection == MODEL_RELATED ||
           (p->ip.connection == MODEL_ORIGINAL && p->ip.later_fragment && !p->ip.denied);
}

static bool is_denied_answer(const struct model_node *n, const struct model_packet *p)
{
    return n->policies && p->ip.denied &&
           (p->ip.connection == MODEL_REPLY || p->ip.connection == MODEL_RELATED);
}

/* A pod may only send errors about packets that it received, on connections that the tracker
 * knows. */
static bool is_forged_error(const struct model_node *n, const struct model_packet *p)
{
    bool is_own = p->ip.connection == MODEL_RELATED && p->ip.quoted_dst == p->ip.src;
    return n->policies && p->ip.icmp_error && !is_own;
}

static bool policy_allows(const struct model_node *n, const struct model_packet *p,
                          enum model_way way)
{
    if (!n->policies || is_answer(p)) {
        return true;
    }
    uint32_t subject = way == MODEL_EGRESS ? p->ip.src : p->ip.dst;
    uint32_t peer = way == MODEL_EGRESS ? p->ip.dst : p->ip.src;
    return model_policy_allows(n->policies, way, subject, peer, p->ip.proto, p->ip.dst_port);
}

/* A pod accepts all packets of its own node: else probes would fail. */
static bool is_own_host(const struct model_node *n, const struct model_packet *p)
{
    return p->entry == MODEL_FROM_HOST &&
           (p->ip.src == sdn_gateway(n->net) || p->ip.src == n->net->host_ip);
}

/* ---- destinations ---- */

static struct model_verdict to_host(const struct model_node *n, const struct model_packet *p)
{
    if (p->entry == MODEL_FROM_HOST) {
        return drop(MODEL_BACK_TO_HOST);
    }
    return (struct model_verdict){.action = MODEL_HOST,
                                  .eth_dst = mac_from_ip4(sdn_gateway(n->net))};
}

static struct model_verdict to_local(const struct model_node *n, const struct model_packet *p,
                                     uint32_t vnid)
{
    const struct model_pod *to = pod_at(n, p->ip.dst);
    if (!to) {
        return drop(MODEL_NO_SUCH_POD);
    }
    if (p->entry == MODEL_FROM_PORT && p->port == to->port) {
        return drop(MODEL_OWN_ADDRESS);
    }
    if (!is_own_host(n, p) && !policy_allows(n, p, MODEL_INGRESS)) {
        return drop(MODEL_INGRESS_DENIED);
    }
    /* Under ovs-subnet VNIDs are not compared, not even those of tunnel packets. */
    bool allowed = sdn_vnid_may_reach(vnid, to->vnid) ||
                   (to->has_also_vnid && sdn_vnid_may_reach(vnid, to->also_vnid));
    if (sdn_plugin_compares_vnids(n->net->plugin) && !allowed) {
        return drop(MODEL_VNID_MISMATCH);
    }
    return (struct model_verdict){.action = MODEL_DELIVER, .port = to->port, .eth_dst = to->mac};
}

static struct model_verdict to_remote(const struct model_node *n, const struct model_packet *p,
                                      uint32_t vnid)
{
    const struct sdn_remote *r = owner_of(n->net, p->ip.dst);
    if (!r) {
        return refuse(n, p, MODEL_NO_SUCH_NODE);
    }
    return (struct model_verdict){.action = MODEL_TUNNEL,
                                  .remote = r->host_ip,
                                  .tunnel_id = r->has_fixed_vnid ? r->fixed_vnid : vnid,
                                  .eth_dst =
                                      r->has_fixed_vnid ? mac_from_ip4(p->ip.dst) : p->eth_dst};
}

static bool is_dns(const struct model_packet *p)
{
    bool has_ports = (p->ip.proto == 6 || p->ip.proto == MODEL_PROTO_UDP) && !p->ip.later_fragment;
    return has_ports && p->ip.dst_port == 53;
}

static struct model_verdict to_outside(const struct model_node *n, const struct model_packet *p,
                                       uint32_t vnid)
{
    /* DNS of this node is allowed, whatever the egress firewall says. */
    bool own_dns = p->ip.dst == n->net->host_ip && is_dns(p);
    if (n->net->block_metadata && p->entry == MODEL_FROM_PORT && p->ip.dst == SDN_METADATA_IP &&
        !is_dns(p)) {
        return refuse(n, p, MODEL_METADATA);
    }
    for (size_t i = 0; i < n->n_firewalls && !own_dns; i++) {
        const struct model_firewall *f = &n->firewalls[i];
        size_t rule = firewall_find(f->rules, f->n_rules, p->ip.dst);
        if (f->vnid == vnid && rule < f->n_rules && !f->rules[rule].allow) {
            return drop(MODEL_FIREWALL_DENIED);
        }
    }
    return to_host(n, p);
}

/* Routes a packet of a pod, or of the host by its own address, whose source was checked and has
 * this VNID. */
static struct model_verdict route(const struct model_node *n, const struct model_packet *p,
                                  uint32_t vnid)
{
    if (p->ip.dst == sdn_gateway(n->net)) {
        return to_host(n, p);
    }
    if (prefix_contains(n->net->local, p->ip.dst)) {
        return to_local(n, p, vnid);
    }
    if (is_service(n->net, p->ip.dst)) {
        return refuse(n, p, MODEL_SERVICE_NOT_AVAILABLE);
    }
    if (in_cluster(n->net, p->ip.dst)) {
        return to_remote(n, p, vnid);
    }
    return to_outside(n, p, vnid);
}

/* ---- services ---- */

/* Addresses that name no host: "this" network and host, link-local, multicast. */
static bool is_special(uint32_t ip)
{
    return ip >> 24 == 0 || ip >> 24 == 127 || ip >> 16 == 0xa9fe || ip >> 29 == 7;
}

/* Backends that new connections get; owned. No packet may be translated to the tunnels' port. */
static size_t backends(const struct model_node *n, const struct model_verdict *v,
                       const struct sdn_backend ***ret)
{
    const struct sdn_service *s = v->service->service;
    bool local = s->internal_local && !v->any_node;
    size_t all = sdn_service_choose(s, v->service_port, local ? n->name : NULL, ret), used = 0;
    for (size_t i = 0; i < all; i++) {
        bool tunnel =
            v->service_port->protocol == MODEL_PROTO_UDP && (*ret)[i]->port == n->net->vxlan_port;
        if (!tunnel && !is_special((*ret)[i]->endpoint->ip)) {
            (*ret)[used++] = (*ret)[i];
        }
    }
    return used;
}

bool model_may_get(const struct model_node *n, const struct model_verdict *v, uint32_t ip,
                   uint16_t port)
{
    const struct sdn_backend **list = NULL;
    size_t count = backends(n, v, &list);
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        found |= list[i]->endpoint->ip == ip && list[i]->port == port;
    }
    free(list);
    return found;
}

size_t model_endpoints(const struct model_node *n, const struct model_verdict *v)
{
    const struct sdn_backend **list = NULL;
    size_t count = backends(n, v, &list);
    free(list);
    return count;
}

static bool is_among(const struct sdn_addresses *a, uint32_t ip)
{
    bool found = false;
    for (size_t i = 0; i < a->n; i++) {
        found = found || a->ip[i] == ip;
    }
    return found;
}

static bool is_node_address(const struct sdn_network *net, uint32_t ip)
{
    for (size_t i = 0; i < net->n_remotes; i++) {
        const struct sdn_remote *r = &net->remotes[i];
        if ((r->host_ip == ip || is_among(&r->addresses, ip)) && takes_part(net, r)) {
            return true;
        }
    }
    return ip == net->host_ip || is_among(&net->addresses, ip);
}

/* An address beside the clusterIP, unless it belongs to another object. */
static bool has_external_ip(const struct sdn_network *net, const struct sdn_service *s, uint32_t ip)
{
    for (size_t i = 0; i < s->n_external_ips; i++) {
        if (s->external_ips[i] == ip) {
            return !is_special(ip) && !in_cluster(net, ip) && !is_service(net, ip);
        }
    }
    return false;
}

/* The service and port of the packet's destination; false: none. */
static bool find_service(const struct model_node *n, const struct model_packet *p,
                         struct model_verdict *v)
{
    bool has_ports = (p->ip.proto == 6 || p->ip.proto == MODEL_PROTO_UDP) && !p->ip.later_fragment;
    for (size_t i = 0; has_ports && i < n->n_services; i++) {
        const struct sdn_service *s = n->services[i].service;
        for (size_t k = 0; s->cluster_ip && k < s->n_ports; k++) {
            const struct sdn_service_port *port = &s->ports[k];
            bool own = p->ip.dst == s->cluster_ip && p->ip.dst_port == port->port &&
                       (s->host_ports ? is_node_address(n->net, p->ip.dst)
                                      : is_service(n->net, p->ip.dst));
            bool other = (p->ip.dst_port == port->port && has_external_ip(n->net, s, p->ip.dst)) ||
                         (port->node_port && p->ip.dst_port == port->node_port &&
                          is_node_address(n->net, p->ip.dst));
            if (port->protocol == p->ip.proto && (own || other)) {
                v->service = &n->services[i];
                v->service_port = port;
                v->any_node = !own;
                return s->host_ports ? model_endpoints(n, v) > 0 : true;
            }
        }
    }
    return false;
}

static bool is_external(const struct model_node *n, uint32_t ip)
{
    for (size_t i = 0; i < n->n_services; i++) {
        const struct sdn_service *s = n->services[i].service;
        if (s->cluster_ip && has_external_ip(n->net, s, ip)) {
            return true;
        }
    }
    return false;
}

bool model_asks_services(const struct model_node *n, const struct model_packet *p)
{
    struct model_verdict v;
    bool fragment =
        p->ip.later_fragment && (is_node_address(n->net, p->ip.dst) || is_external(n, p->ip.dst));
    if (n->net->service_by_host) {
        return p->ip.dst == SDN_ITSELF_IP ||
               (p->entry == MODEL_FROM_PORT && !p->ip.translated && find_service(n, p, &v) &&
                v.service->service->host_ports);
    }
    return p->entry == MODEL_FROM_PORT && !p->ip.translated &&
           (is_service(n->net, p->ip.dst) || p->ip.dst == SDN_ITSELF_IP || fragment ||
            find_service(n, p, &v));
}

/* A pod's new connection to a service; '*ret' is its verdict. False: the packet is not to a
 * service. */
static bool judge_service(const struct model_node *n, const struct model_packet *p, uint32_t vnid,
                          struct model_verdict *ret)
{
    struct model_verdict v = {0};
    if (p->ip.dst == SDN_ITSELF_IP) {
        /* Only answers of a pod to itself are valid here. */
        *ret = drop(MODEL_SERVICE_INVALID);
        return true;
    }
    if (n->net->service_by_host && p->ip.later_fragment && is_service(n->net, p->ip.dst)) {
        *ret = to_host(n, p);
        return true;
    }
    if (!find_service(n, p, &v)) {
        *ret = refuse(n, p, MODEL_SERVICE_NOT_AVAILABLE);
        return is_service(n->net, p->ip.dst);
    }
    const struct sdn_project_service *s = v.service;
    bool allowed = sdn_vnid_may_reach(vnid, s->vnid) ||
                   (s->has_also_vnid && sdn_vnid_may_reach(vnid, s->also_vnid));
    if (sdn_plugin_compares_vnids(n->net->plugin) && !allowed) {
        *ret = drop(MODEL_SERVICE_FOREIGN);
    } else if (model_endpoints(n, &v) && n->net->service_by_host && !s->service->host_ports) {
        v.action = MODEL_HOST;
        v.eth_dst = mac_from_ip4(sdn_gateway(n->net));
        *ret = v;
        return true;
    } else if (model_endpoints(n, &v)) {
        v.action = MODEL_TRANSLATE;
        *ret = v;
        return true;
    } else {
        *ret = refuse(n, p,
                      sdn_service_waits(s->service, v.service_port) ? MODEL_SERVICE_IDLE
                                                                    : MODEL_SERVICE_NO_ENDPOINTS);
    }
    ret->service = v.service;
    ret->service_port = v.service_port;
    return true;
}

/* ---- IP, by origin ---- */

static struct model_verdict ip_from_port(const struct model_node *n, const struct model_packet *p)
{
    if (p->ip.proto == MODEL_PROTO_UDP && p->ip.dst_port == n->net->vxlan_port) {
        return refuse(n, p, MODEL_FORGED_TUNNEL);
    }
    const struct model_pod *from = pod_on(n, p->port);
    if (!from) {
        return drop(MODEL_UNKNOWN_PORT);
    }
    if (!mac_equal(p->eth_src, from->mac) || p->ip.src != from->ip) {
        return drop(MODEL_SPOOFED_SOURCE);
    }
    uint32_t vnid = sdn_effective_vnid(n->net, from->vnid);
    struct model_verdict v;
    if (!p->ip.translated && judge_service(n, p, vnid, &v)) {
        return v;
    }
    if (p->ip.translated && p->ip.dst == from->ip) {
        return (struct model_verdict){
            .action = MODEL_DELIVER, .port = from->port, .eth_dst = from->mac, .to_itself = true};
    }
    if (is_denied_answer(n, p)) {
        return drop(MODEL_CONNECTION_DENIED);
    }
    if (is_forged_error(n, p)) {
        return drop(MODEL_FORGED_ERROR);
    }
    if (!policy_allows(n, p, MODEL_EGRESS)) {
        return drop(MODEL_EGRESS_DENIED);
    }
    return route(n, p, vnid);
}

static struct model_verdict ip_from_tunnel(const struct model_node *n, const struct model_packet *p)
{
    if (!prefix_contains(n->net->local, p->ip.dst)) {
        return drop(MODEL_NOT_FOR_THIS_NODE);
    }
    enum model_cause c = check_tunnel(n->net, p->outer_src, p->ip.src);
    if (c != MODEL_NOT_DROPPED) {
        return drop(c);
    }
    if (is_denied_answer(n, p)) {
        return drop(MODEL_CONNECTION_DENIED);
    }
    return route(n, p, p->tunnel_id);
}

static struct model_verdict ip_from_host(const struct model_node *n, const struct model_packet *p)
{
    if (p->ip.src == sdn_gateway(n->net)) {
        return is_denied_answer(n, p) ? drop(MODEL_CONNECTION_DENIED)
                                      : route(n, p, SDN_VNID_GLOBAL);
    }
    if (in_cluster(n->net, p->ip.src)) {
        return drop(MODEL_SPOOFED_SOURCE);
    }
    /* From outside, and from the host's other addresses: to local pods only. */
    if (!prefix_contains(n->net->local, p->ip.dst)) {
        return drop(MODEL_NOT_FOR_THIS_NODE);
    }
    if (is_denied_answer(n, p)) {
        return drop(MODEL_CONNECTION_DENIED);
    }
    /* With policies, a packet for this node is routed after it was tracked. */
    return n->policies ? route(n, p, SDN_VNID_GLOBAL) : to_local(n, p, SDN_VNID_GLOBAL);
}

static struct model_verdict judge_ip(const struct model_node *n, const struct model_packet *p)
{
    static const struct ip4_prefix groups = {0xe0000000, 4};
    if (!p->ip.src && !p->ip.dst) {
        return drop(MODEL_NOT_IP);
    }
    if (prefix_contains(groups, p->ip.dst) || p->ip.dst == UINT32_MAX) {
        return drop(MODEL_MULTICAST);
    }
    switch (p->entry) {
    case MODEL_FROM_PORT:
        return ip_from_port(n, p);
    case MODEL_FROM_TUNNEL:
        return ip_from_tunnel(n, p);
    case MODEL_FROM_HOST:
        break;
    }
    return ip_from_host(n, p);
}

/* ---- ARP ---- */

/* The host may send requests with any sender address. */
static enum model_cause check_arp_sender(const struct model_node *n, const struct model_packet *p)
{
    if (p->entry == MODEL_FROM_PORT) {
        const struct model_pod *from = pod_on(n, p->port);
        if (!from) {
            return MODEL_UNKNOWN_PORT;
        }
        bool honest = mac_equal(p->eth_src, from->mac) && mac_equal(p->arp.sha, from->mac) &&
                      p->arp.spa == from->ip;
        return honest ? MODEL_NOT_DROPPED : MODEL_SPOOFED_SOURCE;
    }
    if (p->entry == MODEL_FROM_TUNNEL) {
        return prefix_contains(n->net->local, p->arp.tpa)
                   ? check_tunnel(n->net, p->outer_src, p->arp.spa)
                   : MODEL_NOT_FOR_THIS_NODE;
    }
    return MODEL_NOT_DROPPED;
}

static struct model_verdict judge_arp(const struct model_node *n, const struct model_packet *p)
{
    enum model_cause c = check_arp_sender(n, p);
    if (c != MODEL_NOT_DROPPED) {
        return drop(c);
    }
    if (p->arp.op != MODEL_ARP_REQUEST) {
        return drop(MODEL_ARP_NOT_ASKED);
    }
    bool ours = prefix_contains(n->net->local, p->arp.tpa);
    if (ours && p->arp.tpa != sdn_gateway(n->net) && !pod_at(n, p->arp.tpa)) {
        return drop(MODEL_NO_SUCH_POD);
    }
    if (!ours && !in_cluster(n->net, p->arp.tpa)) {
        return drop(MODEL_ARP_OFF_NETWORK);
    }
    return (struct model_verdict){
        .action = MODEL_ANSWER,
        .port = p->port,
        .remote = p->outer_src,
        .tunnel_id = p->tunnel_id,
        .eth_dst = p->arp.sha, /* RFC 826: to the hardware address in the request. */
        .answer_ip = p->arp.tpa,
        .answer_mac = mac_from_ip4(p->arp.tpa),
    };
}

struct model_verdict model_judge(const struct model_node *n, const struct model_packet *p)
{
    if (p->has_vlan) {
        return drop(MODEL_VLAN_TAGGED);
    }
    switch (p->eth_type) {
    case MODEL_ETH_IP4:
        return judge_ip(n, p);
    case MODEL_ETH_ARP:
        return judge_arp(n, p);
    default:
        return drop(MODEL_NOT_IP);
    }
}
