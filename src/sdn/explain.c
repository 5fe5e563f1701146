/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/explain.h"

#include "base/mem.h"
#include "sdn/tables.h"

#include <string.h>

/* ---- words ---- */

static const char *const causes[] = {
    [MODEL_NOT_DROPPED] = "",
    [MODEL_VLAN_TAGGED] = "the frame has a VLAN tag",
    [MODEL_NOT_IP] = "neither IPv4 nor ARP, or with a header that is none",
    [MODEL_MULTICAST] = "to a multicast group or to everybody",
    [MODEL_NOT_FOR_THIS_NODE] = "to an address that is not this node's to deliver",
    [MODEL_FORGED_TUNNEL] = "a pod may not write to the VXLAN port",
    [MODEL_UNKNOWN_PORT] = "from a port that is no pod's",
    [MODEL_UNKNOWN_VTEP] = "by the tunnel from a host that is no node",
    [MODEL_SPOOFED_SOURCE] = "the source address is not the sender's",
    [MODEL_ARP_NOT_ASKED] = "ARP that is no question",
    [MODEL_ARP_OFF_NETWORK] = "a question for an address outside the cluster networks",
    [MODEL_SERVICE_NOT_AVAILABLE] =
        "to a service address that no service has, or not with this port",
    [MODEL_NO_SUCH_NODE] = "to a cluster address whose subnet no node has",
    [MODEL_NO_SUCH_POD] = "to an address of this node that no pod has",
    [MODEL_OWN_ADDRESS] = "a pod's packet to itself",
    [MODEL_VNID_MISMATCH] = "the projects' VNIDs differ and neither is 0",
    [MODEL_BACK_TO_HOST] = "the host's own packet for itself or the outside",
    [MODEL_CONNECTION_DENIED] = "it answers a connection that policy denies by now",
    [MODEL_EGRESS_DENIED] = "denied by the policies of the sender",
    [MODEL_INGRESS_DENIED] = "denied by the policies of the receiver",
    [MODEL_SERVICE_INVALID] = "to a service, and no packet of a connection",
    [MODEL_SERVICE_FOREIGN] = "to a service of a project that the sender's may not reach",
    [MODEL_SERVICE_NO_ENDPOINTS] = "to a service that has no endpoints",
    [MODEL_SERVICE_IDLE] = "to an idle service: the packet waits for pods, which are asked for",
    [MODEL_FORGED_ERROR] = "an ICMP error about a packet that the pod did not receive",
    [MODEL_METADATA] = "to the metadata address of clouds, which this node blocks",
    [MODEL_FIREWALL_DENIED] = "to a destination outside that the project's egress firewall denies",
};
static_assert(ARRAY_SIZE(causes) == MODEL_N_CAUSES, "a line for each cause");

const char *explain_cause(enum model_cause c)
{
    return causes[c];
}

