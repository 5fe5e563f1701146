/* SPDX-License-Identifier: Apache-2.0 */
/* Services inside br0: tables 21 to 29, where a pod's packet gets its true destination, and 85
 * to 89, where answers get back the address that the pod knows.
 *
 * Two registers identify a port of a service: the clusterIP, and protocol and port; a restarted
 * agent makes the same ones. With the traffic policy Local, packets to the other addresses have
 * a separate identity. */
#include "sdn/pipeline_internal.h"

#include "base/map.h"
#include "base/mem.h"

#include <string.h>

#define PRIORITY_FRONTEND 200
/* If a service has the same address and port, it takes precedence. */
#define PRIORITY_HOST_PORT 190
#define PRIORITY_AFFINITY 300

#define EXTERNAL 0x80000000u /* In REG_SERVICE_PORT. */

/* Lowest source port that a pod chooses automatically (RFC 6056 3.2 and Linux). */
#define EPHEMERAL 0x8000
/* Bits of an ephemeral port, without the lowest: Linux connects from even ports. */
#define SOURCE_BITS 14
#define ENDPOINT_LINGER_S 14400

static void base_next(enum table t, enum table next, struct of_flow_list *out)
{
    struct of_builder b;
    of_begin(&b, (uint8_t) t, 0, PIPELINE_BASE_COOKIE);
    pipeline_end_goto(&b, next, out);
}

static void base_begin(struct of_builder *b, enum table t, uint16_t priority)
{
    pipeline_begin_ip(b, t, priority, PIPELINE_BASE_COOKIE);
}

/* ---- towards the endpoint ---- */

static void node_address(uint64_t cookie, uint32_t ip, struct of_flow_list *out)
{
    struct of_builder b;
    pipeline_begin_ip(&b, SERVICE_ADDRESS, 200, cookie);
    of_match_ip_dst(&b, pipeline_address(ip));
    of_act_load_reg(&b, REG_TO_NODE, 1);
    pipeline_end_goto(&b, SERVICE_NODE, out);
}

void pipeline_node_addresses(uint64_t cookie, uint32_t host_ip, const struct sdn_addresses *others,
                             struct of_flow_list *out)
{
    node_address(cookie, host_ip, out);
    for (size_t i = 0; i < others->n; i++) {
        node_address(cookie, others->ip[i], out);
    }
}

/* Looks up packets that may be for a service, judged by their header, among the connections. */
static void look_up(const struct sdn_network *n, struct of_builder *b, struct of_flow_list *out)
{
    if (n->service_by_host) {
        pipeline_end_goto(b, SERVICE, out);
    } else {
        of_act_ct_nat(b, CT_SERVICE_ZONE, SERVICE_STATE);
        of_end_into(b, out);
    }
}

static void base_address(const struct sdn_network *n, struct of_flow_list *out)
{
    struct of_builder b;
    base_begin(&b, SERVICE_ADDRESS, 300);
    of_match_ip_dst(&b, pipeline_address(SDN_ITSELF_IP));
    of_act_ct_nat(&b, CT_ITSELF_ZONE, FROM_ITSELF);
    of_end_into(&b, out);
    if (n->service.len) {
        base_begin(&b, SERVICE_ADDRESS, 250);
        of_match_ip_dst(&b, n->service);
        look_up(n, &b, out);
    }
    /* Not at the gateway's address: its ports are used by the host's own connections to pods. */
    pipeline_node_addresses(PIPELINE_BASE_COOKIE, n->host_ip, &n->addresses, out);
    base_next(SERVICE_ADDRESS, pipeline_checked(n), out);

    /* Later fragments have no ports; the tracker, or the host, reassembles them. */
    if (!n->service_by_host) {
        base_begin(&b, SERVICE_NODE, 300);
        of_match_ip_fragment(&b);
        look_up(n, &b, out);
    }
    base_next(SERVICE_NODE, pipeline_checked(n), out);
}

