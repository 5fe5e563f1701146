/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain/trace.h"

#include "client/objects.h"

/* The network as a node sees it, made from the registry as its agent makes it. */
struct registry {
    struct json *network, *subnets, *projects, *pods;
    struct sdn_network net;
    struct objects_host_subnet *items;
    struct model_pod *known;
    size_t n_known;
    struct json *service_objects, *slice_objects;
    struct sdn_service **parsed;
    struct sdn_project_service *services;
    size_t n_services;
};

static void registry_done(struct registry *r)
{
    json_free(r->network);
    json_free(r->subnets);
    json_free(r->projects);
    json_free(r->pods);
    free(r->net.remotes);
    free(r->items);
    free(r->known);
    json_free(r->service_objects);
    json_free(r->slice_objects);
    for (size_t i = 0; i < r->n_services; i++) {
        sdn_service_free(r->parsed[i]);
    }
    free(r->parsed);
    free(r->services);
}
#define CLEANUP_REGISTRY __attribute__((cleanup(registry_done)))

static const char *name_of(const struct json *obj)
{
    return json_get_text(json_get(obj, "metadata"), "name");
}

static int read_objects(const struct agents *a, struct registry *r, struct err *e)
{
    int err = agents_registry_get(a, OBJECTS_NETWORK_API, "clusternetworks", NULL, "default",
                                  &r->network, e);
    if (err == 0) {
        err =
            agents_registry_get(a, OBJECTS_NETWORK_API, "hostsubnets", NULL, NULL, &r->subnets, e);
    }
    if (err == 0) {
        err = agents_registry_get(a, OBJECTS_NETWORK_API, "netnamespaces", NULL, NULL, &r->projects,
                                  e);
    }
    return err < 0 ? err : agents_registry_get(a, "v1", "pods", NULL, NULL, &r->pods, e);
}

static void not_used(void *ctx, const char *name, const char *why)
{
}

static int make_network(struct registry *r, const char *node, struct err *e)
{
    const struct json *list = json_get(r->subnets, "items");
    struct sdn_remote own = {0};
    struct json *item;
    size_t n = 0;
    bool found = false;
    int err = objects_parse_cluster_network(r->network, &r->net, e);
    r->items = xcalloc(json_count(list) + 1, sizeof *r->items);
    JSON_FOREACH (item, list) {
        r->items[n++] = (struct objects_host_subnet){name_of(item), item};
        if (err == 0 && streq(name_of(item), node)) {
            err = objects_parse_host_subnet(item, &own, e);
            found = true;
        }
    }
    if (err < 0) {
        return err;
    }
    if (!found || !own.subnet.len) {
        return err_set(e, -ENOENT, "node %s has no subnet", node);
    }
    r->net.local = own.subnet;
    r->net.host_ip = own.host_ip;
    r->net.n_remotes =
        objects_build_remotes(&r->net, node, r->items, n, not_used, NULL, &r->net.remotes);
    return 0;
}

static struct sdn_vnids project_vnids(const struct registry *r, const char *project)
{
    struct json *item;
    struct sdn_vnids v = {.id = SDN_VNID_GLOBAL};
    JSON_FOREACH (item, json_get(r->projects, "items")) {
        if (streq_null(name_of(item), project)) {
            objects_parse_net_namespace(item, &v, NULL);
        }
    }
    return v;
}

/* Only the agent knows port numbers; for the model any distinct numbers will do. */
static void make_pods(struct registry *r, const char *node)
{
    const struct json *list = json_get(r->pods, "items");
    struct json *p;
    r->known = xcalloc(json_count(list) + 1, sizeof *r->known);
    JSON_FOREACH (p, list) {
        const char *ip = json_path_string(p, "status", "podIP", NULL);
        const char *phase = json_path_string(p, "status", "phase", NULL);
        bool ended = phase && (streq(phase, "Succeeded") || streq(phase, "Failed"));
        uint32_t addr;
        if (!ip || ended || ip4_parse(ip, &addr) < 0 || !prefix_contains(r->net.local, addr) ||
            !streq_null(json_path_string(p, "spec", "nodeName", NULL), node)) {
            continue;
        }
        struct sdn_vnids v = project_vnids(r, json_path_string(p, "metadata", "namespace", NULL));
        r->known[r->n_known] = (struct model_pod){
            .port = PIPELINE_PORT_TUN + 1 + (uint32_t) r->n_known,
            .ip = addr,
            .mac = mac_from_ip4(addr),
            .vnid = v.id,
            .has_also_vnid = v.moving,
            .also_vnid = v.also,
        };
        r->n_known++;
    }
}