/* Flows that do not drop; the first line that fits is used, per table. */
static const struct {
    const char *table;
    int kind, priority; /* -1: any. */
    const char *text;
} rules[] = {
    {"classify", PIPELINE_BASE, 300, "by the tunnel, for this node's subnet"},
    {"classify", PIPELINE_BASE, 200, "from the host"},
    {"classify", PIPELINE_BASE, 100, "from a pod"},
    {"from-vxlan", PIPELINE_REMOTE, 100,
     "from this node's tunnel end, with a source in its subnet"},
    {"from-pod", PIPELINE_POD, 100, "port, Ethernet and IP address are the pod's"},
    {"from-host", PIPELINE_BASE, 400, "the host asks for an address"},
    {"from-host", PIPELINE_BASE, 300, "the host by its gateway address"},
    {"from-host", PIPELINE_BASE, 100, "from outside or another address of the host, to a pod here"},
    {"arp", PIPELINE_BASE, 300, "a question for the gateway"},
    {"arp", PIPELINE_POD, 200, "a question for the pod"},
    {"arp", PIPELINE_BASE, 100, "a question for an address of another node"},
    {"arp-reply", PIPELINE_BASE, 200, "answered by the tunnel"},
    {"arp-reply", PIPELINE_BASE, 100, "answered where it came from"},
    {"route", PIPELINE_BASE, 400, "to the gateway: the host"},
    {"route", PIPELINE_BASE, 300, "to this node's subnet"},
    {"route", PIPELINE_BASE, 100, "to the subnet of another node"},
    {"route", PIPELINE_BASE, 0, "to the outside"},
    {"remote", PIPELINE_REMOTE, 100, "by the tunnel to the node that has the subnet"},
    {"local", PIPELINE_POD, 100, "the destination is the pod"},
    {"track", PIPELINE_BASE, 200, "SCTP: its association is looked up"},
    {"track", PIPELINE_BASE, 100, "its connection is looked up"},
    {"state", PIPELINE_BASE, 200, "it answers an allowed connection, and passes"},
    {"state", PIPELINE_POD, 200, "an ICMP error about a packet that the pod received: it passes"},
    {"state", PIPELINE_BASE, 180, "of a connection that was denied: judged as a new one"},
    {"state", PIPELINE_BASE, 160, "the rest of a fragmented packet, whose beginning was judged"},
    {"state", PIPELINE_BASE, 140, "the end of a connection that is not known"},
    {"state", PIPELINE_BASE, 100, "it begins a connection"},
    {"state", PIPELINE_BASE, 0, "of a connection that exists, or begun before policies ended"},
    {"egress-subject", PIPELINE_BASE, 300, "not of a pod here, or an answer: not judged"},
    {"egress-subject", PIPELINE_BASE, 0, "no egress policy selects the sender"},
    {"egress-peer", PIPELINE_BASE, 0, "no policy speaks of the destination"},
    {"egress-admin", PIPELINE_BASE, 0, "no AdminNetworkPolicy decides"},
    {"egress-policy", PIPELINE_BASE, 0, "no NetworkPolicy decides"},
    {"egress-baseline", PIPELINE_BASE, 0, "allowed: no BaselineAdminNetworkPolicy decides"},
    {"ingress-subject", PIPELINE_BASE, 300, "from the pod's own node, or an answer: not judged"},
    {"ingress-subject", PIPELINE_BASE, 0, "no ingress policy selects the receiver"},
    {"ingress-peer", PIPELINE_BASE, 0, "no policy speaks of the source"},
    {"ingress-admin", PIPELINE_BASE, 0, "no AdminNetworkPolicy decides"},
    {"ingress-policy", PIPELINE_BASE, 0, "no NetworkPolicy decides"},
    {"ingress-baseline", PIPELINE_BASE, 0, "allowed: no BaselineAdminNetworkPolicy decides"},
    {"route", PIPELINE_BASE, 410, "to the gateway: the host; the connection is remembered"},
    {"route", PIPELINE_BASE, 110, "to another node; the connection is remembered"},
    {"route", PIPELINE_BASE, 40, "the host's own packet to the metadata address"},
    {"route", PIPELINE_BASE, 30, "DNS at the metadata address"},
    {"egress-firewall", PIPELINE_BASE, 65000, "DNS of this node, which no egress firewall denies"},
    {"egress-firewall", PIPELINE_BASE, 0, "no rule of an egress firewall denies it"},
    {"outside", PIPELINE_BASE, 10, "to the outside; the connection is remembered"},
    {"outside", PIPELINE_BASE, 0, "to the outside"},
    {"isolation", PIPELINE_BASE, 400, "delivered, and the connection is remembered"},
    {"isolation", PIPELINE_BASE, 300, "delivered: the sender is global, or nothing is isolated"},
    {"isolation", PIPELINE_BASE, 200, "delivered: the pod is in a global project"},
    {"isolation", PIPELINE_POD, 150,
     "delivered: the pod's project moves from or to the sender's VNID"},
    {"isolation", PIPELINE_VNID, 100, "delivered: both ends have this VNID"},
    {"host", PIPELINE_BASE, 0, "handed to the host"},
    {"service-address", PIPELINE_BASE, 300, "what the pod answers to itself is looked up"},
    {"service-address", PIPELINE_BASE, 250, "to the service network: its connection is looked up"},
    {"service-address", PIPELINE_BASE, 200, "to this node, which has the ports of services"},
    {"service-address", PIPELINE_REMOTE, 200, "to a node, which has the ports of services"},
    {"service-address", PIPELINE_SERVICE_ADDRESS, 200, "to an address that a service has"},
    {"service-address", PIPELINE_BASE, 0, "to no address of services"},
    {"service-node", PIPELINE_BASE, 300, "a part of a packet: its connection is looked up"},
    {"service-node", PIPELINE_SERVICE, 200,
     "to a port of the service: its connection is looked up"},
    {"service-node", PIPELINE_BASE, 0, "to no port of a service"},
    {"service-state", PIPELINE_BASE, 300, "of a connection to a service, and has its endpoint"},
    {"service-state", PIPELINE_BASE, 0, "of no connection to a service yet"},
    {"service", PIPELINE_SERVICE, 200, "to this service"},
    {"service", PIPELINE_BASE, 0, "to no service"},
    {"service-isolation", PIPELINE_BASE, 300, "the sender is global"},
    {"service-isolation", PIPELINE_BASE, 200, "the service is of a global project"},
    {"service-isolation", PIPELINE_SERVICE, 150, "its project moves from or to the sender's VNID"},
    {"service-isolation", PIPELINE_VNID, 100, "sender and service have this VNID"},
    {"service-affinity", PIPELINE_SERVICE, 100, "the sender has been at this endpoint"},
    {"service-choice", PIPELINE_SERVICE, 300, "where the sender has been before"},
    {"service-choice", PIPELINE_BASE, 200, "the only endpoint"},
    {"service-choice", PIPELINE_BASE, 0, "to the host, whose proxy accepts it"},
    {"service", PIPELINE_BASE, 150, "a part of a packet: the host has the others"},
    {"service-choice", PIPELINE_SERVICE_SPREAD, 110,
     "one of the endpoints, by the sender's address"},
    {"service-choice", PIPELINE_SERVICE_SPREAD, 100, "one of the endpoints, by the sender's port"},
    {"service-endpoint", PIPELINE_SERVICE, 100, "this endpoint becomes the destination"},
    {"service-translated", PIPELINE_POD, 100, "the pod is its own endpoint"},
    {"service-translated", PIPELINE_BASE, 0, "goes on to its endpoint"},
    {"answer", PIPELINE_BASE, 300, "a part of a packet: maybe a service's answer"},
    {"answer", PIPELINE_BASE, 200, "an error: maybe about a packet to a service"},
    {"answer", PIPELINE_SERVICE_ENDPOINT, 100,
     "of an endpoint: its source becomes the service, if it answers that"},
    {"answer", PIPELINE_BASE, 0, "no answer of a service"},
    {"deliver", PIPELINE_BASE, 0, "out of the pod's port"},
    {"to-itself", PIPELINE_BASE, 0, "from a source that is nobody's, so that the answer leaves it"},
    {"turn", PIPELINE_BASE, 0, "back to where it came from"},
    {"from-itself", PIPELINE_BASE, 100, "the answer gets the service's address"},
};