static void base_state(const struct sdn_network *n, struct of_flow_list *out)
{
    struct of_builder b;
    base_begin(&b, SERVICE_STATE, 300);
    of_match_ct_state(&b, OF_CT_TRK | OF_CT_DNAT, OF_CT_TRK | OF_CT_DNAT);
    pipeline_end_goto(&b, SERVICE_TRANSLATED, out);
    base_begin(&b, SERVICE_STATE, 200);
    of_match_ct_state(&b, OF_CT_TRK | OF_CT_INV, OF_CT_TRK | OF_CT_INV);
    pipeline_end_drop(&b, MODEL_SERVICE_INVALID, out);
    base_next(SERVICE_STATE, SERVICE, out);
    base_next(SERVICE_TRANSLATED, pipeline_checked(n), out);

    if (n->service.len && n->service_by_host) {
        base_begin(&b, SERVICE, 150);
        of_match_ip_dst(&b, n->service);
        of_match_ip_later_fragment(&b);
        pipeline_end_goto(&b, HOST, out);
    }
    if (n->service.len) {
        base_begin(&b, SERVICE, 100);
        of_match_ip_dst(&b, n->service);
        pipeline_end_refuse(n, &b, MODEL_SERVICE_NOT_AVAILABLE, out);
    }
    base_next(SERVICE, pipeline_checked(n), out);
}

static void base_isolation(struct of_flow_list *out)
{
    static const struct {
        uint16_t priority;
        unsigned reg;
    } global[] = {{300, REG_SRC_VNID}, {200, REG_SERVICE_VNID}};
    struct of_builder b;
    for (size_t i = 0; i < ARRAY_SIZE(global); i++) {
        base_begin(&b, SERVICE_ISOLATION, global[i].priority);
        of_match_reg(&b, global[i].reg, SDN_VNID_GLOBAL);
        pipeline_end_goto(&b, SERVICE_CHOICE, out);
    }
    of_begin(&b, SERVICE_ISOLATION, 0, PIPELINE_BASE_COOKIE);
    pipeline_end_drop(&b, MODEL_SERVICE_FOREIGN, out);
}

static void base_choice(const struct sdn_network *n, struct of_flow_list *out)
{
    struct of_builder b;
    base_begin(&b, SERVICE_CHOICE, 400);
    of_match_reg(&b, REG_ENDPOINTS, SERVICE_IDLE);
    if (n->refusal_meter) {
        of_meter(&b, n->refusal_meter);
        of_act_controller(&b, UINT16_MAX); /* The whole packet: it is sent again. */
    }
    pipeline_end_drop(&b, MODEL_SERVICE_IDLE, out);
    if (n->service_by_host) {
        base_begin(&b, SERVICE_CHOICE, 300);
        of_match_reg(&b, REG_ENDPOINTS, 0);
        pipeline_end_refuse(n, &b, MODEL_SERVICE_NO_ENDPOINTS, out);
        base_next(SERVICE_CHOICE, HOST, out);
        return;
    }
    base_begin(&b, SERVICE_CHOICE, 200);
    of_match_reg(&b, REG_ENDPOINTS, 1);
    of_act_load_reg(&b, REG_ENDPOINT, 0);
    pipeline_end_goto(&b, SERVICE_ENDPOINT, out);
    of_begin(&b, SERVICE_CHOICE, 0, PIPELINE_BASE_COOKIE);
    pipeline_end_refuse(n, &b, MODEL_SERVICE_NO_ENDPOINTS, out);
    of_begin(&b, SERVICE_ENDPOINT, 0, PIPELINE_BASE_COOKIE);
    pipeline_end_refuse(n, &b, MODEL_SERVICE_NO_ENDPOINTS, out);
}

/* ---- back to the pod ---- */

static void base_answer(struct of_flow_list *out)
{
    /* Destination unreachable, time exceeded, parameter problem: errors about a sent packet (RFC
     * 792). */
    static const uint8_t errors[] = {3, 11, 12};
    struct of_builder b;
    base_begin(&b, ANSWER, 300);
    of_match_ip_fragment(&b);
    of_act_ct_nat(&b, CT_SERVICE_ZONE, DELIVER);
    of_end_into(&b, out);
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        base_begin(&b, ANSWER, 200);
        of_match_ip_proto(&b, IP_ICMP);
        of_match_icmp_type(&b, errors[i]);
        of_act_ct_nat(&b, CT_SERVICE_ZONE, DELIVER);
        of_end_into(&b, out);
    }
    base_next(ANSWER, DELIVER, out);
    of_begin(&b, DELIVER, 0, PIPELINE_BASE_COOKIE);
    of_act_output_reg(&b, REG_DST_PORT);
    of_end_into(&b, out);
}

