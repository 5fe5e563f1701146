/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of flows to watching clients: one JSON object a line, with the objects behind a flow. */
#include "base/timeutil.h"
#include "node/introspect/introspect_priv.h"

#include <stdio.h>

#define ETH_IP6 0x86dd

struct watchers {
    struct introspect_source source;
    struct list list;
};

struct watcher {
    struct list link;
    struct watchers *all;
    struct http_exchange *x;
};

/* Lookup tables that explain the events of one batch, made when the first event needs them. */
struct context {
    struct introspect_view v;
    const struct dp_pod **by_ip;
    size_t n_pods;
    struct sdn_project_service *services;
    size_t n_services;
};

static struct introspect_view view_of(const struct watchers *w)
{
    struct introspect_view v = {0};
    w->source.view(w->source.ctx, &v);
    return v;
}

/* ---- names ---- */

static int compare_ip(const void *a, const void *b)
{
    const struct dp_pod *x = *(const struct dp_pod *const *) a;
    const struct dp_pod *y = *(const struct dp_pod *const *) b;
    return x->ip < y->ip ? -1 : x->ip > y->ip;
}

static void context_init(struct context *c, const struct watchers *w)
{
    *c = (struct context){.v = view_of(w)};
    const struct dp_pod *const *pods =
        c->v.datapath ? datapath_pods(c->v.datapath, &c->n_pods) : NULL;
    c->by_ip = xcalloc(c->n_pods + 1, sizeof(struct dp_pod *));
    for (size_t i = 0; i < c->n_pods; i++) {
        c->by_ip[i] = pods[i];
    }
    qsort(c->by_ip, c->n_pods, sizeof(struct dp_pod *), compare_ip);
}

static void context_done(struct context *c)
{
    free(c->by_ip);
    free(c->services);
}

static const struct dp_pod *pod_at(const struct context *c, uint32_t ip)
{
    const struct dp_pod key = {.ip = ip}, *p = &key;
    const struct dp_pod **found =
        c->n_pods ? bsearch(&p, c->by_ip, c->n_pods, sizeof(struct dp_pod *), compare_ip) : NULL;
    return found ? *found : NULL;
}

static const struct dp_pod *pod_of_port(const struct context *c, uint32_t port)
{
    for (size_t i = 0; i < c->n_pods; i++) {
        if (c->by_ip[i]->port_number == port) {
            return c->by_ip[i];
        }
    }
    return NULL;
}

/* The pod that sent the packet, whatever source address it has. */
static const struct dp_pod *sender(const struct context *c, const struct dp_event *e)
{
    return e->entry == MODEL_FROM_PORT ? pod_of_port(c, e->port) : NULL;
}

static bool has_address(const struct sdn_service *s, uint32_t ip)
{
    bool has = s->cluster_ip == ip;
    for (size_t i = 0; !has && i < s->n_external_ips; i++) {
        has = s->external_ips[i] == ip;
    }
    return has;
}

static const struct sdn_service *service_at(struct context *c, uint32_t ip, uint8_t proto,
                                            uint16_t port)
{
    const struct sdn_service *by_node_port = NULL;
    if (!c->services && c->v.services) {
        c->n_services = services_list(c->v.services, &c->services);
    }
    for (size_t i = 0; i < c->n_services; i++) {
        const struct sdn_service *s = c->services[i].service;
        bool has = has_address(s, ip);
        for (size_t k = 0; k < s->n_ports; k++) {
            if (has && s->ports[k].protocol == proto && s->ports[k].port == port) {
                return s;
            }
            if (s->ports[k].protocol == proto && port && s->ports[k].node_port == port) {
                by_node_port = s;
            }
        }
    }
    return by_node_port;
}

/* ---- the object behind a drop ---- */

static void name_vnids(const struct context *c, const struct dp_event *e, struct strbuf *out)
{
    const struct dp_pod *from = sender(c, e), *to = pod_at(c, e->dst);
    if (from) {
        strbuf_addf(out, "NetNamespace %s has %u", from->pod_namespace, from->vnid);
    } else {
        strbuf_addf(out, "the sender's VNID is %u", e->vnid);
    }
    if (to) {
        strbuf_addf(out, ", NetNamespace %s has %u", to->pod_namespace, to->vnid);
    }
}

