/* SPDX-License-Identifier: Apache-2.0 */
#include "node/introspect/introspect_priv.h"

#include "client/objects.h"

#include <inttypes.h>
#include <stdio.h>

#define FIRST_FREE_PORT 32768 /* The source port of a question that names none. */

/* ---- names ---- */

/* The objects behind rules, by dp_rule.origin: "HostSubnet node2", "Pod red/web",
 * "NetNamespace red". */
struct rule_names {
    struct smap by_origin;       /* Owned texts; several objects are joined by ", ". */
    const struct policy *policy; /* Names its own flows; NULL: there are none. */
    const struct egress *egress; /* The same. */
    /* The service that a traced packet was sent to: "Service red/web"; NULL: none. */
    const char *service;
};

static void origin_key(uint64_t origin, char out[32])
{
    snprintf(out, 32, "%" PRIx64, origin);
}

/* 'text' is taken over. */
static void add_name(struct rule_names *n, uint64_t origin, char *text)
{
    char key[32];
    origin_key(origin, key);
    const char *old = smap_get(&n->by_origin, key);
    if (old) {
        char *joined = xasprintf("%s, %s", old, strchr(text, ' ') + 1);
        free(text);
        text = joined;
    }
    smap_set(&n->by_origin, key, text);
}

static void name_subnet(void *ctx, const char *key, const struct json *obj)
{
    struct sdn_remote r;
    if (objects_parse_host_subnet(obj, &r, NULL) == 0) {
        add_name(ctx, pipeline_remote_cookie(&r), xasprintf("HostSubnet %s", key));
    }
}

static void name_project(void *ctx, const char *key, const struct json *obj)
{
    struct sdn_vnids v;
    if (objects_parse_net_namespace(obj, &v, NULL) == 0) {
        add_name(ctx, pipeline_vnid_cookie(v.id), xasprintf("NetNamespace %s", key));
    }
}

static void names_init(struct rule_names *n, const struct introspect_view *v)
{
    smap_init(&n->by_origin, free);
    n->policy = v->policy;
    n->egress = v->egress;
    n->service = NULL;
    if (v->subnets) {
        informer_each(v->subnets, name_subnet, n);
    }
    if (v->projects) {
        informer_each(v->projects, name_project, n);
    }
    size_t count = 0;
    const struct dp_pod *const *pods = v->datapath ? datapath_pods(v->datapath, &count) : NULL;
    for (size_t i = 0; i < count; i++) {
        add_name(n, pipeline_pod_cookie(pods[i]->ip),
                 xasprintf("Pod %s/%s", pods[i]->pod_namespace, pods[i]->pod_name));
    }
}

static void names_done(struct rule_names *n)
{
    smap_done(&n->by_origin);
}

static void add_egress_policy(void *ctx, const char *project, const char *policy)
{
    struct strbuf *out = ctx;
    strbuf_addf(out, "%s%s/%s", out->size ? ", " : "EgressNetworkPolicy ", project, policy);
}

void introspect_name_firewall(const struct egress *e, uint32_t vnid, struct strbuf *out)
{
    if (e) {
        egress_each_policy(e, vnid, add_egress_policy, out);
    }
}

/* The names of the objects behind a rule; "" for the base rules. */
static const char *name_of(struct rule_names *n, uint64_t origin)
{
    char key[32];
    uint64_t group = pipeline_group(origin);
    origin_key(group, key);
    const char *s = smap_get(&n->by_origin, key);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    if (!s && n->policy && policy_describe(n->policy, group, &text)) {
        smap_set(&n->by_origin, key, strbuf_steal(&text));
        s = smap_get(&n->by_origin, key);
    }
    if (!s && group >> 48 == PIPELINE_FIREWALL) {
        introspect_name_firewall(n->egress, (uint32_t) group, &text);
        smap_set(&n->by_origin, key, strbuf_steal(&text));
        s = smap_get(&n->by_origin, key);
    }
    return s ? s : group == PIPELINE_BASE_COOKIE ? "" : "unknown";
}

/* ---- state ---- */

