/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/policy_spec.h"

#include "base/mem.h"

#include <stdio.h>

#define PROTO_TCP 6
#define PROTO_UDP 17
#define PROTO_SCTP 132

static bool is_absent(const struct json *v)
{
    return !v || json_is(v, JSON_NULL);
}

/* ---- selectors ---- */

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

static void selector_done(struct label_pool *pool, struct selector *s)
{
    for (size_t i = 0; i < s->n_pairs; i++) {
        label_unref(pool, s->pairs[i]);
    }
    for (size_t i = 0; i < s->n_exprs; i++) {
        for (size_t k = 0; k < s->exprs[i].n_values; k++) {
            free(s->exprs[i].values[k]);
        }
        free(s->exprs[i].values);
        free(s->exprs[i].key);
    }
    free(s->pairs);
    free(s->exprs);
    *s = (struct selector){0};
}

static int compare_pairs(const void *a, const void *b)
{
    return strcmp((*(struct label *const *) a)->text, (*(struct label *const *) b)->text);
}

static int compare_exprs(const void *a, const void *b)
{
    const struct selector_expr *x = a, *y = b;
    int c = strcmp(x->key, y->key);
    if (c == 0) {
        c = (int) x->op - (int) y->op;
    }
    for (size_t i = 0; c == 0 && (i < x->n_values || i < y->n_values); i++) {
        c = i >= x->n_values ? -1 : i >= y->n_values ? 1 : strcmp(x->values[i], y->values[i]);
    }
    return c;
}

static int parse_expr(const struct json *v, struct selector_expr *x, struct err *e)
{
    static const char *const names[] = {[SELECTOR_IN] = "In",
                                        [SELECTOR_NOT_IN] = "NotIn",
                                        [SELECTOR_EXISTS] = "Exists",
                                        [SELECTOR_NOT_EXISTS] = "DoesNotExist"};
    const char *op = json_path_string(v, "operator", NULL);
    const char *key = json_path_string(v, "key", NULL);
    size_t which = 0;
    while (op && which < ARRAY_SIZE(names) && !streq(op, names[which])) {
        which++;
    }
    if (!key || !*key) {
        return err_set(e, -EINVAL, "key: is missing");
    }
    if (!op || which == ARRAY_SIZE(names)) {
        return err_set(e, -EINVAL, "operator: is none of In, NotIn, Exists and DoesNotExist");
    }
    const struct json *values = json_get(v, "values");
    bool needs = which == SELECTOR_IN || which == SELECTOR_NOT_IN;
    if (!is_absent(values) && !json_is(values, JSON_ARRAY)) {
        return err_set(e, -EINVAL, "values: is not a list");
    }
    if (needs != (json_count(values) > 0)) {
        return err_set(e, -EINVAL, "values: %s", needs ? "is missing" : "is not for this operator");
    }
    x->op = (enum selector_op) which;
    x->key = xstrdup(key);
    x->values = xcalloc(json_count(values) + 1, sizeof *x->values);
    for (size_t i = 0; i < json_count(values); i++) {
        const char *s = json_get_string(json_at(values, i));
        if (!s) {
            return err_set(e, -EINVAL, "values[%zu]: is not a string", i);
        }
        x->values[x->n_values++] = xstrdup(s);
    }
    qsort(x->values, x->n_values, sizeof *x->values, compare_strings);
    return 0;
}

