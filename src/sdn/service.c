/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/service.h"

#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* ---- protocols ---- */

static const struct {
    uint8_t number;
    const char *name, *api;
} protocols[] = {{SDN_TCP, "tcp", "TCP"}, {SDN_UDP, "udp", "UDP"}, {SDN_SCTP, "sctp", "SCTP"}};

const char *sdn_protocol_name(uint8_t protocol)
{
    for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
        if (protocols[i].number == protocol) {
            return protocols[i].name;
        }
    }
    return NULL;
}

uint8_t sdn_protocol_parse(const char *s)
{
    for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
        if (streq(protocols[i].api, s ? s : "TCP")) {
            return protocols[i].number;
        }
    }
    return 0;
}

static int parse_protocol(const struct json *port, size_t i, uint8_t *ret, struct err *e)
{
    const char *text = json_path_string(port, "protocol", NULL);
    uint8_t protocol = sdn_protocol_parse(text);
    if (!protocol) {
        return err_set(e, -EINVAL, "ports[%zu].protocol: \"%s\" is not TCP, UDP or SCTP", i, text);
    }
    *ret = protocol;
    return 0;
}

/* 'dflt' when there is no value; a negative 'dflt': the value is required. */
static int parse_port(const struct json *v, const char *field, size_t i, int dflt, uint16_t *ret,
                      struct err *e)
{
    int64_t n;
    if (!v && dflt >= 0) {
        *ret = (uint16_t) dflt;
        return 0;
    }
    if (json_get_int(v, &n) < 0 || n < (dflt == 0 ? 0 : 1) || n > UINT16_MAX) {
        return err_set(e, -EINVAL, "ports[%zu].%s: not a port", i, field);
    }
    *ret = (uint16_t) n;
    return 0;
}

/* ---- slices ---- */

static void condition(const struct json *endpoint, const char *name, bool dflt, uint8_t flag,
                      uint8_t *flags)
{
    if (json_get_bool(json_path(endpoint, "conditions", name, NULL), dflt)) {
        *flags |= flag;
    }
}

static size_t text_size(const char *s)
{
    return s ? strlen(s) + 1 : 0;
}

/* Copies 's' to '*p', and advances '*p' past it. */
static const char *put_text(char **p, const char *s)
{
    if (!s) {
        return NULL;
    }
    size_t size = strlen(s) + 1;
    char *at = *p;
    memcpy(at, s, size);
    *p += size;
    return at;
}

static const char *node_of(const struct json *endpoint)
{
    return json_path_string(endpoint, "nodeName", NULL);
}

static const char *pod_of(const struct json *endpoint)
{
    const char *kind = json_path_string(endpoint, "targetRef", "kind", NULL);
    return kind && streq(kind, "Pod") ? json_path_string(endpoint, "targetRef", "name", NULL)
                                      : NULL;
}

static const char *hostname_of(const struct json *endpoint)
{
    return json_path_string(endpoint, "hostname", NULL);
}

/* An IPv6 address is put at '*p', which is advanced past it. */
static int parse_address(const struct json *endpoint, size_t i, bool six, uint8_t **p,
                         struct sdn_endpoint *out, struct err *e)
{
    /* Kubernetes uses only the first, too: the addresses of one endpoint are interchangeable. */
    const char *text = json_get_string(json_at(json_path(endpoint, "addresses", NULL), 0));
    if (!text || (six ? inet_pton(AF_INET6, text, *p) != 1
                      : ip4_parse(text, &out->ip) < 0 || out->ip == 0)) {
        return err_set(e, -EINVAL, "endpoints[%zu].addresses[0]: \"%s\" is not an %s address", i,
                       text ? text : "", six ? "IPv6" : "IPv4");
    }
    if (six) {
        out->ip6 = *p;
        *p += SDN_IP6_SIZE;
    }
    return 0;
}

/* Endpoints of one node are mostly adjacent; they share the copy of its name. */
static bool same_node(const struct json *endpoints, size_t i)
{
    return i > 0 && streq_null(node_of(json_at(endpoints, i - 1)), node_of(json_at(endpoints, i)));
}

