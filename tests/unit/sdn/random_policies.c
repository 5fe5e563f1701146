/* SPDX-License-Identifier: Apache-2.0 */
#include "random_policies.h"

#include "base/mem.h"

#include <stdio.h>

static uint64_t (*random_bits)(void);

static uint32_t below(uint64_t n)
{
    return (uint32_t) (random_bits() % n);
}

static bool chance(unsigned percent)
{
    return below(100) < percent;
}

#define PICK(array) ((array)[below(ARRAY_SIZE(array))])

static const char *const ns_names[RANDOM_NAMESPACES] = {"red", "blue", "green", "default"};
static const char *const keys[] = {"app", "tier", "env"};
static const char *const values[] = {"a", "b", "c"};
static const char *const port_names[] = {"http", "dns", "sig"};
static const uint16_t numbers[] = {80, 81, 443, 8080, 53, 1024, 65535, 1};
static const uint8_t protocols[] = {6, 17, 132};

static size_t random_labels(struct model_label *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (chance(55)) {
            ret[n++] = (struct model_label){keys[i], PICK(values)};
        }
    }
    return n;
}

static void random_selector(struct model_selector *s, unsigned percent_all)
{
    *s = (struct model_selector){0};
    if (chance(percent_all)) {
        return;
    }
    for (size_t n = 1 + below(2); n > 0; n--) {
        struct model_requirement *r = &s->list[s->n++];
        r->key = PICK(keys);
        r->op = chance(60) ? MODEL_IN : (enum model_op) below(4);
        r->n_values = r->op <= MODEL_NOT_IN ? 1 + below(2) : 0;
        for (size_t i = 0; i < r->n_values; i++) {
            r->values[i] = PICK(values);
        }
    }
}

void random_policies_init(struct random_policies *r, uint64_t (*rng)(void))
{
    random_bits = rng;
    *r = (struct random_policies){0};
    r->model = (struct model_policies){
        .namespaces = r->namespaces, .endpoints = r->endpoints, .policies = r->policies};
    for (size_t i = 0; i < RANDOM_NAMESPACES; i++) {
        struct model_namespace *ns = &r->namespaces[r->model.n_namespaces++];
        ns->name = ns_names[i];
        ns->n_labels = random_labels(ns->labels);
    }
}

void random_policies_add(struct random_policies *r, uint32_t ip, bool local, bool node)
{
    for (size_t i = 0; i < r->model.n_endpoints; i++) {
        if (r->endpoints[i].ip == ip) {
            return;
        }
    }
    if (r->model.n_endpoints == RANDOM_ENDPOINTS) {
        return;
    }
    r->local[r->model.n_endpoints] = local;
    struct model_endpoint *e = &r->endpoints[r->model.n_endpoints++];
    e->ip = ip;
    e->ns = node ? NULL : PICK(ns_names);
    e->unknown = local && chance(5);
    if (e->unknown) {
        return;
    }
    e->n_labels = random_labels(e->labels);
    for (size_t i = 0; !node && i < MODEL_MAX_PORTS; i++) {
        if (chance(50)) {
            e->ports[e->n_ports++] =
                (struct model_named_port){PICK(port_names), PICK(protocols), PICK(numbers)};
        }
    }
}

static void random_peer(const struct random_policies *r, struct model_peer *p, bool admin,
                        bool egress)
{
    *p = (struct model_peer){.kind = MODEL_PODS};
    unsigned kind = below(100);
    if (kind < 30 && (!admin || egress)) {
        p->kind = MODEL_BLOCK;
        uint8_t len = chance(50) ? 32 : (uint8_t) below(33);
        uint32_t ip = r->model.n_endpoints && chance(80)
                          ? r->endpoints[below(r->model.n_endpoints)].ip
                          : (uint32_t) random_bits();
        p->block = (struct ip4_prefix){ip & prefix_mask(len), len};
        for (size_t n = admin || len == 32 ? 0 : below(3); n > 0; n--) {
            uint8_t longer = (uint8_t) (len + 1 + below(32 - len));
            uint32_t within = r->model.n_endpoints && chance(70)
                                  ? r->endpoints[below(r->model.n_endpoints)].ip
                                  : (uint32_t) random_bits();
            if (!prefix_contains(p->block, within)) {
                within = p->block.addr | (within & ~prefix_mask(len));
            }
            p->excepts[p->n_excepts++] = (struct ip4_prefix){within & prefix_mask(longer), longer};
        }
    } else if (kind < 40 && admin && egress) {
        p->kind = MODEL_NODES;
        random_selector(&p->pods, 30);
    } else {
        p->own_namespace = !admin && chance(40);
        if (!p->own_namespace) {
            random_selector(&p->namespaces, 40);
        }
        random_selector(&p->pods, 30);
    }
}