static const char *name_of_host(const struct introspect_view *v, struct rule_names *n,
                                uint32_t host_ip)
{
    for (size_t i = 0; v->net && i < v->net->n_remotes; i++) {
        if (v->net->remotes[i].host_ip == host_ip) {
            const char *s = name_of(n, pipeline_remote_cookie(&v->net->remotes[i]));
            const char *blank = strchr(s, ' ');
            return blank ? blank + 1 : s;
        }
    }
    return "";
}

static void add_network(struct json *o, const struct sdn_network *n)
{
    json_set_string(o, "plugin", sdn_plugin_name(n->plugin));
    struct json *list = json_ensure_array(o, "clusterNetworks");
    for (size_t i = 0; i < n->n_cluster; i++) {
        json_append(list, json_string(PREFIX_TEXT(n->cluster[i])));
    }
    json_set_string(o, "serviceNetwork", n->service.len ? PREFIX_TEXT(n->service) : "");
    json_set_string(o, "subnet", PREFIX_TEXT(n->local));
    json_set_string(o, "gateway", IP4_TEXT(sdn_gateway(n)));
    json_set_int(o, "vxlanPort", n->vxlan_port);
    json_set_int(o, "mtu", n->mtu);
}

static struct json *pod_json(const struct dp_pod *p)
{
    struct json *o = json_object();
    json_set_string(o, "namespace", p->pod_namespace);
    json_set_string(o, "name", p->pod_name);
    json_set_string(o, "ip", IP4_TEXT(p->ip));
    json_set_string(o, "mac", MAC_TEXT(p->mac));
    json_set_int(o, "vnid", p->vnid);
    json_set_int(o, "port", p->port_number);
    json_set_string(o, "switchPort", p->port);
    json_set_string(o, "hostInterface", p->host_if);
    json_set_string(o, "interface", p->ifname);
    json_set_string(o, "container", p->container_id);
    json_set_bool(o, "ready", p->ready);
    return o;
}

struct json *introspect_state(const struct introspect_view *v)
{
    struct json *o = json_object();
    struct rule_names names;
    names_init(&names, v);
    json_set_string(o, "node", v->node_name);
    json_set_string(o, "hostIP", IP4_TEXT(v->host_ip));
    json_set_string(o, "phase", v->phase);
    json_set_bool(o, "ready", v->ready);
    json_set_string(o, "reason", v->reason);
    json_set_string(o, "cniConfig", v->cni_config);
    json_set_bool(o, "masterConnected", !v->master_lost);
    struct json *remotes = json_ensure_array(o, "remotes");
    for (size_t i = 0; v->net && i < v->net->n_remotes; i++) {
        const struct sdn_remote *r = &v->net->remotes[i];
        struct json *item = json_append(remotes, json_object());
        json_set_string(item, "name", name_of_host(v, &names, r->host_ip));
        json_set_string(item, "hostIP", IP4_TEXT(r->host_ip));
        json_set_string(item, "subnet", r->subnet.len ? PREFIX_TEXT(r->subnet) : "");
    }
    if (v->net) {
        add_network(o, v->net);
    }
    struct json *list = json_ensure_array(o, "pods");
    size_t n = 0;
    const struct dp_pod *const *pods = v->datapath ? datapath_pods(v->datapath, &n) : NULL;
    for (size_t i = 0; i < n; i++) {
        json_append(list, pod_json(pods[i]));
    }
    names_done(&names);
    return o;
}

/* ---- rules ---- */

struct rule_names *rule_names_new(const struct introspect_view *v)
{
    struct rule_names *n = NEW(struct rule_names);
    names_init(n, v);
    return n;
}

struct rule_names *rule_names_free(struct rule_names *n)
{
    if (n) {
        names_done(n);
        free(n);
    }
    return NULL;
}