/* A pod that reaches itself must not see its own address as the source: the answer would not
 * leave it. */
static void base_itself(const struct sdn_network *n, struct of_flow_list *out)
{
    struct of_builder b;
    base_begin(&b, TO_ITSELF, 0);
    of_act_ct_nat_src(&b, CT_ITSELF_ZONE, SDN_ITSELF_IP, TURN);
    of_end_into(&b, out);

    base_begin(&b, TURN, 0);
    of_act_move(&b, OF_ETH_SRC, 0, OF_ETH_DST, 0, 48);
    of_act_set_eth_src(&b, mac_from_ip4(sdn_gateway(n)));
    of_act_output(&b, OF_PORT_IN_PORT);
    of_end_into(&b, out);

    base_begin(&b, FROM_ITSELF, 100);
    of_match_ct_state(&b, OF_CT_TRK | OF_CT_RPL, OF_CT_TRK | OF_CT_RPL);
    of_act_ct_nat(&b, CT_SERVICE_ZONE, TURN);
    of_end_into(&b, out);
    of_begin(&b, FROM_ITSELF, 0, PIPELINE_BASE_COOKIE);
    pipeline_end_drop(&b, MODEL_SERVICE_INVALID, out);
}

void pipeline_base_services(const struct sdn_network *n, struct of_flow_list *out)
{
    base_address(n, out);
    base_state(n, out);
    if (sdn_plugin_compares_vnids(n->plugin)) {
        base_isolation(out);
    }
    base_choice(n, out);
    base_answer(out);
    base_itself(n, out);
}

/* ---- objects ---- */

void pipeline_vnid_services(uint32_t vnid, struct of_flow_list *out)
{
    struct of_builder b;
    pipeline_begin_ip(&b, SERVICE_ISOLATION, 100, pipeline_vnid_cookie(vnid));
    of_match_reg(&b, REG_SRC_VNID, vnid);
    of_match_reg(&b, REG_SERVICE_VNID, vnid);
    pipeline_end_goto(&b, SERVICE_CHOICE, out);
}

void pipeline_pod_services(const struct pipeline_pod *p, struct of_flow_list *out)
{
    struct of_builder b;
    pipeline_begin_ip(&b, SERVICE_TRANSLATED, 100, pipeline_pod_cookie(p->ip));
    of_match_in_port(&b, p->ofport);
    of_match_ip_dst(&b, pipeline_address(p->ip));
    pipeline_end_goto(&b, TO_ITSELF, out);
}

/* Addresses valid only on this network or host, and multicast (RFC 6890). */
static bool is_special(uint32_t ip)
{
    static const struct ip4_prefix never[] = {
        {0, 8}, {0x7f000000, 8}, {0xa9fe0000, 16}, {0xe0000000, 3}};
    bool special = false;
    for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
        special |= prefix_contains(never[i], ip);
    }
    return special;
}

bool pipeline_is_external(const struct sdn_network *n, uint32_t ip)
{
    if (is_special(ip)) {
        return false;
    }
    for (size_t i = 0; i < n->n_cluster; i++) {
        if (prefix_contains(n->cluster[i], ip)) {
            return false;
        }
    }
    return !n->service.len || !prefix_contains(n->service, ip);
}

bool pipeline_may_serve(const struct sdn_network *n, uint8_t proto, const struct sdn_backend *b)
{
    return !is_special(b->endpoint->ip) && (proto != IP_UDP || b->port != n->vxlan_port);
}

void pipeline_service_address(uint32_t ip, struct of_flow_list *out)
{
    struct of_builder b;
    pipeline_begin_ip(&b, SERVICE_ADDRESS, 200, pipeline_service_address_cookie(ip));
    of_match_ip_dst(&b, pipeline_address(ip));
    pipeline_end_goto(&b, SERVICE_NODE, out);
}

void pipeline_service_endpoint(uint32_t ip, uint16_t port, bool tcp, bool udp,
                               struct of_flow_list *out)
{
    static const uint8_t protocols[] = {IP_TCP, IP_UDP};
    struct of_builder b;
    for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
        if (protocols[i] == IP_TCP ? !tcp : !udp) {
            continue;
        }
        pipeline_begin_ip(&b, ANSWER, 100, pipeline_service_endpoint_cookie(ip, port));
        of_match_ip_proto(&b, protocols[i]);
        of_match_ip_src(&b, pipeline_address(ip));
        of_match_l4_src(&b, protocols[i], port, UINT16_MAX);
        of_act_ct_nat(&b, CT_SERVICE_ZONE, DELIVER);
        of_end_into(&b, out);
    }
}