/* 'v' NULL: selects all. */
static int parse_selector(struct label_pool *pool, const struct json *v, struct selector *s,
                          struct err *e)
{
    const struct json *map = json_get(v, "matchLabels"), *list = json_get(v, "matchExpressions");
    if (v && !json_is(v, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "is not a label selector");
    }
    if (!is_absent(map) && !json_is(map, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "matchLabels: is not an object");
    }
    if (!is_absent(list) && !json_is(list, JSON_ARRAY)) {
        return err_set(e, -EINVAL, "matchExpressions: is not a list");
    }
    s->pairs = xcalloc(json_count(map) + 1, sizeof(struct label *));
    s->exprs = xcalloc(json_count(list) + 1, sizeof *s->exprs);
    for (size_t i = 0; i < json_count(map); i++) {
        const char *value = json_get_string(json_at(map, i));
        if (!value) {
            return err_set(e, -EINVAL, "matchLabels[%s]: is not a string", json_key_at(map, i));
        }
        s->pairs[s->n_pairs++] = label_get(pool, json_key_at(map, i), value);
    }
    qsort(s->pairs, s->n_pairs, sizeof(struct label *), compare_pairs);
    for (size_t i = 0; i < json_count(list); i++) {
        int r = parse_expr(json_at(list, i), &s->exprs[s->n_exprs++], e);
        if (r < 0) {
            return err_prefix(e, "matchExpressions[%zu]", i);
        }
    }
    qsort(s->exprs, s->n_exprs, sizeof *s->exprs, compare_exprs);
    return 0;
}

static void selector_text(const struct selector *s, struct strbuf *out)
{
    for (size_t i = 0; i < s->n_pairs; i++) {
        strbuf_addf(out, "%s=%s,", s->pairs[i]->text, s->pairs[i]->text + s->pairs[i]->value_at);
    }
    for (size_t i = 0; i < s->n_exprs; i++) {
        const struct selector_expr *x = &s->exprs[i];
        strbuf_addf(out, "%s %d(", x->key, (int) x->op);
        for (size_t k = 0; k < x->n_values; k++) {
            strbuf_addf(out, "%s,", x->values[k]);
        }
        strbuf_adds(out, "),");
    }
}

/* ---- who ---- */

struct policy_who *policy_who_unref(struct label_pool *pool, struct policy_who *w)
{
    if (w && --w->refs == 0) {
        selector_done(pool, &w->namespaces);
        selector_done(pool, &w->pods);
        free(w->ns);
        free(w->scope_text);
        free(w->pods_text);
        free(w);
    }
    return NULL;
}

static void who_settle(struct policy_who *w)
{
    struct strbuf scope = STRBUF_INIT, pods = STRBUF_INIT;
    if (w->nodes) {
        strbuf_adds(&scope, "nodes");
    } else if (w->ns) {
        strbuf_addf(&scope, "/%s", w->ns);
    } else {
        strbuf_adds(&scope, "select ");
        selector_text(&w->namespaces, &scope);
    }
    selector_text(&w->pods, &pods);
    w->scope_text = strbuf_steal(&scope);
    w->pods_text = strbuf_steal(&pods);
}

/* Selects by 'namespaces' and 'pods', where NULL selects all; 'ns' NULL: use 'namespaces'. */
static int make_who(struct label_pool *pool, const char *ns, const struct json *namespaces,
                    const char *namespaces_field, const struct json *pods, const char *pods_field,
                    struct policy_who **ret, struct err *e)
{
    struct policy_who *w = NEW(struct policy_who);
    w->refs = 1;
    w->ns = ns ? xstrdup(ns) : NULL;
    int r = ns ? 0 : parse_selector(pool, namespaces, &w->namespaces, e);
    if (r < 0) {
        err_prefix(e, "%s", namespaces_field);
    } else if ((r = parse_selector(pool, pods, &w->pods, e)) < 0) {
        err_prefix(e, "%s", pods_field);
    }
    if (r < 0) {
        policy_who_unref(pool, w);
        return r;
    }
    who_settle(w);
    *ret = w;
    return 0;
}

/* ---- ranges ---- */

struct range {
    uint64_t key; /* Ranges merge only when it is equal: the protocol. */
    uint32_t first, last;
};
struct ranges {
    struct range *list;
    size_t n, cap;
};

static void add_range(struct ranges *r, uint64_t key, uint32_t first, uint32_t last)
{
    r->list = grow(r->list, &r->cap, r->n + 1, sizeof *r->list);
    r->list[r->n++] = (struct range){key, first, last};
}

static int compare_ranges(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    return x->key != y->key       ? (x->key < y->key ? -1 : 1)
           : x->first != y->first ? (x->first < y->first ? -1 : 1)
                                  : 0;
}