static void random_port(struct model_port *p, bool admin)
{
    *p = (struct model_port){.proto = PICK(protocols)};
    unsigned kind = below(100);
    if (kind < 30) {
        p->name = PICK(port_names);
        p->proto = admin ? 0 : p->proto;
    } else if (kind < 60 || (admin && kind < 75)) {
        p->first = p->last = PICK(numbers);
    } else if (kind < 85 || admin) {
        uint16_t a = chance(50) ? PICK(numbers) : (uint16_t) (1 + below(65535));
        uint16_t b = chance(50) ? PICK(numbers) : (uint16_t) (1 + below(65535));
        p->first = MIN(a, b);
        p->last = MAX(a, b);
        if (admin && p->first == p->last) {
            p->last = (uint16_t) (p->first == UINT16_MAX ? p->first-- : p->first + 1);
        }
    }
}

static void random_policy(const struct random_policies *r, struct model_policy *p)
{
    unsigned kind = below(100);
    const char *name = p->name;
    *p = (struct model_policy){.name = name, .ns = PICK(ns_names)};
    p->kind = kind < 60   ? MODEL_NETWORK_POLICY
              : kind < 90 ? MODEL_ADMIN_POLICY
                          : MODEL_BASELINE_POLICY;
    bool admin = p->kind != MODEL_NETWORK_POLICY;
    p->broken = chance(5);
    p->priority = p->kind == MODEL_ADMIN_POLICY ? (int) below(4) : 0;
    p->subject = (struct model_peer){.kind = MODEL_PODS, .own_namespace = !admin};
    if (admin) {
        random_selector(&p->subject.namespaces, 40);
    }
    random_selector(&p->subject.pods, 45);
    for (int way = 0; way < 2; way++) {
        p->ways[way] = chance(65);
        for (size_t n = p->ways[way] ? below(MODEL_MAX_RULES + 1) : 0; n > 0; n--) {
            struct model_rule *rule = &p->rules[way][p->n_rules[way]++];
            rule->action = p->kind == MODEL_ADMIN_POLICY ? (enum model_policy_action) below(3)
                           : admin                       ? (enum model_policy_action) below(2)
                                                         : MODEL_ALLOW;
            for (size_t k = admin ? 1 + below(2) : below(3); k > 0; k--) {
                random_peer(r, &rule->peers[rule->n_peers++], admin, way == MODEL_EGRESS);
            }
            for (size_t k = below(3); k > 0; k--) {
                random_port(&rule->ports[rule->n_ports++], admin);
            }
        }
    }
    if (!p->ways[0] && !p->ways[1]) {
        p->ways[MODEL_INGRESS] = true;
    }
}

void random_policies_make(struct random_policies *r)
{
    bool baseline = false;
    for (size_t i = 0, n = below(RANDOM_POLICIES + 1); i < n; i++) {
        struct model_policy *p = &r->policies[i];
        snprintf(r->policy_names[i], sizeof r->policy_names[i], "p%zu", i);
        p->name = r->policy_names[i];
        random_policy(r, p);
        while (p->kind == MODEL_BASELINE_POLICY && baseline) {
            random_policy(r, p); /* There is one. */
        }
        if (p->kind == MODEL_BASELINE_POLICY) {
            baseline = true;
            p->name = "default";
        }
        r->model.n_policies++;
    }
}