/* Selects the slices of the service. */
static void join_slices(const struct registry *r, const char *ns, struct sdn_service *s)
{
    const struct json *list = json_get(r->slice_objects, "items");
    CLEANUP_FREE struct sdn_slice **slices = xcalloc(json_count(list) + 1, sizeof *slices);
    struct json *item;
    size_t n = 0;
    JSON_FOREACH (item, list) {
        struct sdn_slice *slice = NULL;
        if (!streq_null(json_path_string(item, "metadata", "namespace", NULL), ns) ||
            sdn_slice_parse(item, &slice, NULL) < 0) {
            continue;
        }
        if (slice->service && streq(slice->service, s->name)) {
            slices[n++] = slice;
        } else {
            sdn_slice_unref(slice);
        }
    }
    sdn_service_join(s, slices, n);
    for (size_t i = 0; i < n; i++) {
        sdn_slice_unref(slices[i]);
    }
}

/* A registry without these kinds has no such objects. */
static void make_services(const struct agents *a, struct registry *r)
{
    agents_registry_get(a, "v1", "services", NULL, NULL, &r->service_objects, NULL);
    agents_registry_get(a, "discovery.k8s.io/v1", "endpointslices", NULL, NULL, &r->slice_objects,
                        NULL);
    const struct json *list = json_get(r->service_objects, "items");
    struct json *item;
    r->parsed = xcalloc(json_count(list) + 1, sizeof *r->parsed);
    r->services = xcalloc(json_count(list) + 1, sizeof *r->services);
    JSON_FOREACH (item, list) {
        const char *ns = json_path_string(item, "metadata", "namespace", NULL);
        struct sdn_service *s = NULL;
        if (sdn_service_parse(item, &s, NULL) < 0) {
            continue;
        }
        join_slices(r, ns, s);
        struct sdn_vnids v = project_vnids(r, ns);
        r->parsed[r->n_services] = s;
        r->services[r->n_services++] = (struct sdn_project_service){s, v.id, v.moving, v.also};
    }
}

/* Only the switch knows which endpoint is chosen. */
static struct model_verdict judge(const struct model_node *n, struct model_packet *p,
                                  struct json *half)
{
    struct model_verdict v = model_judge(n, p);
    struct json *service = v.service ? json_ensure_object(half, "service") : NULL;
    if (service) {
        explain_service(n, &v, service);
    }
    for (size_t i = 0; v.action == MODEL_TRANSLATE && i < v.service_port->n_backends; i++) {
        const struct sdn_backend *b = &v.service_port->backends[i];
        if (model_may_get(n, &v, b->endpoint->ip, b->port)) {
            p->ip.dst = b->endpoint->ip;
            p->ip.dst_port = b->port;
            p->ip.translated = true;
            json_set_string(service, "endpoint", IP4_TEXT(p->ip.dst));
            json_set_int(service, "endpointPort", p->ip.dst_port);
            v = model_judge(n, p);
        }
    }
    return v;
}

static const char *node_at(const struct registry *r, uint32_t host_ip)
{
    struct json *item;
    JSON_FOREACH (item, json_get(r->subnets, "items")) {
        struct sdn_remote s;
        if (objects_parse_host_subnet(item, &s, NULL) == 0 && s.host_ip == host_ip) {
            return name_of(item);
        }
    }
    return "";
}

int trace_from_registry(const struct agents *a, const char *node, struct explain_question *q,
                        struct json **ret, struct err *e)
{
    CLEANUP_REGISTRY struct registry r = {0};
    int err = read_objects(a, &r, e);
    if (err == 0) {
        err = make_network(&r, node, e);
    }
    if (err < 0) {
        return err;
    }
    if (r.net.plugin == SDN_NETWORKPOLICY) {
        return err_set(
            e, -EOPNOTSUPP,
            "under ovs-networkpolicy only the agent of node %s knows the verdict, and it cannot be "
            "asked from here: trace there",
            node);
    }
    make_pods(&r, node);
    for (size_t i = 0; q->entry == MODEL_FROM_PORT && i < r.n_known; i++) {
        if (r.known[i].ip == q->src) {
            q->port = r.known[i].port;
        }
    }
    struct model_packet p;
    explain_packet(&r.net, q, &p);
    make_services(a, &r);
    struct model_node n = {.net = &r.net,
                           .pods = r.known,
                           .n_pods = r.n_known,
                           .services = r.services,
                           .n_services = r.n_services,
                           .name = node};
    struct json *half = json_object(), *model = json_ensure_object(half, "model");
    struct model_verdict v = judge(&n, &p, half);
    json_set_string(half, "node", node);
    json_set_string(half, "hostIP", IP4_TEXT(r.net.host_ip));
    json_set_string(model, "action", explain_action_name(v.action));
    if (v.action == MODEL_DROP) {
        json_set_string(model, "cause", model_cause_name(v.cause));
        json_set_string(model, "text", explain_cause(v.cause));
    } else if (v.action == MODEL_TUNNEL) {
        json_set_string(model, "vtep", IP4_TEXT(v.remote));
        json_set_string(model, "remoteNode", node_at(&r, v.remote));
        json_set_int(model, "vnid", v.tunnel_id);
    }
    *ret = half;
    return 0;
}