/* Sorts, and merges ranges that touch each other. */
static void merge_ranges(struct ranges *r)
{
    size_t n = 0;
    if (r->n) {
        qsort(r->list, r->n, sizeof *r->list, compare_ranges);
    }
    for (size_t i = 0; i < r->n; i++) {
        struct range *last = n ? &r->list[n - 1] : NULL;
        if (last && last->key == r->list[i].key && r->list[i].first <= (uint64_t) last->last + 1) {
            last->last = MAX(last->last, r->list[i].last);
        } else {
            r->list[n++] = r->list[i];
        }
    }
    r->n = n;
}

/* Adds 'p' without the parts in 'holes' (merged). */
static void add_prefix_without(struct ranges *r, struct ip4_prefix p, const struct ranges *holes)
{
    uint64_t at = p.addr, last = prefix_last(p);
    for (size_t i = 0; i < holes->n && at <= last; i++) {
        const struct range *h = &holes->list[i];
        if (h->last < at || h->first > last) {
            continue;
        }
        if (h->first > at) {
            add_range(r, 0, (uint32_t) at, h->first - 1);
        }
        at = (uint64_t) h->last + 1;
    }
    if (at <= last) {
        add_range(r, 0, (uint32_t) at, (uint32_t) last);
    }
}

void range_to_blocks(uint32_t first, uint32_t last, unsigned bits,
                     void (*fn)(void *ctx, uint32_t value, unsigned len), void *ctx)
{
    uint64_t at = first;
    while (at <= last) {
        unsigned free_bits = 0;
        while (free_bits < bits && (at & ((UINT64_C(2) << free_bits) - 1)) == 0 &&
               at + (UINT64_C(2) << free_bits) - 1 <= last) {
            free_bits++;
        }
        fn(ctx, (uint32_t) at, bits - free_bits);
        at += UINT64_C(1) << free_bits;
    }
}

/* ---- peers ---- */

/* A CIDR with host bits allowed; 1: IPv6, which no pod here has. */
static int parse_cidr(const struct json *v, struct ip4_prefix *ret, struct err *e)
{
    const char *s = json_get_string(v);
    if (!s) {
        return err_set(e, -EINVAL, "is not a CIDR");
    }
    if (strchr(s, ':')) {
        return 1;
    }
    int r = prefix_parse_host(s, ret, e);
    if (r == 0) {
        ret->addr &= prefix_mask(ret->len);
    }
    return r;
}

static int parse_ip_block(const struct json *v, struct ranges *ret, struct err *e)
{
    struct ip4_prefix p, hole;
    struct ranges holes = {0};
    const struct json *except = json_get(v, "except");
    int r = parse_cidr(json_get(v, "cidr"), &p, e);
    if (r < 0) {
        return err_prefix(e, "cidr");
    }
    if (!is_absent(except) && !json_is(except, JSON_ARRAY)) {
        return err_set(e, -EINVAL, "except: is not a list");
    }
    bool ours = r == 0;
    for (size_t i = 0; i < json_count(except); i++) {
        r = parse_cidr(json_at(except, i), &hole, e);
        if (r < 0) {
            free(holes.list);
            return err_prefix(e, "except[%zu]", i);
        }
        if (r == 0) {
            add_range(&holes, 0, hole.addr, prefix_last(hole));
        }
    }
    merge_ranges(&holes);
    if (ours) {
        add_prefix_without(ret, p, &holes);
    }
    free(holes.list);
    return 0;
}

static void add_block(void *ctx, uint32_t value, unsigned len)
{
    struct policy_rule_spec *rule = ctx;
    rule->blocks[rule->n_blocks++] = (struct ip4_prefix){value, (uint8_t) len};
}

static void count_block(void *ctx, uint32_t value, unsigned len)
{
    ++*(size_t *) ctx;
}

static void take_blocks(struct policy_rule_spec *rule, struct ranges *r)
{
    size_t n = 0;
    merge_ranges(r);
    for (size_t i = 0; i < r->n; i++) {
        range_to_blocks(r->list[i].first, r->list[i].last, 32, count_block, &n);
    }
    rule->blocks = xcalloc(n + 1, sizeof *rule->blocks);
    for (size_t i = 0; i < r->n; i++) {
        range_to_blocks(r->list[i].first, r->list[i].last, 32, add_block, rule);
    }
}