/* ---- as JSON ---- */

static void put_labels(struct strbuf *b, const struct model_label *l, size_t n)
{
    strbuf_adds(b, "{");
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(b, "%s\"%s\":\"%s\"", i ? "," : "", l[i].key, l[i].value);
    }
    strbuf_adds(b, "}");
}

static void put_selector(struct strbuf *b, const struct model_selector *s)
{
    static const char *const ops[] = {"In", "NotIn", "Exists", "DoesNotExist"};
    /* A single "key in (value)" as matchLabels, as people write it. */
    const struct model_requirement *only = s->n == 1 ? &s->list[0] : NULL;
    if (only && only->op == MODEL_IN && only->n_values == 1) {
        strbuf_addf(b, "{\"matchLabels\":{\"%s\":\"%s\"}}", only->key, only->values[0]);
        return;
    }
    strbuf_adds(b, "{\"matchExpressions\":[");
    for (size_t i = 0; i < s->n; i++) {
        const struct model_requirement *r = &s->list[i];
        strbuf_addf(b, "%s{\"key\":\"%s\",\"operator\":\"%s\",\"values\":[", i ? "," : "", r->key,
                    ops[r->op]);
        for (size_t k = 0; k < r->n_values; k++) {
            strbuf_addf(b, "%s\"%s\"", k ? "," : "", r->values[k]);
        }
        strbuf_adds(b, "]}");
    }
    strbuf_adds(b, "]}");
}

static void put_peer(struct strbuf *b, const struct model_peer *p, bool admin)
{
    if (p->kind == MODEL_BLOCK && admin) {
        strbuf_addf(b, "{\"networks\":[\"%s\"]}", PREFIX_TEXT(p->block));
    } else if (p->kind == MODEL_BLOCK) {
        strbuf_addf(b, "{\"ipBlock\":{\"cidr\":\"%s\",\"except\":[", PREFIX_TEXT(p->block));
        for (size_t i = 0; i < p->n_excepts; i++) {
            strbuf_addf(b, "%s\"%s\"", i ? "," : "", PREFIX_TEXT(p->excepts[i]));
        }
        strbuf_adds(b, "]}}");
    } else if (p->kind == MODEL_NODES) {
        strbuf_adds(b, "{\"nodes\":");
        put_selector(b, &p->pods);
        strbuf_adds(b, "}");
    } else if (admin && p->pods.n == 0) {
        strbuf_adds(b, "{\"namespaces\":");
        put_selector(b, &p->namespaces);
        strbuf_adds(b, "}");
    } else {
        strbuf_adds(b, admin ? "{\"pods\":{" : "{");
        if (!p->own_namespace) {
            strbuf_adds(b, "\"namespaceSelector\":");
            put_selector(b, &p->namespaces);
        }
        if (p->own_namespace || p->pods.n || admin) {
            strbuf_adds(b, p->own_namespace ? "\"podSelector\":" : ",\"podSelector\":");
            put_selector(b, &p->pods);
        }
        strbuf_adds(b, admin ? "}}" : "}");
    }
}

static const char *proto_name(uint8_t proto)
{
    return proto == 6 ? "TCP" : proto == 17 ? "UDP" : "SCTP";
}

static void put_port(struct strbuf *b, const struct model_port *p, bool admin)
{
    const char *proto = proto_name(p->proto);
    if (p->name && admin) {
        strbuf_addf(b, "{\"namedPort\":\"%s\"}", p->name);
    } else if (p->name) {
        strbuf_addf(b, "{\"protocol\":\"%s\",\"port\":\"%s\"}", proto, p->name);
    } else if (admin && p->first == p->last) {
        strbuf_addf(b, "{\"portNumber\":{\"protocol\":\"%s\",\"port\":%u}}", proto, p->first);
    } else if (admin) {
        strbuf_addf(b, "{\"portRange\":{\"protocol\":\"%s\",\"start\":%u,\"end\":%u}}", proto,
                    p->first, p->last);
    } else if (p->first == 0) {
        strbuf_addf(b, "{\"protocol\":\"%s\"}", proto);
    } else {
        strbuf_addf(b, "{\"protocol\":\"%s\",\"port\":%u", proto, p->first);
        strbuf_addf(b, p->first == p->last ? "}" : ",\"endPort\":%u}", p->last);
    }
}