/* Tables with flows of policies; policy_describe names the policy. */
static const char *const policy_words[] = {
    [PIPELINE_POLICY_ADDRESS - PIPELINE_POLICY_ADDRESS] = "policies speak of this address",
    [PIPELINE_POLICY_CLASS - PIPELINE_POLICY_ADDRESS] = "isolated: what no rule allows is denied",
    [PIPELINE_POLICY_RULE - PIPELINE_POLICY_ADDRESS] = "a rule of a policy decides",
    [PIPELINE_POLICY_PORT - PIPELINE_POLICY_ADDRESS] = "a port that rules name",
    [PIPELINE_POLICY_BLOCK - PIPELINE_POLICY_ADDRESS] = "an address block that rules name",
};

const char *explain_decision(const struct policy_decision *x, enum policy_direction d)
{
    bool egress = d == POLICY_EGRESS;
    switch (x->reason) {
    case POLICY_BY_RULE:
        return policy_words[PIPELINE_POLICY_RULE - PIPELINE_POLICY_ADDRESS];
    case POLICY_BY_ISOLATION:
        return policy_words[PIPELINE_POLICY_CLASS - PIPELINE_POLICY_ADDRESS];
    case POLICY_BY_IGNORANCE:
        return "cut off: the pod's object is not known";
    case POLICY_UNDECIDED:
        return explain_rule(egress ? EGRESS_BASELINE : INGRESS_BASELINE, 0, PIPELINE_BASE_COOKIE);
    case POLICY_NOT_SELECTED:
        break;
    }
    return explain_rule(egress ? EGRESS_SUBJECT : INGRESS_SUBJECT, 0, PIPELINE_BASE_COOKIE);
}