/* One peer of NetworkPolicy. */
static int parse_peer(struct label_pool *pool, const char *ns, const struct json *v,
                      struct policy_rule_spec *rule, struct ranges *blocks, struct err *e)
{
    const struct json *pods = json_get(v, "podSelector"), *block = json_get(v, "ipBlock");
    const struct json *namespaces = json_get(v, "namespaceSelector");
    if (!is_absent(block)) {
        if (!is_absent(pods) || !is_absent(namespaces)) {
            return err_set(e, -EINVAL, "has ipBlock and another peer");
        }
        return parse_ip_block(block, blocks, e) < 0 ? err_prefix(e, "ipBlock") : 0;
    }
    if (is_absent(pods) && is_absent(namespaces)) {
        return err_set(e, -EINVAL, "names no peer");
    }
    bool own = is_absent(namespaces);
    int r = make_who(pool, own ? ns : NULL, own ? NULL : namespaces, "namespaceSelector",
                     is_absent(pods) ? NULL : pods, "podSelector", &rule->peers[rule->n_peers], e);
    rule->n_peers += r == 0;
    return r;
}

/* A subject or peer of the administrator's kinds: pods or namespaces. */
static int parse_admin_who(struct label_pool *pool, const struct json *v, struct policy_who **ret,
                           struct err *e)
{
    const struct json *pods = json_get(v, "pods"), *namespaces = json_get(v, "namespaces");
    if (is_absent(pods) == is_absent(namespaces)) {
        return err_set(e, -EINVAL, "must have one of namespaces and pods");
    }
    if (is_absent(pods)) {
        return make_who(pool, NULL, namespaces, "namespaces", NULL, "", ret, e);
    }
    if (!json_get(pods, "namespaceSelector") || !json_get(pods, "podSelector")) {
        return err_set(e, -EINVAL, "pods: needs namespaceSelector and podSelector");
    }
    return make_who(pool, NULL, json_get(pods, "namespaceSelector"), "pods.namespaceSelector",
                    json_get(pods, "podSelector"), "pods.podSelector", ret, e);
}

static int parse_admin_peer(struct label_pool *pool, const struct json *v, bool egress,
                            struct policy_rule_spec *rule, struct ranges *blocks, struct err *e)
{
    const struct json *networks = json_get(v, "networks"), *nodes = json_get(v, "nodes");
    struct ip4_prefix p;
    int r = 0;
    if (!egress || (is_absent(networks) && is_absent(nodes))) {
        r = parse_admin_who(pool, v, &rule->peers[rule->n_peers], e);
        rule->n_peers += r == 0;
        return r;
    }
    if (json_count(v) != 1) {
        return err_set(e, -EINVAL, "must have one of namespaces, pods, nodes and networks");
    }
    if (is_absent(networks)) {
        struct policy_who *w = NEW(struct policy_who);
        w->refs = 1;
        w->nodes = true;
        if ((r = parse_selector(pool, nodes, &w->pods, e)) < 0) {
            policy_who_unref(pool, w);
            return err_prefix(e, "nodes");
        }
        who_settle(w);
        rule->peers[rule->n_peers++] = w;
        return 0;
    }
    if (!json_is(networks, JSON_ARRAY)) {
        return err_set(e, -EINVAL, "networks: is not a list");
    }
    for (size_t i = 0; i < json_count(networks); i++) {
        r = parse_cidr(json_at(networks, i), &p, e);
        if (r < 0) {
            return err_prefix(e, "networks[%zu]", i);
        }
        if (r == 0) {
            add_range(blocks, 0, p.addr, prefix_last(p));
        }
    }
    return 0;
}

/* ---- ports ---- */

static int parse_protocol(const struct json *v, uint8_t *ret, struct err *e)
{
    const char *s = json_get_string(v);
    if (is_absent(v) || streq_null(s, "TCP")) {
        *ret = PROTO_TCP;
    } else if (streq_null(s, "UDP")) {
        *ret = PROTO_UDP;
    } else if (streq_null(s, "SCTP")) {
        *ret = PROTO_SCTP;
    } else {
        return err_set(e, -EINVAL, "protocol: is none of TCP, UDP and SCTP");
    }
    return 0;
}

