/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/trace.h"

#include "base/mem.h"
#include "base/str.h"
#include "datapath/ebpf/encode.h"
#include "sdn/explain.h"
#include "sdn/pipeline.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <string.h>

enum {
    STEPS_MAX = 12,
    FRAME_MAX = 128,
    L3 = 14, /* Offset of the IPv4 header. */
    L4 = 34, /* Offset of the transport header. */
    TCP = 6,
    UDP = 17,
    ICMP = 1,
    ICMP_ECHO = 8,
    TCP_SYN = 2,
};

struct trace_steps {
    struct dp_rule list[STEPS_MAX];
    char *texts[STEPS_MAX][2]; /* Match and actions. */
    size_t n;
};

struct tracer {
    const struct program *live;
    const struct sdn_network *net;
    const struct model_packet *p;
    struct trace_steps *steps;
};

/* ---- the frame ---- */

static void put16(uint8_t *at, uint16_t v)
{
    at[0] = (uint8_t) (v >> 8);
    at[1] = (uint8_t) v;
}

static void put32(uint8_t *at, uint32_t v)
{
    put16(at, (uint16_t) (v >> 16));
    put16(at + 2, (uint16_t) v);
}

static uint32_t get32(const uint8_t *at)
{
    return (uint32_t) at[0] << 24 | (uint32_t) at[1] << 16 | (uint32_t) at[2] << 8 | at[3];
}

/* A packet that would begin a connection; checksums are omitted, as by a sender whose device
 * computes them. */
static size_t make_frame(const struct model_packet *p, uint8_t frame[FRAME_MAX])
{
    size_t payload = p->ip.proto == TCP ? 20 : p->ip.proto == UDP || p->ip.proto == ICMP ? 8 : 12;
    memset(frame, 0, FRAME_MAX);
    memcpy(frame, p->eth_dst.b, 6);
    memcpy(frame + 6, p->eth_src.b, 6);
    put16(frame + 12, p->eth_type);
    frame[L3] = 0x45;
    put16(frame + L3 + 2, (uint16_t) (L4 - L3 + payload));
    put16(frame + L3 + 6, 0x4000);
    frame[L3 + 8] = 64;
    frame[L3 + 9] = p->ip.proto;
    put32(frame + L3 + 12, p->ip.src);
    put32(frame + L3 + 16, p->ip.dst);
    if (explain_has_ports(p->ip.proto)) {
        put16(frame + L4, p->ip.src_port);
        put16(frame + L4 + 2, p->ip.dst_port);
    } else if (p->ip.proto == ICMP) {
        frame[L4] = ICMP_ECHO;
    }
    if (p->ip.proto == TCP) {
        frame[L4 + 12] = 0x50;
        frame[L4 + 13] = TCP_SYN;
    } else if (p->ip.proto == UDP) {
        put16(frame + L4 + 4, 8);
    }
    return L4 + payload;
}

/* ---- steps ---- */

/* Takes ownership of the texts. */
static struct dp_rule *add_step(struct tracer *t, const char *map, char *match, char *actions,
                                const char *meaning)
{
    struct trace_steps *s = t->steps;
    assert(s->n < STEPS_MAX);
    s->texts[s->n][0] = match;
    s->texts[s->n][1] = actions;
    struct dp_rule *r = &s->list[s->n++];
    *r = (struct dp_rule){.place = map,
                          .origin = PIPELINE_BASE_COOKIE,
                          .match = match,
                          .actions = actions,
                          .meaning = meaning};
    return r;
}

static bool pod_at(const struct tracer *t, uint32_t ip, struct ebpf_pod *ret)
{
    uint32_t addr = htonl(ip);
    return bpf_map_lookup_elem(t->live->pods, &addr, ret) == 0 && ret->reach.ifindex;
}

static void add_pod_step(struct tracer *t, uint32_t ip, const struct ebpf_pod *pod,
                         const char *meaning)
{
    struct mac mac;
    memcpy(mac.b, pod->mac, sizeof mac.b);
    struct dp_rule *r = add_step(t, EBPF_PODS, xasprintf("address=%s", IP4_TEXT(ip)),
                                 xasprintf("link=%u ethernet=%s vnid=%u", pod->reach.ifindex,
                                           MAC_TEXT(mac), pod->reach.vnid),
                                 meaning);
    r->origin = pipeline_pod_cookie(ip);
}