static void put_rules(struct strbuf *b, const struct model_policy *p, enum model_way way)
{
    static const char *const actions[] = {"Allow", "Deny", "Pass"};
    bool admin = p->kind != MODEL_NETWORK_POLICY;
    strbuf_addf(b, ",\"%s\":[", way == MODEL_EGRESS ? "egress" : "ingress");
    for (size_t i = 0; i < p->n_rules[way]; i++) {
        const struct model_rule *r = &p->rules[way][i];
        strbuf_adds(b, i ? ",{" : "{");
        if (admin) {
            strbuf_addf(b, "\"action\":\"%s\",", actions[r->action]);
        }
        strbuf_addf(b, "\"%s\":[", way == MODEL_EGRESS ? "to" : "from");
        for (size_t k = 0; k < r->n_peers; k++) {
            strbuf_adds(b, k ? "," : "");
            put_peer(b, &r->peers[k], admin);
        }
        strbuf_adds(b, "],\"ports\":[");
        for (size_t k = 0; k < r->n_ports; k++) {
            strbuf_adds(b, k ? "," : "");
            put_port(b, &r->ports[k], admin);
        }
        strbuf_adds(b, "]}");
    }
    if (p->broken) {
        strbuf_addf(b, "%s{\"ports\":[{\"port\":70000}]}", p->n_rules[way] ? "," : "");
    }
    strbuf_adds(b, "]");
}

static void put_policy(struct strbuf *b, const struct model_policy *p)
{
    bool admin = p->kind != MODEL_NETWORK_POLICY;
    strbuf_adds(b, "{\"spec\":{");
    if (admin) {
        strbuf_addf(b, "\"priority\":%d,\"subject\":", p->priority);
        put_peer(b, &p->subject, true);
    } else {
        strbuf_adds(b, "\"podSelector\":");
        put_selector(b, &p->subject.pods);
        strbuf_addf(b, ",\"policyTypes\":[%s%s%s]", p->ways[MODEL_INGRESS] ? "\"Ingress\"" : "",
                    p->ways[0] && p->ways[1] ? "," : "", p->ways[MODEL_EGRESS] ? "\"Egress\"" : "");
    }
    if (p->ways[MODEL_INGRESS] || admin) {
        put_rules(b, p, MODEL_INGRESS);
    }
    if (p->ways[MODEL_EGRESS] || admin) {
        put_rules(b, p, MODEL_EGRESS);
    }
    strbuf_adds(b, "}}");
}

static struct json *parse(struct strbuf *b)
{
    struct json *v = NULL;
    struct err e = {0};
    if (json_parse(b->data, b->size, &v, &e) < 0) {
        fprintf(stderr, "%s: %s\n", b->data, e.text);
        abort();
    }
    strbuf_done(b);
    return v;
}

/* ---- telling ---- */

static void tell_policy(const struct model_policy *p, struct policy *to)
{
    struct strbuf b = STRBUF_INIT;
    struct err e = {0};
    put_policy(&b, p);
    CLEANUP_FREE char *text = xstrdup(b.data);
    CLEANUP(json_free) struct json *obj = parse(&b);
    int r = policy_set_object(to, (enum policy_kind) p->kind, p->ns, p->name, obj, &e);
    if ((r < 0) != p->broken) {
        fprintf(stderr, "%s: %s\n", text, e.text);
        abort();
    }
}

static void tell_namespace(const struct model_namespace *ns, struct policy *to)
{
    struct strbuf b = STRBUF_INIT;
    strbuf_adds(&b, "{\"metadata\":{\"labels\":");
    put_labels(&b, ns->labels, ns->n_labels);
    strbuf_adds(&b, "}}");
    CLEANUP(json_free) struct json *obj = parse(&b);
    policy_set_namespace(to, ns->name, obj);
}