static int parse_port_number(const struct json *v, const char *field, uint16_t *ret, struct err *e)
{
    int64_t n;
    if (json_get_int(v, &n) < 0 || n < 1 || n > UINT16_MAX) {
        return err_set(e, -EINVAL, "%s: is not in 1-65535", field);
    }
    *ret = (uint16_t) n;
    return 0;
}

static int add_named(struct policy_rule_spec *rule, uint8_t proto, const struct json *v,
                     const char *field, struct err *e)
{
    struct policy_port_name *named = &rule->named[rule->n_named];
    size_t n = json_string_size(v);
    if (n == 0 || n >= sizeof named->name) {
        return err_set(e, -EINVAL, "%s: is not the name of a port", field);
    }
    *named = (struct policy_port_name){.proto = proto};
    memcpy(named->name, json_get_string(v), n);
    for (size_t i = 0; i < rule->n_named; i++) {
        if (rule->named[i].proto == proto && streq(rule->named[i].name, named->name)) {
            return 0;
        }
    }
    rule->n_named++;
    return 0;
}

static int parse_port(const struct json *v, struct policy_rule_spec *rule, struct ranges *ports,
                      struct err *e)
{
    const struct json *port = json_get(v, "port"), *end = json_get(v, "endPort");
    uint8_t proto;
    uint16_t first = 0, last = UINT16_MAX;
    if (!json_is(v, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "is not an object");
    }
    int r = parse_protocol(json_get(v, "protocol"), &proto, e);
    if (r < 0) {
        return r;
    }
    if (!is_absent(end) && !json_is(port, JSON_NUMBER)) {
        return err_set(e, -EINVAL, "endPort: goes with a number in port only");
    }
    if (json_is(port, JSON_STRING)) {
        return add_named(rule, proto, port, "port", e);
    }
    if (!is_absent(port)) {
        r = parse_port_number(port, "port", &first, e);
        last = first;
        if (r == 0 && !is_absent(end)) {
            r = parse_port_number(end, "endPort", &last, e);
        }
        if (r == 0 && last < first) {
            r = err_set(e, -EINVAL, "endPort: is less than port");
        }
    }
    if (r == 0) {
        add_range(ports, proto, first, last);
    }
    return r;
}

static int parse_admin_port(const struct json *v, struct policy_rule_spec *rule,
                            struct ranges *ports, struct err *e)
{
    const struct json *number = json_get(v, "portNumber"), *range = json_get(v, "portRange");
    const struct json *named = json_get(v, "namedPort");
    uint8_t proto;
    uint16_t first = 0, last = 0;
    if (is_absent(number) + is_absent(range) + is_absent(named) != 2) {
        return err_set(e, -EINVAL, "must have one of portNumber, portRange and namedPort");
    }
    if (!is_absent(named)) {
        return add_named(rule, 0, named, "namedPort", e);
    }
    int r = parse_protocol(json_get(is_absent(number) ? range : number, "protocol"), &proto, e);
    if (r == 0 && !is_absent(number)) {
        r = parse_port_number(json_get(number, "port"), "port", &first, e);
        last = first;
    } else if (r == 0) {
        r = parse_port_number(json_get(range, "start"), "start", &first, e);
        if (r == 0) {
            r = parse_port_number(json_get(range, "end"), "end", &last, e);
        }
        if (r == 0 && last < first) {
            r = err_set(e, -EINVAL, "end: is less than start");
        }
    }
    if (r < 0) {
        return err_prefix(e, is_absent(number) ? "portRange" : "portNumber");
    }
    add_range(ports, proto, first, last);
    return 0;
}

static void take_ports(struct policy_rule_spec *rule, struct ranges *r)
{
    merge_ranges(r);
    rule->ports = xcalloc(r->n + 1, sizeof *rule->ports);
    for (size_t i = 0; i < r->n; i++) {
        rule->ports[rule->n_ports++] = (struct policy_port_range){
            (uint8_t) r->list[i].key, (uint16_t) r->list[i].first, (uint16_t) r->list[i].last};
    }
}