int sdn_slice_parse(const struct json *obj, struct sdn_slice **ret, struct err *e)
{
    const char *type = json_path_string(obj, "addressType", NULL);
    bool six = type && streq(type, "IPv6");
    if (!type || (!six && !streq(type, "IPv4"))) {
        return err_set(e, -EINVAL, "addressType: \"%s\" is not IPv4 or IPv6", type ? type : "");
    }
    const struct json *endpoints = json_get(obj, "endpoints"), *ports = json_get(obj, "ports");
    const char *service = json_path_string(obj, "metadata", "labels", SDN_SERVICE_LABEL, NULL);
    size_t n = json_count(endpoints), n_ports = json_count(ports), texts = text_size(service);
    for (size_t i = 0; i < n; i++) {
        const struct json *ep = json_at(endpoints, i);
        texts += text_size(same_node(endpoints, i) ? NULL : node_of(ep)) + text_size(pod_of(ep)) +
                 text_size(hostname_of(ep)) + (six ? SDN_IP6_SIZE : 0);
    }
    for (size_t i = 0; i < n_ports; i++) {
        const char *name = json_path_string(json_at(ports, i), "name", NULL);
        texts += text_size(name ? name : "");
    }
    CLEANUP(sdn_slice_unref)
    struct sdn_slice *s =
        xcalloc(1, sizeof *s + n * sizeof s->endpoints[0] + n_ports * sizeof s->ports[0] + texts);
    s->refs = 1;
    s->ports = (struct sdn_slice_port *) (void *) (s->endpoints + n);
    uint8_t *addresses = (uint8_t *) (s->ports + n_ports);
    char *p = (char *) addresses + (six ? n * SDN_IP6_SIZE : 0);
    s->service = put_text(&p, service);
    s->n_endpoints = (uint32_t) n;
    s->n_ports = (uint32_t) n_ports;
    for (size_t i = 0; i < n_ports; i++) {
        const struct json *port = json_at(ports, i);
        const char *name = json_path_string(port, "name", NULL);
        s->ports[i].name = put_text(&p, name ? name : "");
        int r = parse_protocol(port, i, &s->ports[i].protocol, e);
        /* A port without a number would mean all ports, which no proxy can serve. */
        r = r < 0 ? r : parse_port(json_get(port, "port"), "port", i, -1, &s->ports[i].port, e);
        if (r < 0) {
            return r;
        }
    }
    for (size_t i = 0; i < n; i++) {
        const struct json *ep = json_at(endpoints, i);
        struct sdn_endpoint *out = &s->endpoints[i];
        int r = parse_address(ep, i, six, &addresses, out, e);
        if (r < 0) {
            return r;
        }
        condition(ep, "ready", true, SDN_ENDPOINT_READY, &out->flags);
        condition(ep, "serving", out->flags & SDN_ENDPOINT_READY, SDN_ENDPOINT_SERVING,
                  &out->flags);
        condition(ep, "terminating", false, SDN_ENDPOINT_TERMINATING, &out->flags);
        out->node = same_node(endpoints, i) ? out[-1].node : put_text(&p, node_of(ep));
        out->pod = put_text(&p, pod_of(ep));
        out->hostname = put_text(&p, hostname_of(ep));
    }
    *ret = TAKE(s);
    return 0;
}

struct sdn_slice *sdn_slice_ref(struct sdn_slice *s)
{
    s->refs++;
    return s;
}

struct sdn_slice *sdn_slice_unref(struct sdn_slice *s)
{
    if (s && --s->refs == 0) {
        free(s);
    }
    return NULL;
}

/* ---- services ---- */

static void drop_backends(struct sdn_service *s)
{
    for (size_t i = 0; i < s->n_ports; i++) {
        s->ports[i].backends = NULL;
        s->ports[i].n_backends = 0;
    }
    s->addresses = NULL;
    s->n_addresses = 0;
    for (size_t i = 0; i < s->n_slices; i++) {
        sdn_slice_unref(s->slices[i]);
    }
    free(s->slices);
    s->slices = NULL;
    s->n_slices = 0;
}

struct sdn_service *sdn_service_free(struct sdn_service *s)
{
    if (!s) {
        return NULL;
    }
    drop_backends(s);
    free(s->external_ips);
    free(s->source_ranges);
    free(s->external_name);
    free(s);
    return NULL;
}

/* Address within the copy 'c' that corresponds to 'p' within 's'. */
static void *moved(const struct sdn_service *s, struct sdn_service *c, const void *p)
{
    return (char *) c + ((const char *) p - (const char *) s);
}