static void tell_endpoint(const struct model_endpoint *e, size_t i, bool local, struct policy *to)
{
    char name[16];
    struct strbuf b = STRBUF_INIT;
    snprintf(name, sizeof name, "e%zu", i);
    if (local && chance(50)) {
        policy_attach(to, e->ip, e->ns, name);
        local = false;
    }
    if (!e->unknown) {
        strbuf_adds(&b, "{\"metadata\":{\"labels\":");
        put_labels(&b, e->labels, e->n_labels);
        strbuf_adds(&b, "},\"spec\":{\"containers\":[{\"ports\":[");
        for (size_t k = 0; k < e->n_ports; k++) {
            strbuf_addf(&b, "%s{\"name\":\"%s\",\"containerPort\":%u,\"protocol\":\"%s\"}",
                        k ? "," : "", e->ports[k].name, e->ports[k].number,
                        proto_name(e->ports[k].proto));
        }
        strbuf_addf(&b,
                    "]}]},\"status\":{\"podIP\":\"%s\",\"addresses\":[{\"type\":\"InternalIP\","
                    "\"address\":\"%s\"}]}}",
                    IP4_TEXT(e->ip), IP4_TEXT(e->ip));
        CLEANUP(json_free) struct json *obj = parse(&b);
        if (e->ns) {
            policy_set_pod(to, e->ns, name, obj);
        } else {
            policy_set_node(to, name, obj);
        }
    }
    if (local) {
        policy_attach(to, e->ip, e->ns, name);
    }
}

static void tell_one(const struct random_policies *r, size_t i, struct policy *p)
{
    const struct model_policies *m = &r->model;
    if (i < m->n_policies) {
        tell_policy(&r->policies[i], p);
    } else if ((i -= m->n_policies) < m->n_namespaces) {
        tell_namespace(&r->namespaces[i], p);
    } else {
        i -= m->n_namespaces;
        tell_endpoint(&r->endpoints[i], i, r->local[i], p);
    }
}

void random_policies_tell(const struct random_policies *r, struct policy *p)
{
    const struct model_policies *m = &r->model;
    size_t n = m->n_policies + m->n_namespaces + m->n_endpoints, order[128];
    for (size_t i = 0; i < n; i++) {
        order[i] = i;
    }
    for (size_t i = n; i > 1; i--) {
        size_t k = below(i), x = order[k];
        order[k] = order[i - 1];
        order[i - 1] = x;
    }
    for (size_t i = 0; i < n; i++) {
        tell_one(r, order[i], p);
        if (chance(10)) {
            policy_compile(p);
        }
    }
    policy_compile(p);
}

/* As 'e', but for some of it. */
static struct model_endpoint other_endpoint(const struct model_endpoint *e)
{
    struct model_endpoint x = *e;
    x.n_labels = chance(70) ? random_labels(x.labels) : x.n_labels;
    x.ip += chance(30) ? 1 + below(3) : 0;
    x.n_ports = chance(50) ? below(x.n_ports + 1) : x.n_ports;
    return x;
}