/* ---- rules ---- */

static int parse_action(enum policy_kind kind, const struct json *v, enum policy_action *ret,
                        struct err *e)
{
    const char *s = json_get_string(v);
    if (streq_null(s, "Allow")) {
        *ret = POLICY_ALLOW;
    } else if (streq_null(s, "Deny")) {
        *ret = POLICY_DENY;
    } else if (streq_null(s, "Pass") && kind == POLICY_ADMIN) {
        *ret = POLICY_PASS;
    } else {
        return err_set(e, -EINVAL, "action: is none that this kind has");
    }
    return 0;
}

static int list_check(const struct json *v, const char *field, struct err *e)
{
    return is_absent(v) || json_is(v, JSON_ARRAY) ? 0
                                                  : err_set(e, -EINVAL, "%s: is not a list", field);
}

static int parse_rule(struct label_pool *pool, enum policy_kind kind, const char *ns, bool egress,
                      const struct json *v, struct policy_rule_spec *rule, struct err *e)
{
    const char *field = egress ? "to" : "from";
    const struct json *peers = json_get(v, field), *ports = json_get(v, "ports");
    bool admin = kind != POLICY_NETWORK;
    if (!json_is(v, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "is not an object");
    }
    int r = list_check(peers, field, e);
    if (r == 0) {
        r = list_check(ports, "ports", e);
    }
    if (r == 0 && admin) {
        const char *name = json_path_string(v, "name", NULL);
        rule->name = name && *name ? xstrdup(name) : NULL;
        r = parse_action(kind, json_get(v, "action"), &rule->action, e);
    }
    rule->any_peer = json_count(peers) == 0;
    rule->any_port = json_count(ports) == 0;
    if (r == 0 && admin && rule->any_peer) {
        r = err_set(e, -EINVAL, "%s: names no peer", field);
    }
    if (r < 0) {
        return r;
    }
    struct ranges blocks = {0}, numbers = {0};
    rule->peers = xcalloc(json_count(peers) + 1, sizeof(struct policy_who *));
    rule->named = xcalloc(json_count(ports) + 1, sizeof *rule->named);
    for (size_t i = 0; r == 0 && i < json_count(peers); i++) {
        const struct json *peer = json_at(peers, i);
        r = admin ? parse_admin_peer(pool, peer, egress, rule, &blocks, e)
                  : parse_peer(pool, ns, peer, rule, &blocks, e);
        if (r < 0) {
            err_prefix(e, "%s[%zu]", field, i);
        }
    }
    for (size_t i = 0; r == 0 && i < json_count(ports); i++) {
        const struct json *port = json_at(ports, i);
        r = admin ? parse_admin_port(port, rule, &numbers, e) : parse_port(port, rule, &numbers, e);
        if (r < 0) {
            err_prefix(e, "ports[%zu]", i);
        }
    }
    if (r == 0) {
        take_blocks(rule, &blocks);
        take_ports(rule, &numbers);
    }
    free(blocks.list);
    free(numbers.list);
    return r;
}

static void rules_done(struct label_pool *pool, struct policy_spec *s, enum policy_direction d)
{
    for (size_t i = 0; i < s->n_rules[d]; i++) {
        struct policy_rule_spec *rule = &s->rules[d][i];
        for (size_t k = 0; k < rule->n_peers; k++) {
            policy_who_unref(pool, rule->peers[k]);
        }
        free(rule->name);
        free(rule->peers);
        free(rule->blocks);
        free(rule->ports);
        free(rule->named);
    }
    free(s->rules[d]);
    s->rules[d] = NULL;
    s->n_rules[d] = 0;
}

void policy_spec_done(struct label_pool *pool, struct policy_spec *s)
{
    policy_who_unref(pool, s->subject);
    rules_done(pool, s, POLICY_EGRESS);
    rules_done(pool, s, POLICY_INGRESS);
    *s = (struct policy_spec){0};
}