struct sdn_service *sdn_service_clone(const struct sdn_service *s)
{
    struct sdn_service *c = xmemdup(s, s->size);
    c->namespace = moved(s, c, s->namespace);
    c->name = moved(s, c, s->name);
    c->ports = moved(s, c, s->ports);
    c->external_name = s->external_name ? xstrdup(s->external_name) : NULL;
    c->external_ips = s->n_external_ips
                          ? xmemdup(s->external_ips, s->n_external_ips * sizeof *s->external_ips)
                          : NULL;
    c->source_ranges = s->n_source_ranges ? xmemdup(s->source_ranges,
                                                    s->n_source_ranges * sizeof *s->source_ranges)
                                          : NULL;
    for (size_t i = 0; i < s->n_ports; i++) {
        c->ports[i].name = s->ports[i].name ? moved(s, c, s->ports[i].name) : NULL;
        c->ports[i].backends = NULL;
        c->ports[i].n_backends = 0;
    }
    c->addresses = NULL;
    c->n_addresses = 0;
    c->slices = NULL;
    c->n_slices = 0;
    return c;
}

static int parse_type(const struct json *spec, enum sdn_service_type *ret, struct err *e)
{
    static const char *const names[] = {
        [SDN_SERVICE_CLUSTER_IP] = "ClusterIP",
        [SDN_SERVICE_NODE_PORT] = "NodePort",
        [SDN_SERVICE_LOAD_BALANCER] = "LoadBalancer",
        [SDN_SERVICE_EXTERNAL_NAME] = "ExternalName",
    };
    const char *type = json_path_string(spec, "type", NULL);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (streq(names[i], type ? type : "ClusterIP")) {
            *ret = (enum sdn_service_type) i;
            return 0;
        }
    }
    return err_set(e, -EINVAL, "spec.type: \"%s\" is not known", type);
}

/* IPv6 addresses of a service are not served: cluster networks are IPv4. */
static int parse_cluster_ip(const struct json *spec, struct sdn_service *s, struct err *e)
{
    const char *text = json_path_string(spec, "clusterIP", NULL);
    if (s->type == SDN_SERVICE_EXTERNAL_NAME || !text || !*text) {
        return 0;
    }
    if (streq(text, "None")) {
        s->headless = true;
        return 0;
    }
    uint8_t six[SDN_IP6_SIZE];
    if (ip4_parse(text, &s->cluster_ip) < 0 && inet_pton(AF_INET6, text, six) != 1) {
        return err_set(e, -EINVAL, "spec.clusterIP: \"%s\" is not an address", text);
    }
    return 0;
}

static void add_external_ip(struct sdn_service *s, size_t *cap, const char *text)
{
    uint32_t ip;
    if (!text || ip4_parse(text, &ip) < 0 || !ip) {
        return;
    }
    for (size_t i = 0; i < s->n_external_ips; i++) {
        if (s->external_ips[i] == ip) {
            return;
        }
    }
    s->external_ips = grow(s->external_ips, cap, s->n_external_ips + 1, sizeof ip);
    s->external_ips[s->n_external_ips++] = ip;
}

static void parse_external_ips(const struct json *obj, struct sdn_service *s)
{
    size_t cap = 0;
    const struct json *list = json_path(obj, "status", "loadBalancer", "ingress", NULL);
    for (size_t i = 0; s->type == SDN_SERVICE_LOAD_BALANCER && i < json_count(list); i++) {
        add_external_ip(s, &cap, json_path_string(json_at(list, i), "ip", NULL));
    }
    s->n_ingress_ips = s->n_external_ips;
    list = json_path(obj, "spec", "externalIPs", NULL);
    for (size_t i = 0; i < json_count(list); i++) {
        add_external_ip(s, &cap, json_get_string(json_at(list, i)));
    }
}

static int compare_prefixes(const void *a, const void *b)
{
    const struct ip4_prefix *x = a, *y = b;
    if (x->addr != y->addr) {
        return x->addr < y->addr ? -1 : 1;
    }
    return x->len - y->len;
}