static const struct sdn_remote *remote_of(const struct sdn_network *n, uint32_t vtep, uint32_t ip)
{
    for (size_t i = 0; i < n->n_remotes; i++) {
        const struct sdn_remote *r = &n->remotes[i];
        if (r->host_ip == vtep && r->subnet.len && prefix_contains(r->subnet, ip)) {
            return r;
        }
    }
    return NULL;
}

/* Like route_of of bpf/places.h; returns the map with the route, NULL: there is none. */
static const char *find_route(const struct program *live, uint32_t ip, struct ebpf_route *ret)
{
    uint32_t zero = 0;
    struct ebpf_settings s;
    struct ebpf_route_key key = {.len = 32, .addr = htonl(ip)};
    if (bpf_map_lookup_elem(live->settings, &zero, &s) == 0 && s.subnet_len) {
        struct ebpf_route_key subnet = {.len = s.subnet_len,
                                        .addr = htonl(ip & prefix_mask(s.subnet_len))};
        if (bpf_map_lookup_elem(live->subnets, &subnet, ret) == 0) {
            return EBPF_SUBNETS;
        }
    }
    return bpf_map_lookup_elem(live->routes, &key, ret) == 0 ? EBPF_ROUTES : NULL;
}

static void add_route_step(struct tracer *t, uint32_t ip, bool is_source)
{
    static const char *const meanings[] = {
        [EBPF_CLUSTER] = "of the cluster network, and no node's",
        [EBPF_SERVICE] = "of the service network",
        [EBPF_LOCAL] = "of this node's subnet",
        [EBPF_GATEWAY] = "to the gateway: the host",
        [EBPF_REMOTE] = "to the subnet of another node",
    };
    struct ebpf_route v;
    const char *map = find_route(t->live, ip, &v);
    char *match = xasprintf("address=%s", IP4_TEXT(ip));
    if (!map || v.kind >= ARRAY_SIZE(meanings)) {
        add_step(t, EBPF_ROUTES, match, xstrdup("none"), "to the outside, by way of the host");
        return;
    }
    const struct sdn_remote *r = v.kind == EBPF_REMOTE ? remote_of(t->net, v.vtep, ip) : NULL;
    char *actions = v.kind == EBPF_REMOTE ? xasprintf("vtep=%s", IP4_TEXT(v.vtep)) : xstrdup("");
    struct dp_rule *step =
        add_step(t, map, match, actions,
                 is_source ? "the subnet of the node that sent it" : meanings[v.kind]);
    if (r) {
        step->origin = pipeline_remote_cookie(r);
    }
}

static uint32_t subject_of(const struct program *live, uint32_t ip, enum ebpf_direction dir)
{
    uint32_t addr = htonl(ip), zero = 0;
    struct ebpf_classes_row row;
    struct ebpf_generation g;
    if (bpf_map_lookup_elem(live->classes, &addr, &row) < 0 ||
        bpf_map_lookup_elem(live->generation, &zero, &g) < 0) {
        return 0;
    }
    return row.since <= g.current ? row.now.subject[dir] : row.before.subject[dir];
}

/* Adds whether policies select the end that is judged. */
static void add_policy_step(struct tracer *t, uint32_t ip, enum ebpf_direction dir)
{
    struct ebpf_pod pod;
    bool judged = t->net->plugin == SDN_NETWORKPOLICY && pod_at(t, ip, &pod) &&
                  !(dir == EBPF_INGRESS && t->p->entry == MODEL_FROM_HOST);
    uint32_t id = judged ? subject_of(t->live, ip, dir) : 0;
    if (id) {
        struct dp_rule *r = add_step(
            t, EBPF_CLASSES, xasprintf("address=%s", IP4_TEXT(ip)), xasprintf("class=%u", id),
            dir == EBPF_EGRESS ? "policies select the sender" : "policies select the receiver");
        r->origin = pipeline_policy_class_cookie(dir, id);
    }
}

static void add_source_steps(struct tracer *t)
{
    struct ebpf_pod pod;
    if (t->p->entry == MODEL_FROM_TUNNEL) {
        add_route_step(t, t->p->ip.src, true);
    } else if (t->p->entry == MODEL_FROM_PORT && pod_at(t, t->p->ip.src, &pod)) {
        add_pod_step(t, t->p->ip.src, &pod, "link, Ethernet and IP address are the pod's");
        add_policy_step(t, t->p->ip.src, EBPF_EGRESS);
    }
}