void introspect_rule(struct json *o, struct rule_names *n, const struct dp_rule *rule)
{
    for (size_t i = 0; i < json_count(rule->details); i++) {
        json_set(o, json_key_at(rule->details, i), json_clone(json_at(rule->details, i)));
    }
    json_set_string(o, "tableName", rule->place);
    json_set_string(o, "match", rule->match);
    json_set_string(o, "actions", rule->actions);
    json_set_string(o, "object",
                    n->service && rule->is_service ? n->service
                    : rule->object                 ? rule->object
                                                   : name_of(n, rule->origin));
    json_set_string(o, "meaning", rule->meaning);
    if (rule->cause != MODEL_NOT_DROPPED) {
        json_set_string(o, "cause", model_cause_name(rule->cause));
    }
}

/* ---- entries of maps ---- */

/* The object at "10.128.0.2" or "10.128.0.2:80"; NULL: none that is known. */
static const char *object_at(const struct introspect_view *v, struct rule_names *names,
                             const char *text)
{
    CLEANUP_FREE char *host = xstrndup(text, strcspn(text, ":/"));
    char key[32];
    uint32_t ip;
    if (ip4_parse(host, &ip) < 0) {
        return NULL;
    }
    origin_key(pipeline_pod_cookie(ip), key);
    const char *s = smap_get(&names->by_origin, key);
    for (size_t i = 0; !s && v->net && i < v->net->n_remotes; i++) {
        const struct sdn_remote *r = &v->net->remotes[i];
        if (r->host_ip == ip || (r->subnet.len && r->subnet.addr == ip && strchr(text, '/'))) {
            s = name_of(names, pipeline_remote_cookie(r));
        }
    }
    return s;
}

static const char *const named_fields[] = {"address", "from",   "to",      "vtep",
                                           "prefix",  "client", "backend", "goesToBackend"};

/* The policies behind the number of a class. */
static void add_policies(struct rule_names *names, const struct json *fields, struct strbuf *out)
{
    static const char *const keys[] = {"egressSubject", "ingressSubject"};
    for (size_t i = 0; names->policy && i < ARRAY_SIZE(keys); i++) {
        int64_t id = json_get_int_or(json_get(fields, keys[i]), 0);
        if (id > 0) {
            const char *object =
                name_of(names, pipeline_policy_class_cookie((unsigned) i, (uint32_t) id));
            strbuf_addf(out, "%s%s", out->size ? ", " : "", object);
        }
    }
}

static void add_objects(const struct introspect_view *v, struct rule_names *names,
                        const struct json *fields, struct strbuf *out)
{
    for (size_t i = 0; i < ARRAY_SIZE(named_fields); i++) {
        const char *text = json_path_string(fields, named_fields[i], NULL);
        const char *object = text ? object_at(v, names, text) : NULL;
        if (object && !strstr(strbuf_cstr(out), object)) {
            strbuf_addf(out, "%s%s", out->size ? ", " : "", object);
        }
    }
}

/* "Service red/web" by its address. */
static void name_services(const struct introspect_view *v, struct smap *ret)
{
    struct sdn_project_service *list = NULL;
    size_t n = v->services ? services_list(v->services, &list) : 0;
    for (size_t i = 0; i < n; i++) {
        const struct sdn_service *s = list[i].service;
        char *name = s->host_ports ? xasprintf("host ports at %s", s->name)
                                   : xasprintf("Service %s/%s", s->namespace, s->name);
        for (size_t k = 0; k < s->n_external_ips; k++) {
            smap_set(ret, IP4_TEXT(s->external_ips[k]), xstrdup(name));
        }
        smap_set(ret, IP4_TEXT(s->cluster_ip), name);
    }
    free(list);
}

static const char *service_of(const struct smap *services, const struct json *fields)
{
    static const char *const keys[] = {"service", "to", "comesFromService"};
    const char *found = NULL;
    for (size_t i = 0; !found && i < ARRAY_SIZE(keys); i++) {
        const char *text = json_path_string(fields, keys[i], NULL);
        CLEANUP_FREE char *host = xstrndup(text ? text : "", strcspn(text ? text : "", ":"));
        found = *host ? smap_get(services, host) : NULL;
    }
    return found;
}

