/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain/trace.h"

#define NETWORK_API "network.openshift.io/v1"

/* One end of the connection. */
struct end {
    char *node;    /* The pod's node; NULL: the end is no pod. */
    char *text;    /* For example "red/web 10.128.0.5". */
    char *project; /* The pod's project; NULL: the end is no pod. */
    uint32_t ip;
    int64_t vnid; /* -1: not known. */
};

static void end_done(struct end *x)
{
    free(x->node);
    free(x->text);
    free(x->project);
}
#define CLEANUP_END __attribute__((cleanup(end_done)))

/* ---- ends ---- */

/* Finds the pod's entry in the state of the agent that has it attached. */
static const struct json *attached(const struct agents *a, const char *ns, const char *name,
                                   const char **ret_node)
{
    for (size_t i = 0; i < a->n; i++) {
        struct json *p;
        JSON_FOREACH (p, json_get(a->items[i].state, "pods")) {
            if (streq_null(json_path_string(p, "namespace", NULL), ns) &&
                streq_null(json_path_string(p, "name", NULL), name)) {
                *ret_node = a->items[i].name;
                return p;
            }
        }
    }
    return NULL;
}

static int find_pod(const struct agents *a, const char *ref, struct end *ret, struct err *e)
{
    CLEANUP_FREE char *ns = xstrdup(ref);
    CLEANUP(json_free) struct json *obj = NULL;
    char *name = strchr(ns, '/');
    if (!name || name == ns || !name[1] || strchr(name + 1, '/')) {
        return err_set(e, -EINVAL, "\"%s\" is not PROJECT/POD", ref);
    }
    *name++ = '\0';
    const char *node = NULL, *ip;
    const struct json *p = attached(a, ns, name, &node);
    ret->vnid = -1;
    if (p) {
        ip = json_path_string(p, "ip", NULL);
        ret->vnid = json_get_int_or(json_get(p, "vnid"), -1);
    } else {
        CLEANUP(json_free) struct json *project = NULL;
        int r = agents_registry_get(a, "v1", "pods", ns, name, &obj, e);
        if (r < 0) {
            return err_prefix(e, "pod %s is attached to no agent that can be asked here", ref);
        }
        ip = json_path_string(obj, "status", "podIP", NULL);
        node = json_path_string(obj, "spec", "nodeName", NULL);
        if (agents_registry_get(a, NETWORK_API, "netnamespaces", NULL, ns, &project, NULL) == 0) {
            ret->vnid = json_get_int_or(json_get(project, "netid"), -1);
        }
    }
    if (!ip || !node || ip4_parse(ip, &ret->ip) < 0) {
        return err_set(e, -ENOENT, "pod %s has no address yet", ref);
    }
    ret->node = xstrdup(node);
    ret->project = xstrdup(ns);
    ret->text = xasprintf("%s %s on %s", ref, ip, node);
    return 0;
}

static int find_node(const struct agents *a, const char *name, struct end *ret, struct err *e)
{
    CLEANUP(json_free) struct json *obj = NULL;
    const struct agent_ref *agent = agents_find(a, name, NULL);
    const char *ip = json_path_string(agent ? agent->state : NULL, "hostIP", NULL);
    if (!ip) {
        int r = agents_registry_get(a, NETWORK_API, "hostsubnets", NULL, name, &obj, e);
        if (r < 0) {
            return err_prefix(e, "%s is no address, no PROJECT/POD and no node that is known",
                              name);
        }
        ip = json_path_string(obj, "hostIP", NULL);
    }
    if (!ip || ip4_parse(ip, &ret->ip) < 0) {
        return err_set(e, -ENOENT, "node %s has no address", name);
    }
    ret->text = xasprintf("node %s %s", name, ip);
    return 0;
}

/* Finds the clusterIP of "PROJECT/SERVICE".  -ENOENT: there is none. */
static int find_service(const struct agents *a, const char *ref, struct end *ret)
{
    CLEANUP_FREE char *ns = xstrndup(ref, strcspn(ref, "/"));
    CLEANUP(json_free) struct json *obj = NULL;
    int r = agents_registry_get(a, "v1", "services", ns, ref + strlen(ns) + 1, &obj, NULL);
    const char *ip = json_path_string(obj, "spec", "clusterIP", NULL);
    if (r < 0 || !ip || ip4_parse(ip, &ret->ip) < 0) {
        return -ENOENT;
    }
    ret->text = xasprintf("service %s %s", ref, ip);
    return 0;
}

static int find_destination(const struct agents *a, const char *to, struct end *ret, struct err *e)
{
    if (strchr(to, '/')) {
        int r = find_pod(a, to, ret, e);
        return r < 0 && find_service(a, to, ret) == 0 ? 0 : r;
    }
    if (ip4_parse(to, &ret->ip) == 0) {
        ret->text = xstrdup(to);
        return 0;
    }
    return find_node(a, to, ret, e);
}