/* The service with that address and port, if this packet may use it. */
static bool service_at(const struct tracer *t, struct ebpf_service_key *key,
                       struct ebpf_service *ret)
{
    *key = (struct ebpf_service_key){
        .addr = htonl(t->p->ip.dst), .port = htons(t->p->ip.dst_port), .protocol = t->p->ip.proto};
    if (bpf_map_lookup_elem(t->live->services, key, ret) == 0) {
        return true;
    }
    key->addr = 0;
    uint32_t one;
    bool is_node = t->p->ip.dst == t->net->host_ip ||
                   bpf_map_lookup_elem(t->live->vteps, &t->p->ip.dst, &one) == 0;
    return is_node && bpf_map_lookup_elem(t->live->services, key, ret) == 0;
}

static bool is_of_service(enum model_cause c)
{
    return c >= MODEL_SERVICE_INVALID && c <= MODEL_SERVICE_IDLE;
}

static void add_service_steps(struct tracer *t, const struct dp_trace *found)
{
    struct ebpf_service_key key;
    struct ebpf_service s;
    bool by_service = is_of_service(found->cause);
    if (t->p->entry != MODEL_FROM_PORT || !(found->translated || by_service) ||
        !service_at(t, &key, &s)) {
        return;
    }
    struct dp_rule *r =
        add_step(t, EBPF_SERVICES,
                 xasprintf("address=%s port=%u protocol=%s", IP4_TEXT(ntohl(key.addr)),
                           ntohs(key.port), explain_proto_name(key.protocol)),
                 xasprintf("backends=%u vnid=%u", s.count, s.vnid), "to this service");
    r->is_service = true;
    if (found->translated) {
        add_step(
            t, EBPF_BACKENDS, xasprintf("one of %u", s.count),
            xasprintf("address=%s port=%u", IP4_TEXT(found->endpoint_ip), found->endpoint_port),
            "this endpoint becomes the destination");
    }
}

/* Adds why both ends may exchange packets. */
static void add_isolation_step(struct tracer *t, const struct ebpf_pod *to, uint32_t vnid)
{
    bool global = vnid == SDN_VNID_GLOBAL || t->p->entry == MODEL_FROM_HOST;
    const char *meaning = !sdn_plugin_compares_vnids(t->net->plugin) ? "nothing is isolated"
                          : global                                   ? "the sender is global"
                          : to->reach.vnid == SDN_VNID_GLOBAL ? "the pod is in a global project"
                          : to->reach.vnid == vnid
                              ? "both ends have this VNID"
                              : "the pod's project moves from or to the sender's VNID";
    struct dp_rule *r = add_step(t, EBPF_PODS, xasprintf("sender's vnid=%u", vnid),
                                 xasprintf("vnid=%u", to->reach.vnid), meaning);
    r->origin = pipeline_vnid_cookie(to->reach.vnid);
}

/* Adds what the egress firewall of the sender's VNID says of a destination outside. */
static void add_firewall_step(struct tracer *t, uint32_t dst)
{
    struct ebpf_pod from;
    struct ebpf_firewall f;
    struct ebpf_route route;
    uint32_t action;
    bool outside = t->p->entry == MODEL_FROM_PORT && !find_route(t->live, dst, &route);
    if (!outside || !pod_at(t, t->p->ip.src, &from) ||
        bpf_map_lookup_elem(t->live->firewalls, &from.reach.vnid, &f) < 0) {
        return;
    }
    struct ebpf_firewall_key key = {
        .len = EBPF_FIREWALL_LIST_BITS + 32, .list = f.list, .addr = htonl(dst)};
    bool allow =
        bpf_map_lookup_elem(t->live->firewall_blocks, &key, &action) == 0 && action == EBPF_ALLOW;
    struct dp_rule *r =
        add_step(t, EBPF_FIREWALL_BLOCKS,
                 xasprintf("vnid=%u destination=%s", from.reach.vnid, IP4_TEXT(dst)),
                 xstrdup(allow ? "allow" : "deny"),
                 "what the project's egress firewall says of the destination");
    r->origin = pipeline_firewall_cookie(from.reach.vnid);
}