void introspect_name_entries(const struct introspect_view *v, struct json *map)
{
    struct rule_names names;
    struct smap services;
    struct json *item;
    names_init(&names, v);
    smap_init(&services, free);
    name_services(v, &services);
    JSON_FOREACH (item, json_get(map, "items")) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        const struct json *key = json_get(item, "key"), *value = json_get(item, "value");
        const char *service = service_of(&services, key);
        service = service ? service : service_of(&services, value);
        strbuf_adds(&text, service ? service : "");
        add_objects(v, &names, key, &text);
        add_objects(v, &names, value, &text);
        add_policies(&names, key, &text);
        add_policies(&names, value, &text);
        json_set_string(item, "object", strbuf_cstr(&text));
    }
    smap_done(&services);
    names_done(&names);
}

/* ---- questions ---- */

static int read_address(const struct http_exchange *x, const char *name, uint32_t *ret,
                        struct err *e)
{
    const char *s = http_query(x, name);
    return s && ip4_parse(s, ret) == 0
               ? 0
               : err_set(e, -EINVAL, "%s: \"%s\" is not an IPv4 address", name, s ? s : "");
}

static int read_number(const struct http_exchange *x, const char *name, uint64_t max, uint64_t dflt,
                       uint64_t *ret, struct err *e)
{
    const char *s = http_query(x, name);
    *ret = dflt;
    return !s || str_to_u64(s, max, ret) == 0
               ? 0
               : err_set(e, -EINVAL, "%s: \"%s\" is not a number up to %" PRIu64, name, s, max);
}

static const struct dp_pod *find_pod(const struct introspect_view *v, const char *ref)
{
    size_t n;
    const struct dp_pod *const *pods = datapath_pods(v->datapath, &n);
    for (size_t i = 0; i < n; i++) {
        CLEANUP_FREE char *name = xasprintf("%s/%s", pods[i]->pod_namespace, pods[i]->pod_name);
        if (streq(name, ref)) {
            return pods[i];
        }
    }
    return NULL;
}

static int read_source(const struct introspect_view *v, const struct http_exchange *x,
                       struct explain_question *q, struct err *e)
{
    const char *ref = http_query(x, "pod"), *from = http_query(x, "from");
    uint64_t vnid;
    if (ref) {
        const struct dp_pod *p = find_pod(v, ref);
        if (!p || !p->port_number) {
            return err_set(e, -ENOENT, "pod %s is not attached on node %s", ref, v->node_name);
        }
        q->entry = MODEL_FROM_PORT;
        q->port = p->port_number;
        q->src = p->ip;
        return 0;
    }
    int r = read_address(x, "src", &q->src, e);
    if (r < 0) {
        return r;
    }
    if (from && streq(from, "host")) {
        q->entry = MODEL_FROM_HOST;
        return 0;
    }
    if (!from || !streq(from, "tunnel")) {
        return err_set(e, -EINVAL, "from: is neither host nor tunnel, and there is no pod");
    }
    q->entry = MODEL_FROM_TUNNEL;
    if ((r = read_address(x, "vtep", &q->outer_src, e)) == 0 &&
        (r = read_number(x, "vnid", SDN_VNID_MAX, 0, &vnid, e)) == 0) {
        q->tunnel_id = (uint32_t) vnid;
    }
    return r;
}

int introspect_question(const struct introspect_view *v, const struct http_exchange *x,
                        struct explain_question *ret, struct err *e)
{
    struct explain_question q = {0};
    const char *proto = http_query(x, "proto");
    uint64_t sport, dport;
    int r = read_source(v, x, &q, e);
    if (r == 0) {
        r = read_address(x, "dst", &q.dst, e);
    }
    if (r == 0 && (r = explain_proto_parse(proto ? proto : "icmp", &q.proto, e)) < 0) {
        return err_prefix(e, "proto");
    }
    if (r == 0) {
        r = read_number(x, "sport", UINT16_MAX, FIRST_FREE_PORT, &sport, e);
    }
    if (r == 0) {
        r = read_number(x, "dport", UINT16_MAX, 0, &dport, e);
    }
    if (r == 0) {
        q.src_port = (uint16_t) sport;
        q.dst_port = (uint16_t) dport;
        *ret = q;
    }
    return r;
}