bool pipeline_expires(const struct of_flow *f)
{
    return f->expires && (f->table == SERVICE_AFFINITY || f->table == ANSWER);
}

uint16_t pipeline_linger_s(uint64_t cookie)
{
    return cookie >> 48 == PIPELINE_SERVICE_ENDPOINT ? ENDPOINT_LINGER_S : 0;
}

/* ---- spreading ---- */

static uint32_t reverse(uint32_t v, unsigned bits)
{
    uint32_t r = 0;
    for (unsigned i = 0; i < bits; i++) {
        r |= (v >> i & 1) << (bits - 1 - i);
    }
    return r;
}

static unsigned log2_up(uint32_t n)
{
    return n <= 1 ? 0 : 32 - (unsigned) __builtin_clz(n - 1);
}

struct spread {
    uint8_t proto;
    uint32_t endpoints;
    bool by_address;
    struct of_flow_list *out;
};

/* Packets whose lowest 'bits' bits have this value go to the endpoint. */
static void spread_flow(const struct spread *s, uint32_t value, unsigned bits, uint32_t endpoint)
{
    struct of_builder b;
    uint32_t mask = (UINT32_C(1) << bits) - 1;
    pipeline_begin_ip(&b, SERVICE_CHOICE, s->by_address ? 110 : 100,
                      pipeline_service_spread_cookie(s->proto, s->endpoints));
    of_match_ip_proto(&b, s->proto);
    of_match_reg(&b, REG_ENDPOINTS, s->endpoints);
    if (s->by_address) {
        of_match_l4_src(&b, s->proto, 0, EPHEMERAL);
        of_match_ip_src_bits(&b, value, mask);
    } else {
        of_match_l4_src(&b, s->proto, (uint16_t) (value << 1), (uint16_t) (mask << 1));
    }
    of_act_load_reg(&b, REG_ENDPOINT, endpoint);
    pipeline_end_goto(&b, SERVICE_ENDPOINT, s->out);
}

/* The values of 'bits' bits are cut into as many ranges as there are endpoints, and each range
 * into blocks that one flow can match. Bits count from the lowest, so that consecutive values go
 * to different endpoints. */
static void spread(const struct spread *s, unsigned bits)
{
    uint64_t all = UINT64_C(1) << bits;
    for (uint32_t i = 0; i < s->endpoints; i++) {
        uint64_t at = i * all / s->endpoints, end = (i + 1) * all / s->endpoints;
        while (at < end) {
            unsigned free = at ? (unsigned) __builtin_ctzll(at) : bits;
            while (at + (UINT64_C(1) << free) > end) {
                free--;
            }
            spread_flow(s, reverse((uint32_t) (at >> free), bits - free), bits - free, i);
            at += UINT64_C(1) << free;
        }
    }
}

void pipeline_service_spread(uint8_t proto, uint32_t endpoints, struct of_flow_list *out)
{
    unsigned exact = log2_up(endpoints);
    bool power = endpoints == UINT32_C(1) << exact;
    struct spread s = {.proto = proto, .endpoints = endpoints, .out = out};
    unsigned finer = power ? 0 : endpoints <= 16 ? 5 : endpoints <= 256 ? 4 : 3;
    spread(&s, MIN(exact + finer, SOURCE_BITS));
    /* Clients with a fixed source port would all get the same endpoint: spread by their address. */
    s.by_address = true;
    spread(&s, exact + (power ? 0 : 1));
}

/* ---- services ---- */

uint64_t pipeline_service_cookie(const char *ns, const char *name)
{
    uint64_t h = hash_bytes(ns, strlen(ns) + 1);
    h = (h ^ hash_bytes(name, strlen(name))) * 0x9e3779b97f4a7c15u;
    return pipeline_cookie(PIPELINE_SERVICE, h ^ h >> 48);
}

struct front {
    const struct sdn_network *net;
    const struct sdn_service *service;
    const struct sdn_service_port *port;
    uint64_t cookie;
    uint32_t vnid;
    uint32_t id; /* REG_SERVICE_PORT */
    const struct sdn_backend **backends;
    uint32_t n;
    struct of_flow_list *out;
};