static void name_service(struct context *c, const struct dp_event *e, struct strbuf *out)
{
    bool was_asked = e->asked != 0;
    const struct sdn_service *s = service_at(c, was_asked ? e->asked : e->dst, e->proto,
                                             was_asked ? e->asked_port : e->dst_port);
    if (s && s->host_ports) {
        strbuf_addf(out, "host ports at %s", s->name);
    } else if (s) {
        strbuf_addf(out, "Service %s/%s", s->namespace, s->name);
    }
}

static void name_object(struct context *c, const struct dp_event *e, struct strbuf *out)
{
    const struct dp_pod *from = sender(c, e);
    switch (e->cause) {
    case MODEL_EGRESS_DENIED:
    case MODEL_INGRESS_DENIED:
        if (c->v.policy) {
            introspect_policy_of_drop(c->v.policy, e, out);
        }
        return;
    case MODEL_FIREWALL_DENIED:
        if (from) {
            introspect_name_firewall(c->v.egress, from->vnid, out);
        }
        return;
    case MODEL_VNID_MISMATCH:
        name_vnids(c, e, out);
        return;
    case MODEL_SERVICE_INVALID:
    case MODEL_SERVICE_FOREIGN:
    case MODEL_SERVICE_NO_ENDPOINTS:
    case MODEL_SERVICE_IDLE:
        name_service(c, e, out);
        return;
    default:
        break;
    }
    /* Otherwise the rule is the packet itself; a packet that leads nowhere has no object. */
    if (e->cause > MODEL_ARP_OFF_NETWORK && e->cause != MODEL_OWN_ADDRESS) {
        return;
    }
    if (from) {
        strbuf_addf(out, "Pod %s/%s", from->pod_namespace, from->pod_name);
    } else if (e->entry == MODEL_FROM_TUNNEL) {
        strbuf_addf(out, "by the tunnel from %s", IP4_TEXT(e->outer_src));
    }
}

/* ---- events ---- */

static void set_end(struct json *o, const char *key, const struct context *c,
                    const struct dp_event *e, uint32_t ip, uint16_t port)
{
    struct json *end = json_ensure_object(o, key);
    const struct dp_pod *p = pod_at(c, ip);
    json_set_string(end, "ip", ip ? IP4_TEXT(ip) : "");
    if (explain_has_ports(e->proto)) {
        json_set_int(end, "port", port);
    }
    if (p) {
        json_set_string(end, "namespace", p->pod_namespace);
        json_set_string(end, "pod", p->pod_name);
    }
}

static void set_service(struct json *o, struct context *c, const struct dp_event *e)
{
    const struct sdn_service *s = service_at(c, e->asked, e->proto, e->asked_port);
    struct json *v = json_ensure_object(o, "service");
    json_set_string(v, "ip", IP4_TEXT(e->asked));
    json_set_int(v, "port", e->asked_port);
    if (s && !s->host_ports) {
        json_set_string(v, "namespace", s->namespace);
        json_set_string(v, "name", s->name);
    }
}

static const char *protocol_of(const struct dp_event *e)
{
    return e->eth_type == MODEL_ETH_IP4   ? explain_proto_name(e->proto)
           : e->eth_type == MODEL_ETH_ARP ? "arp"
           : e->eth_type == ETH_IP6       ? "ipv6"
                                          : "other";
}