void random_policies_mislead(const struct random_policies *r, struct policy *p)
{
    const struct model_policies *m = &r->model;
    uint32_t attached[RANDOM_ENDPOINTS] = {0};
    for (size_t steps = 20 + below(60); steps > 0; steps--) {
        size_t i = below(m->n_policies + m->n_namespaces + m->n_endpoints + 1);
        if (i == 0) {
            policy_compile(p);
        } else if ((i -= 1) < m->n_policies) {
            const struct model_policy *real = &r->policies[i];
            struct model_policy x = {.name = real->name};
            do {
                random_policy(r, &x);
            } while (x.kind != real->kind);
            x.ns = chance(70) ? real->ns : x.ns;
            tell_policy(&x, p);
            if (!streq(x.ns, real->ns) || chance(30)) {
                policy_delete_object(p, (enum policy_kind) x.kind, x.ns, x.name);
            }
        } else if ((i -= m->n_policies) < m->n_namespaces) {
            struct model_namespace x = r->namespaces[i];
            x.n_labels = random_labels(x.labels);
            tell_namespace(&x, p);
            if (chance(20)) {
                policy_delete_namespace(p, x.name);
            }
        } else {
            i -= m->n_namespaces;
            struct model_endpoint x = other_endpoint(&r->endpoints[i]);
            char name[16];
            snprintf(name, sizeof name, "e%zu", i);
            x.unknown = r->endpoints[i].unknown;
            tell_endpoint(&x, i, r->local[i], p);
            attached[i] = r->local[i] && x.ip != r->endpoints[i].ip ? x.ip : attached[i];
            if (attached[i]) {
                policy_detach(p, attached[i]);
                attached[i] = 0;
            }
            if (chance(25) && x.ns) {
                policy_delete_pod(p, x.ns, name);
            } else if (chance(25) && !x.ns) {
                policy_delete_node(p, name);
            }
        }
    }
}

/* ---- groups ---- */

struct group {
    struct hmap_node node;
    uint64_t cookie;
    struct of_flow_list flows;
};

static struct group *find(const struct group_store *s, uint64_t cookie)
{
    struct group *g;
    HMAP_FOREACH_WITH_HASH (g, struct group, node, hash32(&cookie, sizeof cookie), &s->groups) {
        if (g->cookie == cookie) {
            return g;
        }
    }
    return NULL;
}

static void set_group(void *ctx, uint64_t cookie, struct of_flow_list *flows)
{
    struct group_store *s = ctx;
    struct group *g = find(s, cookie);
    if (!g && flows->n) {
        g = NEW(struct group);
        g->cookie = cookie;
        hmap_insert(&s->groups, &g->node, hash32(&cookie, sizeof cookie));
    }
    if (g) {
        of_flow_list_done(&g->flows);
        g->flows = *flows;
        *flows = (struct of_flow_list){0};
        if (!g->flows.n) {
            of_flow_list_done(&g->flows);
            hmap_remove(&s->groups, &g->node);
            free(g);
        }
    }
}

const struct policy_flow_ops group_store_ops = {.set_group = set_group};

void group_store_init(struct group_store *s)
{
    hmap_init(&s->groups);
}

void group_store_done(struct group_store *s)
{
    struct group *g;
    HMAP_FOREACH (g, struct group, node, &s->groups) {
        of_flow_list_done(&g->flows);
        hmap_remove(&s->groups, &g->node);
        free(g);
    }
    hmap_done(&s->groups);
}

size_t group_store_count(const struct group_store *s)
{
    const struct group *g;
    size_t n = 0;
    HMAP_FOREACH (g, struct group, node, &s->groups) {
        n += g->flows.n;
    }
    return n;
}

void group_store_flows(const struct group_store *s, struct of_flow_list *out)
{
    const struct group *g;
    HMAP_FOREACH (g, struct group, node, &s->groups) {
        for (size_t i = 0; i < g->flows.n; i++) {
            of_flow_list_add(out, of_flow_clone(g->flows.flows[i]));
        }
    }
}

static bool has_flow(const struct group *g, const struct of_flow *f)
{
    for (size_t i = 0; g && i < g->flows.n; i++) {
        if (of_flow_equal(g->flows.flows[i], f)) {
            return true;
        }
    }
    return false;
}

bool group_store_equal(const struct group_store *a, const struct group_store *b)
{
    const struct group *g;
    if (group_store_count(a) != group_store_count(b)) {
        fprintf(stderr, "%zu flows, not %zu\n", group_store_count(a), group_store_count(b));
        return false;
    }
    HMAP_FOREACH (g, struct group, node, &a->groups) {
        for (size_t i = 0; i < g->flows.n; i++) {
            if (!has_flow(find(b, g->cookie), g->flows.flows[i])) {
                fprintf(stderr, "flow of cookie %lx in table %u differs\n",
                        (unsigned long) g->cookie, g->flows.flows[i]->table);
                return false;
            }
        }
    }
    return true;
}