const char *explain_rule(uint8_t table, uint16_t priority, uint64_t cookie)
{
    enum model_cause cause = pipeline_cause(table, cookie);
    if (cause != MODEL_NOT_DROPPED) {
        return causes[cause];
    }
    const char *name = pipeline_table_name(table);
    int kind = (int) ((cookie & ~PIPELINE_DROPS) >> 48);
    for (size_t i = 0; name && i < ARRAY_SIZE(rules); i++) {
        if (rules[i].kind == kind && rules[i].priority == priority && streq(rules[i].table, name)) {
            return rules[i].text;
        }
    }
    if (kind == PIPELINE_FIREWALL) {
        return "a rule of the project's egress firewall allows the destination";
    }
    if (kind == PIPELINE_POLICY_CLASS && priority != PRIORITY_ISOLATED) {
        return "what rules say of a class of pods";
    }
    return kind >= PIPELINE_POLICY_ADDRESS && kind <= PIPELINE_POLICY_BLOCK
               ? policy_words[kind - PIPELINE_POLICY_ADDRESS]
               : "";
}

/* ---- packets ---- */

static const struct {
    uint8_t number;
    const char *name;
} protocols[] = {{1, "icmp"}, {6, "tcp"}, {17, "udp"}, {132, "sctp"}};

int explain_proto_parse(const char *name, uint8_t *ret, struct err *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
        if (streq(name, protocols[i].name)) {
            *ret = protocols[i].number;
            return 0;
        }
    }
    return err_set(e, -EINVAL, "\"%s\" is not icmp, tcp, udp or sctp", name);
}

const char *explain_proto_name(uint8_t proto)
{
    for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
        if (protocols[i].number == proto) {
            return protocols[i].name;
        }
    }
    return "ip";
}

void explain_packet(const struct sdn_network *n, const struct explain_question *q,
                    struct model_packet *ret)
{
    struct mac gateway = mac_from_ip4(sdn_gateway(n));
    *ret = (struct model_packet){
        .entry = q->entry,
        .port = q->port,
        .outer_src = q->outer_src,
        .tunnel_id = q->tunnel_id,
        .eth_src = q->entry == MODEL_FROM_HOST ? gateway : mac_from_ip4(q->src),
        .eth_dst = q->entry == MODEL_FROM_HOST ? mac_from_ip4(q->dst) : gateway,
        .eth_type = MODEL_ETH_IP4,
        .ip = {q->src, q->dst, q->proto, q->src_port, q->dst_port},
    };
}

void explain_packet_text(const struct sdn_network *n, const struct model_packet *p,
                         struct strbuf *out)
{
    uint32_t port = p->entry == MODEL_FROM_TUNNEL ? PIPELINE_PORT_VXLAN
                    : p->entry == MODEL_FROM_HOST ? PIPELINE_PORT_TUN
                                                  : p->port;
    strbuf_addf(out, "in_port=%u,", port);
    if (p->entry == MODEL_FROM_TUNNEL) {
        strbuf_addf(out, "tun_src=%s,tun_dst=%s,tun_id=%u,", IP4_TEXT(p->outer_src),
                    IP4_TEXT(n->host_ip), p->tunnel_id);
    }
    strbuf_addf(out, "dl_src=%s,dl_dst=%s,%s,nw_src=%s,nw_dst=%s,nw_ttl=64", MAC_TEXT(p->eth_src),
                MAC_TEXT(p->eth_dst), explain_proto_name(p->ip.proto), IP4_TEXT(p->ip.src),
                IP4_TEXT(p->ip.dst));
    if (explain_has_ports(p->ip.proto)) {
        const char *name = explain_proto_name(p->ip.proto);
        strbuf_addf(out, ",%s_src=%u,%s_dst=%u", name, p->ip.src_port, name, p->ip.dst_port);
    } else if (p->ip.proto == 1) {
        strbuf_adds(out, ",icmp_type=8,icmp_code=0");
    }
    /* The first packet of a connection, as rules on the state expect. */
    strbuf_adds(out, p->ip.proto == 6 ? ",tcp_flags=syn" : "");
}