static void add_destination_steps(struct tracer *t, const struct dp_trace *found)
{
    uint32_t dst = found->translated ? found->endpoint_ip : t->p->ip.dst;
    struct ebpf_pod to, from;
    if (!pod_at(t, dst, &to)) {
        add_route_step(t, dst, false);
        add_firewall_step(t, dst);
        return;
    }
    add_pod_step(t, dst, &to, "the destination is the pod");
    add_policy_step(t, dst, EBPF_INGRESS);
    if (found->action == MODEL_DELIVER) {
        uint32_t vnid = t->p->entry == MODEL_FROM_TUNNEL ? t->p->tunnel_id
                        : t->p->entry == MODEL_FROM_PORT && pod_at(t, t->p->ip.src, &from)
                            ? from.reach.vnid
                            : 0;
        add_isolation_step(t, &to, vnid);
    }
}

/* Causes that are found before the destination is known. */
static bool is_early(enum model_cause c)
{
    return c != MODEL_NOT_DROPPED && c <= MODEL_ARP_OFF_NETWORK;
}

static void add_steps(struct tracer *t, const struct dp_trace *found, const char *program)
{
    bool dropped = found->action == MODEL_DROP;
    if (!is_early(found->cause)) {
        add_source_steps(t);
        add_service_steps(t, found);
        if (!dropped || !is_of_service(found->cause)) {
            add_destination_steps(t, found);
        }
    }
    if (dropped) {
        struct dp_rule *r =
            add_step(t, program, xstrdup(""), xstrdup("drop"), explain_cause(found->cause));
        r->cause = found->cause;
        r->is_service = is_of_service(found->cause);
    }
}

/* ---- the question ---- */

static int read_verdict(const uint32_t cb[5], const uint8_t *out, size_t size,
                        const struct model_packet *p, struct dp_trace *ret, struct err *e)
{
    uint32_t verdict = cb[EBPF_CB_VERDICT] & 0xffff;
    if (!verdict) {
        return err_set(e, -EIO, "the eBPF program dropped the packet without a cause");
    }
    *ret = (struct dp_trace){.action = encode_action(verdict),
                             .cause = encode_cause(cb[EBPF_CB_VERDICT] >> 16)};
    uint32_t dst = p->ip.dst;
    uint16_t port = p->ip.dst_port;
    if (size >= L4 + 4) {
        dst = get32(out + L3 + 16);
        port = (uint16_t) (get32(out + L4) & 0xffff);
    }
    /* A refusal is a result of the service, too. */
    bool changed = dst != p->ip.dst || (explain_has_ports(p->ip.proto) && port != p->ip.dst_port);
    if (verdict != EBPF_REFUSED && changed) {
        ret->translated = true;
        ret->endpoint_ip = dst;
        ret->endpoint_port = port;
    }
    return 0;
}

int trace_packet(const struct program *live, const struct program_features *f,
                 const struct sdn_network *n, const struct model_packet *p, struct dp_trace *ret,
                 struct trace_steps **ret_owner, struct err *e)
{
    struct program dry = {0};
    uint8_t frame[FRAME_MAX], out[2 * FRAME_MAX];
    size_t size = make_frame(p, frame), left = sizeof out;
    uint32_t cb[5] = {0};
    const char *name = p->entry == MODEL_FROM_PORT     ? "from_pod"
                       : p->entry == MODEL_FROM_TUNNEL ? "from_tunnel"
                                                       : "from_host";
    int action, r = program_load_dry(live, f, name, &dry, e);
    if (r < 0) {
        return r;
    }
    cb[EBPF_CB_PORT] = p->port;
    if (p->entry == MODEL_FROM_TUNNEL) {
        cb[EBPF_CB_OUTER_SRC] = p->outer_src;
        cb[EBPF_CB_TUNNEL_ID] = p->tunnel_id;
    }
    int fd = p->entry == MODEL_FROM_PORT     ? dry.from_pod
             : p->entry == MODEL_FROM_TUNNEL ? dry.from_tunnel
                                             : dry.from_host;
    r = program_run(fd, cb, frame, size, out, &left, &action, e);
    program_done(&dry);
    r = r < 0 ? r : read_verdict(cb, out, left, p, ret, e);
    if (r < 0) {
        return r;
    }
    struct tracer t = {.live = live, .net = n, .p = p, .steps = NEW(struct trace_steps)};
    add_steps(&t, ret, name);
    ret->steps = t.steps->list;
    ret->n = t.steps->n;
    *ret_owner = t.steps;
    return 0;
}

struct trace_steps *trace_steps_free(struct trace_steps *t)
{
    for (size_t i = 0; t && i < t->n; i++) {
        free(t->texts[i][0]);
        free(t->texts[i][1]);
    }
    free(t);
    return NULL;
}