static void begin_frontend(const struct front *f, struct of_builder *b, enum table t, uint16_t port)
{
    pipeline_begin_ip(b, t, PRIORITY_FRONTEND, f->cookie);
    of_match_ip_proto(b, f->port->protocol);
    of_match_l4_dst(b, f->port->protocol, port, UINT16_MAX);
}

static void end_frontend(const struct front *f, struct of_builder *b)
{
    bool compares = sdn_plugin_compares_vnids(f->net->plugin);
    of_act_load_reg(b, REG_SERVICE, f->service->cluster_ip);
    of_act_load_reg(b, REG_SERVICE_PORT, f->id);
    of_act_load_reg(b, REG_ENDPOINTS, sdn_service_waits(f->service, f->port) ? SERVICE_IDLE : f->n);
    if (compares) {
        of_act_load_reg(b, REG_SERVICE_VNID, f->vnid);
    }
    if (f->service->affinity_s && !f->net->service_by_host) {
        of_act_resubmit(b, SERVICE_AFFINITY);
    }
    pipeline_end_goto(b, compares ? SERVICE_ISOLATION : SERVICE_CHOICE, f->out);
}

static void match_identity(const struct front *f, struct of_builder *b)
{
    of_match_reg(b, REG_SERVICE, f->service->cluster_ip);
    of_match_reg(b, REG_SERVICE_PORT, f->id);
}

static void translate(const struct front *f, struct of_builder *b, const struct sdn_backend *e)
{
    of_act_ct_nat_dst(b, CT_SERVICE_ZONE, e->endpoint->ip, e->port, SERVICE_TRANSLATED);
    of_end_into(b, f->out);
}

/* Chooses the sender's previous endpoint, as long as it is one still. */
static void stick(const struct front *f, const struct sdn_backend *e)
{
    struct of_builder b;
    pipeline_begin_ip(&b, SERVICE_CHOICE, PRIORITY_AFFINITY, f->cookie);
    match_identity(f, &b);
    of_match_reg(&b, REG_AFFINITY_IP, e->endpoint->ip);
    of_match_reg(&b, REG_AFFINITY_PORT, e->port);
    translate(f, &b, e);
}

static void learn(const struct front *f, struct of_builder *b, const struct sdn_backend *e)
{
    struct of_learn l = {
        .table = SERVICE_AFFINITY,
        .priority = 100,
        .idle_s = (uint16_t) MIN(f->service->affinity_s, UINT16_MAX),
        .cookie = f->cookie,
        .match_regs = {REG_SERVICE, REG_SERVICE_PORT},
        .load_regs = {REG_AFFINITY_IP, REG_AFFINITY_PORT},
        .load = {e->endpoint->ip, e->port},
    };
    of_act_learn(b, &l);
}

static void endpoints(const struct front *f)
{
    for (uint32_t i = 0; i < f->n && !f->net->service_by_host; i++) {
        const struct sdn_backend *e = f->backends[i];
        struct of_builder b;
        pipeline_begin_ip(&b, SERVICE_ENDPOINT, 100, f->cookie);
        match_identity(f, &b);
        of_match_reg(&b, REG_ENDPOINT, i);
        if (f->service->affinity_s) {
            learn(f, &b, e);
            translate(f, &b, e);
            stick(f, e);
        } else {
            translate(f, &b, e);
        }
    }
}

static void choose(struct front *f, const char *node)
{
    size_t n = sdn_service_choose(f->service, f->port, node, &f->backends);
    f->n = 0;
    for (size_t i = 0; i < n && f->n < PIPELINE_MAX_ENDPOINTS; i++) {
        if (pipeline_may_serve(f->net, f->port->protocol, f->backends[i])) {
            f->backends[f->n++] = f->backends[i];
        }
    }
}

static void cluster_address(const struct front *f)
{
    struct of_builder b;
    begin_frontend(f, &b, SERVICE, f->port->port);
    of_match_ip_dst(&b, pipeline_address(f->service->cluster_ip));
    end_frontend(f, &b);
}