static struct json *event_json(struct context *c, const struct dp_event *e, const char *now)
{
    static const char *const entries[] = {
        [MODEL_FROM_PORT] = "pod", [MODEL_FROM_TUNNEL] = "tunnel", [MODEL_FROM_HOST] = "host"};
    struct json *o = json_object();
    const struct dp_pod *from = sender(c, e);
    bool dropped = e->action == MODEL_DROP;
    json_set_string(o, "time", now);
    json_set_string(o, "node", c->v.node_name);
    json_set_string(o, "entry", entries[e->entry]);
    json_set_string(o, "protocol", protocol_of(e));
    if (e->eth_type != MODEL_ETH_IP4) {
        json_set(o, "etherType", json_stringf("%#06x", e->eth_type));
    }
    set_end(o, "from", c, e, e->src, e->src_port);
    set_end(o, "to", c, e, e->dst, e->dst_port);
    if (e->asked) {
        set_service(o, c, e);
    }
    if (from) {
        json_set(o, "sender", json_stringf("%s/%s", from->pod_namespace, from->pod_name));
    } else if (e->entry == MODEL_FROM_TUNNEL) {
        json_set_string(o, "vtep", IP4_TEXT(e->outer_src));
    }
    json_set_int(o, "bytes", e->size);
    json_set_string(o, "verdict", dropped ? "dropped" : "forwarded");
    json_set_string(o, "action", explain_action_name(e->action));
    if (e->action == MODEL_TUNNEL) {
        json_set_string(o, "remote", IP4_TEXT(e->remote));
    }
    if (e->action == MODEL_TUNNEL || e->entry == MODEL_FROM_TUNNEL) {
        json_set_int(o, "vnid", e->vnid);
    }
    if (dropped) {
        CLEANUP_STRBUF struct strbuf object = STRBUF_INIT;
        name_object(c, e, &object);
        json_set_string(o, "cause", model_cause_name(e->cause));
        json_set_string(o, "text", explain_cause(e->cause));
        json_set_string(o, "object", strbuf_cstr(&object));
    }
    return o;
}

/* ---- streams ---- */

static void write_all(struct watchers *w, const struct strbuf *out)
{
    struct blob *b = blob_new(out->data, out->size);
    struct watcher *x;
    LIST_FOREACH (x, struct watcher, link, &w->list) {
        /* The server cuts off a client that does not read, and calls 'closed'. */
        (void) http_stream_write(x->x, b);
    }
    blob_unref(b);
}

static void on_events(void *ctx, const struct dp_event *events, size_t n, uint64_t lost)
{
    struct watchers *w = ctx;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct context c;
    char now[TIME_TEXT_SIZE];
    context_init(&c, w);
    time_format_ms(time_wall_ms(), now);
    for (size_t i = 0; i < n; i++) {
        CLEANUP(json_free) struct json *o = event_json(&c, &events[i], now);
        json_write(o, 0, &out);
        strbuf_addc(&out, '\n');
    }
    if (lost) {
        CLEANUP(json_free) struct json *o = json_object();
        json_set_string(o, "time", now);
        json_set_string(o, "node", c.v.node_name);
        json_set_int(o, "lost", (int64_t) lost);
        json_write(o, 0, &out);
        strbuf_addc(&out, '\n');
    }
    context_done(&c);
    write_all(w, &out);
}

static void watcher_free(struct watcher *x)
{
    list_remove(&x->link);
    free(x);
}

static void on_closed(void *ctx)
{
    struct watcher *x = ctx;
    struct watchers *w = x->all;
    struct introspect_view v = view_of(w);
    watcher_free(x);
    if (list_is_empty(&w->list) && v.datapath) {
        (void) datapath_watch(v.datapath, NULL, NULL, &(struct err){0});
    }
}

struct watchers *watchers_new(const struct introspect_source *source)
{
    struct watchers *w = NEW(struct watchers);
    w->source = *source;
    list_init(&w->list);
    return w;
}

struct watchers *watchers_free(struct watchers *w)
{
    struct watcher *x;
    if (w) {
        LIST_FOREACH (x, struct watcher, link, &w->list) {
            watcher_free(x);
        }
        free(w);
    }
    return NULL;
}

int watchers_add(struct watchers *w, struct http_exchange *x, struct err *e)
{
    struct introspect_view v = view_of(w);
    int r = v.datapath ? datapath_watch(v.datapath, on_events, w, e)
                       : err_set(e, -EAGAIN, "%s", v.reason);
    if (r < 0) {
        return r;
    }
    struct watcher *n = NEW(struct watcher);
    n->all = w;
    n->x = x;
    list_push_back(&w->list, &n->link);
    http_stream_begin(x, 200, "application/json", on_closed, n);
    return 0;
}