static int parse_rules(struct label_pool *pool, struct policy_spec *s, const char *ns,
                       enum policy_direction d, const struct json *spec, struct err *e)
{
    const char *field = d == POLICY_EGRESS ? "egress" : "ingress";
    const struct json *list = json_get(spec, field);
    int r = list_check(list, field, e);
    if (r < 0 || !s->isolates[d]) {
        return r;
    }
    s->rules[d] = xcalloc(json_count(list) + 1, sizeof *s->rules[d]);
    for (size_t i = 0; i < json_count(list); i++) {
        s->n_rules[d]++;
        r = parse_rule(pool, s->kind, ns, d == POLICY_EGRESS, json_at(list, i), &s->rules[d][i], e);
        if (r < 0) {
            return err_prefix(e, "%s[%zu]", field, i);
        }
    }
    return 0;
}

static int parse_types(const struct json *spec, bool ret[2], struct err *e)
{
    const struct json *list = json_get(spec, "policyTypes"), *item;
    bool types[2] = {false, false};
    int r = list_check(list, "policyTypes", e);
    if (r < 0) {
        return r;
    }
    JSON_FOREACH (item, list) {
        if (streq_null(json_get_string(item), "Ingress")) {
            types[POLICY_INGRESS] = true;
        } else if (streq_null(json_get_string(item), "Egress")) {
            types[POLICY_EGRESS] = true;
        } else {
            return err_set(e, -EINVAL, "policyTypes: has what is neither Ingress nor Egress");
        }
    }
    if (json_count(list) == 0) {
        types[POLICY_INGRESS] = true;
        types[POLICY_EGRESS] = json_count(json_get(spec, "egress")) > 0;
    }
    ret[0] = types[0];
    ret[1] = types[1];
    return 0;
}

static int parse_head(struct label_pool *pool, const char *ns, const struct json *obj,
                      struct policy_spec *s, struct err *e)
{
    const struct json *spec = json_get(obj, "spec");
    if (!json_is(spec, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "is missing");
    }
    if (s->kind == POLICY_NETWORK) {
        const struct json *pods = json_get(spec, "podSelector");
        int r = make_who(pool, ns, NULL, "", is_absent(pods) ? NULL : pods, "podSelector",
                         &s->subject, e);
        return r < 0 ? r : parse_types(spec, s->isolates, e);
    }
    int r = parse_admin_who(pool, json_get(spec, "subject"), &s->subject, e);
    if (r < 0) {
        return err_prefix(e, "subject");
    }
    if (s->kind == POLICY_ADMIN) {
        int64_t n;
        if (json_get_int(json_get(spec, "priority"), &n) < 0 || n < 0 || n > 1000) {
            return err_set(e, -EINVAL, "priority: is not in 0-1000");
        }
        s->priority = (int) n;
    }
    return 0;
}

/* All pods that it could select. */
static struct policy_who *widest(const char *ns)
{
    struct policy_who *w = NEW(struct policy_who);
    w->refs = 1;
    w->ns = ns ? xstrdup(ns) : NULL;
    who_settle(w);
    return w;
}

struct policy_who *policy_who_everybody(void)
{
    return widest(NULL);
}

int policy_spec_parse(struct label_pool *pool, enum policy_kind kind, const char *ns,
                      const struct json *obj, struct policy_spec *ret, struct err *e)
{
    *ret = (struct policy_spec){.kind = kind, .isolates = {true, true}};
    ns = kind == POLICY_NETWORK ? ns : NULL;
    const struct json *spec = json_get(obj, "spec");
    int r = parse_head(pool, ns, obj, ret, e);
    if (r == 0) {
        r = parse_rules(pool, ret, ns, POLICY_INGRESS, spec, e);
    }
    if (r == 0) {
        r = parse_rules(pool, ret, ns, POLICY_EGRESS, spec, e);
    }
    if (r < 0) {
        err_prefix(e, "spec");
        rules_done(pool, ret, POLICY_EGRESS);
        rules_done(pool, ret, POLICY_INGRESS);
        if (!ret->subject) {
            ret->subject = widest(ns);
        }
    }
    return r;
}