static void set_verdict(struct json *o, const struct introspect_view *v, struct rule_names *names,
                        const struct model_verdict *m)
{
    json_set_string(o, "action", explain_action_name(m->action));
    if (m->action == MODEL_DROP) {
        json_set_string(o, "cause", model_cause_name(m->cause));
        json_set_string(o, "text", explain_cause(m->cause));
        json_set_bool(o, "refused", m->refused);
    } else if (m->action == MODEL_TUNNEL) {
        json_set_string(o, "vtep", IP4_TEXT(m->remote));
        json_set_string(o, "remoteNode", name_of_host(v, names, m->remote));
        json_set_int(o, "vnid", m->tunnel_id);
    }
}

/* The node, as the input of the model. */
struct asked {
    struct sdn_network net;
    struct model_pod *pods;
    struct sdn_project_service *services;
    struct model_firewall *firewalls;
    struct model_node node;
};

/* The firewalls of the pods' VNIDs. */
static void add_firewalls(struct asked *a, const struct egress *e)
{
    a->firewalls = xcalloc(a->node.n_pods + 1, sizeof *a->firewalls);
    a->node.firewalls = a->firewalls;
    for (size_t i = 0; e && i < a->node.n_pods; i++) {
        struct model_firewall f = {.vnid = a->pods[i].vnid};
        bool known = false;
        for (size_t k = 0; k < a->node.n_firewalls; k++) {
            known |= a->firewalls[k].vnid == f.vnid;
        }
        f.n_rules = known ? 0 : egress_rules(e, f.vnid, &f.rules);
        if (f.n_rules) {
            a->firewalls[a->node.n_firewalls++] = f;
        }
    }
}

static void asked_init(struct asked *a, const struct introspect_view *v)
{
    struct datapath_status s;
    size_t n;
    datapath_get_status(v->datapath, &s);
    a->net = *v->net;
    a->net.refusal_meter = s.refuses;
    const struct dp_pod *const *pods = datapath_pods(v->datapath, &n);
    a->pods = xcalloc(n + 1, sizeof *a->pods);
    for (size_t i = 0; i < n; i++) {
        a->pods[i] = (struct model_pod){.port = pods[i]->port_number,
                                        .ip = pods[i]->ip,
                                        .mac = pods[i]->mac,
                                        .vnid = pods[i]->vnid,
                                        .has_also_vnid = pods[i]->has_also_vnid,
                                        .also_vnid = pods[i]->also_vnid};
    }
    a->node =
        (struct model_node){.net = &a->net, .pods = a->pods, .n_pods = n, .name = v->node_name};
    a->node.n_services = services_list(v->services, &a->services);
    a->node.services = a->services;
    add_firewalls(a, v->egress);
}

static void asked_done(struct asked *a)
{
    free(a->pods);
    free(a->services);
    free(a->firewalls);
}
#define CLEANUP_ASKED __attribute__((cleanup(asked_done)))

struct json *introspect_trace(const struct introspect_view *v, const struct explain_question *q,
                              struct model_packet *packet)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    explain_packet(v->net, q, packet);
    explain_packet_text(v->net, packet, &text);
    struct json *o = json_object();
    json_set_string(o, "node", v->node_name);
    json_set_string(o, "packet", strbuf_cstr(&text));
    return o;
}

/* The model's verdict.  For a packet to a service it is the verdict on the packet translated to the
 * endpoint of 't' (NULL: there is no trace). */