/* IPv6 ranges and malformed ones admit no clients. */
static void parse_source_ranges(const struct json *spec, struct sdn_service *s)
{
    const struct json *list = json_get(spec, "loadBalancerSourceRanges");
    size_t n = json_count(list), out = 0;
    if (s->type != SDN_SERVICE_LOAD_BALANCER || !n) {
        return;
    }
    s->restricted = true;
    s->source_ranges = xcalloc(n, sizeof *s->source_ranges);
    for (size_t i = 0; i < n; i++) {
        const char *text = json_get_string(json_at(list, i));
        struct ip4_prefix p;
        if (text && prefix_parse_host(text, &p, NULL) == 0) {
            s->source_ranges[out++] = (struct ip4_prefix){p.addr & prefix_mask(p.len), p.len};
        }
    }
    qsort(s->source_ranges, out, sizeof *s->source_ranges, compare_prefixes);
    for (size_t i = 0; i < out; i++) { /* Wider ranges come first. */
        struct ip4_prefix p = s->source_ranges[i];
        size_t last = s->n_source_ranges;
        if (!last || !prefix_overlaps(s->source_ranges[last - 1], p)) {
            s->source_ranges[s->n_source_ranges++] = p;
        }
    }
}

static int parse_ports(const struct json *spec, struct sdn_service *s, struct err *e)
{
    const struct json *ports = json_get(spec, "ports");
    bool node_ports = s->type == SDN_SERVICE_NODE_PORT || s->type == SDN_SERVICE_LOAD_BALANCER;
    for (size_t i = 0; i < s->n_ports; i++) {
        const struct json *port = json_at(ports, i);
        struct sdn_service_port *p = &s->ports[i];
        int r = parse_protocol(port, i, &p->protocol, e);
        r = r < 0 ? r : parse_port(json_get(port, "port"), "port", i, -1, &p->port, e);
        r = r < 0 || !node_ports
                ? r
                : parse_port(json_get(port, "nodePort"), "nodePort", i, 0, &p->node_port, e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static bool is_local(const struct json *spec, const char *field)
{
    const char *policy = json_path_string(spec, field, NULL);
    return policy && streq(policy, "Local");
}

static const char *port_name_of(const struct json *port)
{
    const char *name = json_path_string(port, "name", NULL);
    return name && *name ? name : NULL;
}

struct sdn_service *sdn_service_new(const char *ns, const char *name, const char *const *port_names,
                                    size_t n)
{
    size_t texts = text_size(ns) + text_size(name);
    for (size_t i = 0; i < n; i++) {
        texts += text_size(port_names[i]);
    }
    size_t size = sizeof(struct sdn_service) + n * sizeof(struct sdn_service_port) + texts;
    struct sdn_service *s = xcalloc(1, size);
    s->size = (uint32_t) size;
    s->n_ports = (uint32_t) n;
    s->ports = (struct sdn_service_port *) (void *) (s + 1);
    char *p = (char *) (s->ports + n);
    s->namespace = put_text(&p, ns);
    s->name = put_text(&p, name);
    for (size_t i = 0; i < n; i++) {
        s->ports[i].name = put_text(&p, port_names[i]);
    }
    return s;
}

/* Allocates room for its ports and all names. */
static struct sdn_service *service_new(const char *ns, const char *name, const struct json *ports)
{
    size_t n = json_count(ports);
    CLEANUP_FREE const char **names = xcalloc(n + 1, sizeof *names);
    for (size_t i = 0; i < n; i++) {
        names[i] = port_name_of(json_at(ports, i));
    }
    return sdn_service_new(ns, name, names, n);
}

int sdn_service_parse(const struct json *obj, struct sdn_service **ret, struct err *e)
{
    const struct json *spec = json_get(obj, "spec");
    const char *ns = json_path_string(obj, "metadata", "namespace", NULL);
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    if (!ns || !name) {
        return err_set(e, -EINVAL, "metadata: a service has a name and a namespace");
    }
    CLEANUP(sdn_service_free)
    struct sdn_service *s = service_new(ns, name, json_get(spec, "ports"));
    int r = parse_type(spec, &s->type, e);
    r = r < 0 ? r : parse_cluster_ip(spec, s, e);
    r = r < 0 ? r : parse_ports(spec, s, e);
    if (r < 0) {
        return r;
    }
    if (s->type == SDN_SERVICE_EXTERNAL_NAME) {
        const char *external = json_path_string(spec, "externalName", NULL);
        s->external_name = xstrdup(external ? external : "");
    } else if (!s->headless) {
        parse_external_ips(obj, s);
        parse_source_ranges(spec, s);
    }
    s->ready_or_not = json_get_bool(json_path(spec, "publishNotReadyAddresses", NULL), false);
    s->internal_local = is_local(spec, "internalTrafficPolicy");
    s->external_local = is_local(spec, "externalTrafficPolicy");
    s->idle = json_path(obj, "metadata", "annotations", SDN_IDLED_AT, NULL) != NULL;
    int64_t health = json_get_int_or(json_get(spec, "healthCheckNodePort"), 0);
    if (s->type == SDN_SERVICE_LOAD_BALANCER && s->external_local && health > 0 &&
        health <= UINT16_MAX) {
        s->health_port = (uint16_t) health;
    }
    const char *affinity = json_path_string(spec, "sessionAffinity", NULL);
    if (affinity && streq(affinity, "ClientIP")) {
        int64_t seconds = json_get_int_or(
            json_path(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds", NULL),
            SDN_SERVICE_AFFINITY_SECONDS);
        s->affinity_s = (uint32_t) MAX(1, MIN(seconds, 86400));
    }
    *ret = TAKE(s);
    return 0;
}

/* ---- backends ---- */

int sdn_endpoint_compare(const struct sdn_endpoint *a, const struct sdn_endpoint *b)
{
    if (a->ip != b->ip) {
        return a->ip < b->ip ? -1 : 1;
    }
    return a->ip6 && b->ip6 ? memcmp(a->ip6, b->ip6, SDN_IP6_SIZE) : !!a->ip6 - !!b->ip6;
}

static int compare_backends(const void *a, const void *b)
{
    const struct sdn_backend *x = a, *y = b;
    int r = sdn_endpoint_compare(x->endpoint, y->endpoint);
    if (r) {
        return r;
    }
    return x->port < y->port ? -1 : x->port > y->port;
}

/* Sorts, and keeps the best of equal ones; returns the number left. */
static size_t sort_backends(struct sdn_backend *list, size_t n)
{
    if (n > 1) {
        qsort(list, n, sizeof *list, compare_backends);
    }
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        if (out && compare_backends(&list[out - 1], &list[i]) == 0) {
            unsigned had = list[out - 1].endpoint->flags & SDN_ENDPOINT_READY;
            list[out - 1] = had ? list[out - 1] : list[i];
        } else {
            list[out++] = list[i];
        }
    }
    return out;
}

/* Appends the ports of 'slice' that are for 'p' to 'list'. */
static size_t add_backends(const struct sdn_slice *slice, const struct sdn_service_port *p,
                           struct sdn_backend *list)
{
    size_t n = 0;
    for (size_t i = 0; i < slice->n_ports; i++) {
        const struct sdn_slice_port *sp = &slice->ports[i];
        if (sp->protocol != p->protocol || !streq(sp->name, p->name ? p->name : "")) {
            continue;
        }
        for (size_t j = 0; j < slice->n_endpoints; j++) {
            if (list) {
                list[n] = (struct sdn_backend){&slice->endpoints[j], sp->port};
            }
            n++;
        }
    }
    return n;
}

/* Number of endpoints of the slices' ports that are for 'p'; NULL: of all ports. */
static size_t count_backends(struct sdn_slice *const *slices, size_t n,
                             const struct sdn_service_port *p)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += p ? add_backends(slices[i], p, NULL) : slices[i]->n_endpoints;
    }
    return sum;
}

/* Returns the number of elements in 'list'. */
static size_t join_port(const struct sdn_service *s, const struct sdn_service_port *p,
                        struct sdn_backend *list)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_slices; i++) {
        n += add_backends(s->slices[i], p, list + n);
    }
    return sort_backends(list, n);
}