static void other_addresses(const struct front *f)
{
    struct of_builder b;
    for (size_t i = 0; i < f->service->n_external_ips; i++) {
        uint32_t ip = f->service->external_ips[i];
        if (pipeline_is_external(f->net, ip)) {
            begin_frontend(f, &b, SERVICE_NODE, f->port->port);
            of_match_ip_dst(&b, pipeline_address(ip));
            look_up(f->net, &b, f->out);
            begin_frontend(f, &b, SERVICE, f->port->port);
            of_match_ip_dst(&b, pipeline_address(ip));
            end_frontend(f, &b);
        }
    }
    if (f->port->node_port) {
        begin_frontend(f, &b, SERVICE_NODE, f->port->node_port);
        of_match_reg(&b, REG_TO_NODE, 1);
        look_up(f->net, &b, f->out);
        begin_frontend(f, &b, SERVICE, f->port->node_port);
        of_match_reg(&b, REG_TO_NODE, 1);
        end_frontend(f, &b);
    }
}

/* A host port leads to one pod, whose own node checks VNID and policies as for a packet sent to
 * the pod directly; so no VNID is compared here, and the host never sees the packet. */
static void host_port(const struct front *f)
{
    const struct ip4_prefix address = pipeline_address(f->service->cluster_ip);
    struct of_builder b;
    if (!f->n) {
        return;
    }
    pipeline_begin_ip(&b, SERVICE_NODE, PRIORITY_HOST_PORT, f->cookie);
    of_match_ip_proto(&b, f->port->protocol);
    of_match_l4_dst(&b, f->port->protocol, f->port->port, UINT16_MAX);
    of_match_ip_dst(&b, address);
    of_act_ct_nat(&b, CT_SERVICE_ZONE, SERVICE_STATE);
    of_end_into(&b, f->out);
    pipeline_begin_ip(&b, SERVICE, PRIORITY_HOST_PORT, f->cookie);
    of_match_ip_proto(&b, f->port->protocol);
    of_match_l4_dst(&b, f->port->protocol, f->port->port, UINT16_MAX);
    of_match_ip_dst(&b, address);
    translate(f, &b, f->backends[0]);
}

/* The project moves: senders with its other VNID reach the service, too. */
static void moving(const struct sdn_network *n, const struct sdn_service *s,
                   const struct sdn_vnids *v, uint64_t cookie, struct of_flow_list *out)
{
    if (!v->moving || v->also == SDN_VNID_NOBODY || v->id == SDN_VNID_GLOBAL ||
        !sdn_plugin_compares_vnids(n->plugin)) {
        return;
    }
    struct of_builder b;
    pipeline_begin_ip(&b, SERVICE_ISOLATION, 150, cookie);
    of_match_reg(&b, REG_SERVICE, s->cluster_ip);
    of_match_reg(&b, REG_SERVICE_VNID, v->id);
    if (v->also != SDN_VNID_GLOBAL) {
        of_match_reg(&b, REG_SRC_VNID, v->also);
    }
    pipeline_end_goto(&b, SERVICE_CHOICE, out);
}

void pipeline_service(const struct sdn_network *n, const struct sdn_service *s,
                      const struct sdn_vnids *v, const char *node, struct of_flow_list *out)
{
    if (!s->cluster_ip) {
        return;
    }
    uint64_t cookie = pipeline_service_cookie(s->namespace, s->name);
    moving(n, s, v, cookie, out);
    for (size_t i = 0; i < s->n_ports; i++) {
        const struct sdn_service_port *p = &s->ports[i];
        if (p->protocol != SDN_TCP && p->protocol != SDN_UDP) {
            continue; /* Open vSwitch's own tracker does not translate SCTP. */
        }
        struct front f = {.net = n,
                          .service = s,
                          .port = p,
                          .cookie = cookie,
                          .vnid = v->id,
                          .id = (uint32_t) p->protocol << 16 | p->port,
                          .out = out};
        choose(&f, s->internal_local ? node : NULL);
        if (s->host_ports) {
            host_port(&f);
            free(f.backends);
            continue;
        }
        cluster_address(&f);
        endpoints(&f);
        if (s->internal_local && (p->node_port || s->n_external_ips)) {
            free(f.backends);
            f.id |= EXTERNAL;
            choose(&f, NULL); /* A pod is served as if it was on the right node (KEP-2086). */
            endpoints(&f);
        }
        other_addresses(&f);
        free(f.backends);
    }
}