/* ---- traces ---- */

static bool is_table(const struct ovstrace_step *s, const char *name)
{
    const char *t = pipeline_table_name(s->table);
    return t && streq(t, name);
}

int explain_outcome(const struct ovstrace *t, struct explain_outcome *ret, struct err *e)
{
    if (!t->n) {
        return err_set(e, -EBADMSG, "the packet met no flow of the bridge");
    }
    const struct ovstrace_step *last = &t->steps[t->n - 1];
    struct explain_outcome o = {MODEL_DROP, pipeline_cause(last->table, last->cookie), last};
    /* Flows that the switch cannot carry out end as "drop", too, whatever their actions say. */
    if (o.cause != MODEL_NOT_DROPPED || streq(t->datapath_actions, "drop")) {
        *ret = o;
        return 0;
    }
    static const struct {
        const char *table;
        enum model_action action;
    } ends[] = {{"arp-reply", MODEL_ANSWER},
                {"turn", MODEL_DELIVER},
                {"remote", MODEL_TUNNEL},
                {"local", MODEL_DELIVER},
                {"host", MODEL_HOST}};
    for (size_t i = 0; i < t->n && o.action == MODEL_DROP; i++) {
        for (size_t k = 0; k < ARRAY_SIZE(ends); k++) {
            if (is_table(&t->steps[i], ends[k].table)) {
                o.action = ends[k].action;
            }
        }
    }
    *ret = o;
    return o.action == MODEL_DROP
               ? err_set(e, -EBADMSG, "the trace ends in table %u without an end", last->table)
               : 0;
}

bool explain_translation(const struct ovstrace *t, uint32_t *ret_ip, uint16_t *ret_port)
{
    static const char head[] = "nat(dst=";
    for (size_t i = 0; i < t->n; i++) {
        const char *at = strstr(t->steps[i].actions, head);
        if (!at) {
            continue;
        }
        at += sizeof head - 1;
        size_t n = strcspn(at, ":");
        CLEANUP_FREE char *ip = xstrndup(at, n);
        at += n + (at[n] == ':');
        CLEANUP_FREE char *port = xstrndup(at, strspn(at, "0123456789"));
        uint64_t number;
        if (str_to_u64(port, UINT16_MAX, &number) == 0 && ip4_parse(ip, ret_ip) == 0) {
            *ret_port = (uint16_t) number;
            return true;
        }
    }
    return false;
}

bool explain_agrees(const struct explain_outcome *o, const struct model_verdict *v)
{
    return o->action == v->action && o->cause == v->cause;
}

void explain_service(const struct model_node *n, const struct model_verdict *v, struct json *o)
{
    const struct sdn_service *s = v->service->service;
    const struct sdn_service_port *p = v->service_port;
    json_set(o, "name",
             s->host_ports ? json_stringf("host ports at %s", s->name)
                           : json_stringf("%s/%s", s->namespace, s->name));
    json_set_int(o, "port", p->port);
    json_set_int(o, "endpoints", (int64_t) model_endpoints(n, v));
}

const char *explain_action_name(enum model_action a)
{
    static const char *const names[] = {
        [MODEL_DROP] = "drop",     [MODEL_DELIVER] = "deliver", [MODEL_HOST] = "host",
        [MODEL_TUNNEL] = "tunnel", [MODEL_ANSWER] = "answer",   [MODEL_TRANSLATE] = "translate"};
    return names[a];
}