static size_t join_addresses(const struct sdn_service *s, struct sdn_backend *list)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_slices; i++) {
        for (size_t j = 0; j < s->slices[i]->n_endpoints; j++) {
            list[n++] = (struct sdn_backend){.endpoint = &s->slices[i]->endpoints[j]};
        }
    }
    return sort_backends(list, n);
}

void sdn_service_join(struct sdn_service *s, struct sdn_slice *const *slices, size_t n)
{
    size_t max = s->headless ? count_backends(slices, n, NULL) : 0;
    for (size_t i = 0; i < s->n_ports; i++) {
        max += count_backends(slices, n, &s->ports[i]);
    }
    struct sdn_slice **list =
        n ? xmalloc(n * sizeof(struct sdn_slice *) + max * sizeof(struct sdn_backend)) : NULL;
    for (size_t i = 0; i < n; i++) {
        list[i] = sdn_slice_ref(slices[i]);
    }
    drop_backends(s);
    s->slices = list;
    s->n_slices = (uint32_t) n;
    struct sdn_backend *next = (struct sdn_backend *) (void *) (list + n);
    for (size_t i = 0; i < s->n_ports && n; i++) {
        struct sdn_service_port *p = &s->ports[i];
        p->n_backends = (uint32_t) join_port(s, p, next);
        p->backends = p->n_backends ? next : NULL;
        next += p->n_backends;
    }
    if (s->headless && n) {
        s->n_addresses = (uint32_t) join_addresses(s, next);
        s->addresses = s->n_addresses ? next : NULL;
    }
}