/* ---- halves ---- */

/* Gets the half of the node that 'path' (of its agent) is about; computes it from the registry if
 * the agent cannot be asked. */
static int half(struct agents *a, const char *node, const char *path, struct explain_question *q,
                struct json **ret, struct err *e)
{
    const struct agent_ref *agent = agents_find(a, node, NULL);
    struct err why = {0};
    if (agent && agent->state && agents_get(a, agent->socket, path, ret, &why) == 0) {
        const char *ip = json_path_string(agent->state, "hostIP", NULL);
        json_set_string(*ret, "hostIP", ip ? ip : "");
        return 0;
    }
    int r = trace_from_registry(a, node, q, ret, e);
    if (r < 0) {
        return err_prefix(e, "node %s", node);
    }
    struct json *sw = json_ensure_object(*ret, "switch");
    json_set_string(sw, "error",
                    !agent     ? "its agent cannot be asked from this host"
                    : why.code ? why.text
                               : agent->error.text);
    return 0;
}

static void add_end(struct json *trace, const char *key, const struct end *x)
{
    struct json *o = json_ensure_object(trace, key);
    json_set_string(o, "text", x->text);
    json_set_string(o, "ip", IP4_TEXT(x->ip));
    if (x->project) {
        json_set_string(o, "namespace", x->project);
        json_set_int(o, "vnid", x->vnid);
    }
}

static void add_target(struct strbuf *path, uint32_t dst, uint8_t proto, uint16_t port)
{
    strbuf_addf(path, "&dst=%s&proto=%s&dport=%u", IP4_TEXT(dst), explain_proto_name(proto), port);
}

/* The packet after the first node has translated it, if it was for a service. */
static void get_endpoint(const struct json *half, uint32_t *dst, uint16_t *port)
{
    const struct json *service = json_get(half, "service");
    const char *ip = json_path_string(service, "endpoint", NULL);
    if (ip && ip4_parse(ip, dst) == 0) {
        *port = (uint16_t) json_get_int_or(json_get(service, "endpointPort"), 0);
    }
}

int trace_follow(struct agents *a, const struct trace_request *q, struct json **ret, struct err *e)
{
    CLEANUP_END struct end from = {0}, to = {0};
    int r = find_pod(a, q->from, &from, e);
    if (r < 0 || (r = find_destination(a, q->to, &to, e)) < 0) {
        return r;
    }
    CLEANUP(json_free) struct json *trace = json_object();
    add_end(trace, "from", &from);
    add_end(trace, "to", &to);
    json_set_string(trace, "protocol", explain_proto_name(q->proto));
    if (q->port) {
        json_set_int(trace, "port", q->port);
    }
    struct json *halves = json_ensure_array(trace, "halves"), *first = NULL, *second = NULL;
    uint32_t dst = to.ip;
    uint16_t port = q->port;
    struct explain_question eq = {.entry = MODEL_FROM_PORT,
                                  .src = from.ip,
                                  .dst = to.ip,
                                  .proto = q->proto,
                                  .dst_port = q->port};
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    strbuf_adds(&path, "/v1/trace?pod=");
    http_escape(q->from, &path);
    add_target(&path, dst, q->proto, port);
    if ((r = half(a, from.node, strbuf_cstr(&path), &eq, &first, e)) < 0) {
        return r;
    }
    json_append(halves, first);
    const struct json *model = json_get(first, "model");
    if (streq_null(json_path_string(model, "action", NULL), "tunnel")) {
        const char *node = json_path_string(model, "remoteNode", NULL);
        const char *vtep = json_path_string(first, "hostIP", NULL);
        get_endpoint(first, &dst, &port);
        eq.dst = dst;
        eq.dst_port = port;
        eq.entry = MODEL_FROM_TUNNEL;
        eq.tunnel_id = (uint32_t) json_get_int_or(json_get(model, "vnid"), 0);
        if (!vtep || ip4_parse(vtep, &eq.outer_src) < 0) {
            return err_set(e, -EBADMSG, "the agent of %s does not say its address", from.node);
        }
        strbuf_reset(&path);
        strbuf_addf(&path, "/v1/trace?from=tunnel&src=%s&vtep=%s&vnid=%u", IP4_TEXT(from.ip), vtep,
                    eq.tunnel_id);
        add_target(&path, dst, q->proto, port);
        if ((r = half(a, node ? node : "", strbuf_cstr(&path), &eq, &second, e)) < 0) {
            return r;
        }
        json_append(halves, second);
    }
    trace_conclude(trace);
    *ret = TAKE(trace);
    return 0;
}