static struct model_verdict judge(const struct introspect_view *v, const struct explain_question *q,
                                  const struct dp_trace *t, struct json *answer)
{
    CLEANUP_ASKED struct asked a;
    struct model_packet p;
    asked_init(&a, v);
    explain_packet(&a.net, q, &p);
    struct model_verdict m = model_judge(&a.node, &p);
    struct json *model = json_ensure_object(answer, "model");
    if (m.service) {
        explain_service(&a.node, &m, json_ensure_object(answer, "service"));
    }
    if (m.action == MODEL_TRANSLATE && t && t->translated &&
        model_may_get(&a.node, &m, t->endpoint_ip, t->endpoint_port)) {
        p.ip.dst = t->endpoint_ip;
        p.ip.dst_port = t->endpoint_port;
        struct json *service = json_get(answer, "service");
        json_set_string(service, "endpoint", IP4_TEXT(p.ip.dst));
        json_set_int(service, "endpointPort", p.ip.dst_port);
        p.ip.translated = true;
        m = model_judge(&a.node, &p);
    }
    struct rule_names names;
    names_init(&names, v);
    set_verdict(model, v, &names, &m);
    names_done(&names);
    m.service = NULL; /* The text is not used after 'a' is freed. */
    m.service_port = NULL;
    return m;
}

/* Adds "egressFirewall": the rule that decides about a destination outside. */
static void add_egress_firewall(const struct introspect_view *v, const struct explain_question *q,
                                const struct dp_trace *t, struct json *answer)
{
    size_t n = 0;
    uint32_t dst = t->translated ? t->endpoint_ip : q->dst;
    bool leaves = t->action == MODEL_HOST && dst != sdn_gateway(v->net);
    const struct dp_pod *const *pods = datapath_pods(v->datapath, &n), *from = NULL;
    for (size_t i = 0; i < n && q->entry == MODEL_FROM_PORT; i++) {
        from = pods[i]->ip == q->src ? pods[i] : from;
    }
    const struct firewall_rule *rules;
    size_t n_rules = from && v->egress ? egress_rules(v->egress, from->vnid, &rules) : 0;
    if (!n_rules || (!leaves && t->cause != MODEL_FIREWALL_DENIED)) {
        return;
    }
    CLEANUP_STRBUF struct strbuf object = STRBUF_INIT;
    size_t rule = firewall_find(rules, n_rules, dst);
    struct json *o = json_ensure_object(answer, "egressFirewall");
    introspect_name_firewall(v->egress, from->vnid, &object);
    json_set_string(o, "object", strbuf_cstr(&object));
    json_set_bool(o, "allowed", rule == n_rules || rules[rule].allow);
    if (rule < n_rules) {
        json_set_int(o, "rule", (int64_t) rule);
    }
}

void introspect_trace_add(const struct introspect_view *v, struct json *answer,
                          const struct explain_question *q, int error, const char *text,
                          const struct dp_trace *t)
{
    struct json *o = json_ensure_object(answer, "switch");
    struct model_verdict verdict = judge(v, q, error < 0 ? NULL : t, answer);
    if (error < 0) {
        json_set_string(o, "error", text);
        json_set_bool(answer, "agreed", false);
        return;
    }
    struct rule_names names;
    names_init(&names, v);
    const char *service = json_path_string(answer, "service", "name", NULL);
    CLEANUP_FREE char *name = service ? xasprintf("Service %s", service) : NULL;
    names.service = name;
    struct json *steps = json_ensure_array(o, "steps");
    for (size_t i = 0; i < t->n; i++) {
        introspect_rule(json_append(steps, json_object()), &names, &t->steps[i]);
    }
    names_done(&names);
    json_set_string(o, "action", explain_action_name(t->action));
    if (t->action == MODEL_DROP) {
        json_set_string(o, "cause", model_cause_name(t->cause));
    }
    if (t->remark) {
        json_set_string(o, "remark", t->remark);
    }
    add_egress_firewall(v, q, t, answer);
    /* The datapath's own rules answer for policies, not the model. */
    bool by_policy = t->action == MODEL_DROP &&
                     (t->cause == MODEL_EGRESS_DENIED || t->cause == MODEL_INGRESS_DENIED);
    struct explain_outcome outcome = {.action = t->action, .cause = t->cause};
    bool agreed = introspect_policies(v, q, t, answer);
    json_set_bool(answer, "agreed", agreed && (by_policy || explain_agrees(&outcome, &verdict)));
}