size_t sdn_service_choose(const struct sdn_service *s, const struct sdn_service_port *p,
                          const char *node, const struct sdn_backend ***ret)
{
    const struct sdn_backend **list = p->n_backends ? xcalloc(p->n_backends, sizeof *list) : NULL;
    size_t n = 0;
    for (int leaving = 0; leaving < 2 && !n; leaving++) {
        for (size_t i = 0; i < p->n_backends; i++) {
            const struct sdn_endpoint *ep = p->backends[i].endpoint;
            bool here = !node || (ep->node && streq(ep->node, node));
            bool serves = leaving ? (ep->flags & SDN_ENDPOINT_SERVING) &&
                                        (ep->flags & SDN_ENDPOINT_TERMINATING)
                                  : (ep->flags & SDN_ENDPOINT_READY) || s->ready_or_not;
            if (ep->ip && here && serves) {
                list[n++] = &p->backends[i];
            }
        }
    }
    if (!n) {
        free(list);
        list = NULL;
    }
    *ret = list;
    return n;
}

bool sdn_service_waits(const struct sdn_service *s, const struct sdn_service_port *p)
{
    const struct sdn_backend **chosen = NULL;
    bool waits = s->idle && sdn_service_choose(s, p, NULL, &chosen) == 0;
    free(chosen);
    return waits;
}

/* ---- comparing ---- */

static bool backends_equal(const struct sdn_backend *a, size_t n_a, const struct sdn_backend *b,
                           size_t n_b)
{
    if (n_a != n_b) {
        return false;
    }
    for (size_t i = 0; i < n_a; i++) {
        const struct sdn_endpoint *x = a[i].endpoint, *y = b[i].endpoint;
        if (compare_backends(&a[i], &b[i]) != 0 || x->flags != y->flags ||
            !streq_null(x->node, y->node) || !streq_null(x->pod, y->pod) ||
            !streq_null(x->hostname, y->hostname)) {
            return false;
        }
    }
    return true;
}

static bool ports_equal(const struct sdn_service_port *a, const struct sdn_service_port *b)
{
    return a->protocol == b->protocol && a->port == b->port && a->node_port == b->node_port &&
           streq_null(a->name, b->name) &&
           backends_equal(a->backends, a->n_backends, b->backends, b->n_backends);
}

bool sdn_service_equal(const struct sdn_service *a, const struct sdn_service *b)
{
    if (!streq(a->namespace, b->namespace) || !streq(a->name, b->name) || a->type != b->type ||
        a->cluster_ip != b->cluster_ip || a->headless != b->headless ||
        a->host_ports != b->host_ports || a->ready_or_not != b->ready_or_not ||
        a->internal_local != b->internal_local || a->external_local != b->external_local ||
        a->idle != b->idle || a->health_port != b->health_port || a->affinity_s != b->affinity_s ||
        !streq_null(a->external_name, b->external_name) || a->n_external_ips != b->n_external_ips ||
        a->n_ingress_ips != b->n_ingress_ips || a->restricted != b->restricted ||
        a->n_source_ranges != b->n_source_ranges || a->n_ports != b->n_ports) {
        return false;
    }
    for (size_t i = 0; i < a->n_source_ranges; i++) {
        if (!prefix_equal(a->source_ranges[i], b->source_ranges[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < a->n_external_ips; i++) {
        if (a->external_ips[i] != b->external_ips[i]) {
            return false;
        }
    }
    for (size_t i = 0; i < a->n_ports; i++) {
        if (!ports_equal(&a->ports[i], &b->ports[i])) {
            return false;
        }
    }
    return backends_equal(a->addresses, a->n_addresses, b->addresses, b->n_addresses);
}
