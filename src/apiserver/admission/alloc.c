/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/admission/alloc.h"

#include "api/kinds/kind_service.h"
#include "apiserver/admission/alloc_claims.h"
#include "apiserver/admission/alloc_repair.h"
#include "base/random.h"
#include "sdn/number_pool.h"

#define KUBERNETES "default/kubernetes" /* The API's own service. */

struct alloc {
    struct apiserver *server;
    struct service_ranges ranges;
    struct cache_kind *services;      /* The kind of Services in the cache. */
    const struct cache_kind *subnets; /* HostSubnets; NULL: not served as compiled in. */
    struct smap node_ips;             /* Addresses of nodes, by their HostSubnet: text. */
    struct number_pool
        /* Indexed by enum claim_type: numbers that are claimed, or will be by writes under way. */
        pools[3];
    struct alloc_repair *repair;
    struct cache_subscriber subscriber;
    struct list pending; /* Writes with claims: struct alloc_write. */
};

static void on_changed(void *ctx, struct cache_kind *ck, const struct cache_event *ev);
static void on_unknown_changed(void *ctx, const char *key, bool present);
static void on_loaded(void *ctx);

struct alloc *alloc_new(struct apiserver *a, const struct service_ranges *cfg)
{
    if (!cfg) {
        return NULL;
    }
    struct alloc *l = NEW(struct alloc);
    l->server = a;
    list_init(&l->pending);
    l->ranges = *cfg;
    l->services = cache_find(&a->cache, api_kind_find("", "v1", "services"));
    l->subnets = cache_find(&a->cache, api_kind_find("network.openshift.io", "v1", "hostsubnets"));
    smap_init(&l->node_ips, free);
    number_pool_init_net(&l->pools[CLAIM_IP], cfg->services);
    number_pool_reserve_first(&l->pools[CLAIM_IP]);
    number_pool_init(&l->pools[CLAIM_PORT], cfg->first_port,
                     (uint32_t) (cfg->last_port - cfg->first_port + 1));
    if (cfg->has_ingress) {
        number_pool_init_net(&l->pools[CLAIM_INGRESS], cfg->ingress);
    }
    l->repair = alloc_repair_new(a, &l->ranges);
    l->subscriber = (struct cache_subscriber){.rank = CACHE_RANK_ADMISSION,
                                              .ctx = l,
                                              .changed = on_changed,
                                              .unknown_changed = on_unknown_changed,
                                              .loaded = on_loaded};
    cache_subscribe(&a->cache, &l->subscriber);
    return l;
}

struct alloc *alloc_free(struct alloc *l)
{
    if (l) {
        cache_unsubscribe(&l->subscriber);
        for (size_t i = 0; i < ARRAY_SIZE(l->pools); i++) {
            number_pool_done(&l->pools[i]);
        }
        alloc_repair_free(l->repair);
        smap_done(&l->node_ips);
        free(l);
    }
    return NULL;
}

bool alloc_is_inside(const struct alloc *l, uint32_t ip)
{
    struct smap_entry *se;
    if (service_ranges_is_inside(&l->ranges, ip)) {
        return true;
    }
    SMAP_FOREACH (se, &l->node_ips) {
        if (streq(se->value, IP4_TEXT(ip))) {
            return true;
        }
    }
    return false;
}

static void note_node(struct alloc *l, const struct object *o)
{
    CLEANUP(json_free) struct json *obj = object_parse(o);
    const char *ip = json_path_string(obj, "hostIP", NULL);
    if (ip) {
        smap_set(&l->node_ips, o->key, xstrdup(ip));
    }
}

static void on_changed(void *ctx, struct cache_kind *ck, const struct cache_event *ev)
{
    struct alloc *l = ctx;
    if (ck == l->subnets) {
        (void) smap_remove(&l->node_ips, ev->new ? ev->new->key : ev->old->key);
        if (ev->new) {
            note_node(l, ev->new);
        }
    }
}

void alloc_changed(struct alloc *l, const char *key, bool there)
{
    enum claim_type type;
    uint32_t number;
    if (l && claim_parse(key, &type, &number) == 0) {
        (there ? number_pool_take : number_pool_give)(&l->pools[type], number);
    }
}

static void on_unknown_changed(void *ctx, const char *key, bool present)
{
    alloc_changed(ctx, key, present);
}

static void take_claim(void *ctx, const char *key)
{
    alloc_changed(ctx, key, true);
}

void alloc_reload(struct alloc *l)
{
    for (size_t i = 0; i < ARRAY_SIZE(l->pools); i++) {
        number_pool_clear(&l->pools[i]);
    }
    cache_each_unknown(&l->server->cache, CLAIM_PREFIX, take_claim, l);
    struct alloc_write *w;
    LIST_FOREACH (w, struct alloc_write, node, &l->pending) {
        for (size_t i = 0; i < w->n_claims; i++) {
            if (w->claims[i].value) {
                take_claim(l, w->claims[i].key);
            }
        }
    }
    smap_clear(&l->node_ips);
    if (l->subnets) {
        struct keyset_pos pos = keyset_seek(&l->subnets->objects, "");
        const struct object *o;
        while ((o = keyset_next(&l->subnets->objects, &pos))) {
            note_node(l, o);
        }
    }
    alloc_repair_start(l->repair);
}

static void on_loaded(void *ctx)
{
    alloc_reload(ctx);
}

bool alloc_concerns(const struct alloc *l, const struct cache_kind *ck)
{
    return l && ck == l->services;
}

/* ---- claims that a write records ---- */

static void note(struct alloc *l, struct alloc_write *w, const char *key, struct blob *value)
{
    if (!w->n_claims) {
        list_push_back(&l->pending, &w->node);
    }
    w->claims = grow(w->claims, &w->cap_claims, w->n_claims + 1, sizeof *w->claims);
    w->claims[w->n_claims++] = (struct store_claim){.key = xstrdup(key), .value = value};
}

void alloc_drop(struct alloc *l, struct alloc_write *w)
{
    if (w->n_claims) {
        list_remove(&w->node);
    }
    for (size_t i = 0; i < w->n_claims; i++) {
        struct store_claim *claim = &w->claims[i];
        /* The change that was stored is in the cache by now. */
        if (claim->value && !cache_unknown_value(&l->server->cache, claim->key, NULL)) {
            alloc_changed(l, claim->key, false);
        }
        free((char *) claim->key);
        blob_unref(claim->value);
    }
    free(w->claims);
    w->claims = NULL;
    w->n_claims = w->cap_claims = 0;
}

/* Gives up a claim only if the service owns it: in a registry written by other
 * programs two services may have one address. */
static void note_release(struct alloc *l, struct alloc_write *w, const char *service,
                         const char *key)
{
    const struct blob *value = cache_unknown_value(&l->server->cache, key, NULL);
    if (value && claim_is_of(value, service)) {
        note(l, w, key, NULL);
    }
}

void alloc_settle_deletion(struct alloc *l, struct alloc_write *w, const struct cache_kind *ck,
                           const struct object *base)
{
    alloc_drop(l, w);
    if (!alloc_concerns(l, ck)) {
        return;
    }
    CLEANUP(json_free) struct json *old = object_parse(base);
    char **keys = claims_of(&l->ranges, old);
    for (size_t i = 0; keys[i]; i++) {
        note_release(l, w, base->key, keys[i]);
    }
    claims_free(keys);
}

/* ---- allocation ---- */

/* The context in which one service gets its addresses and ports. */
struct settling {
    struct alloc *l;
    struct alloc_write *w;
    const char *key; /* The key of the service. */
    struct json *obj, *spec;
    char **had; /* Claims of the old object. */
    struct api_causes causes;
    const char *full, *full_field; /* The range that is exhausted, and the field; NULL: none is. */
};

static uint64_t random_seed(void)
{
    uint64_t seed;
    random_bytes(&seed, sizeof seed);
    return seed;
}

/* Reserves the number for the write. */
static void reserve(struct settling *s, enum claim_type type, uint32_t number, char *key)
{
    number_pool_take(&s->l->pools[type], number);
    note(s->l, s->w, key, claim_value(s->key));
    free(key);
}

static bool is_noted(const struct alloc_write *w, const char *key)
{
    for (size_t i = 0; i < w->n_claims; i++) {
        if (w->claims[i].value && streq(w->claims[i].key, key)) {
            return true;
        }
    }
    return false;
}

static char *claim_key(enum claim_type type, uint32_t number)
{
    return type == CLAIM_PORT      ? claim_of_port((uint16_t) number)
           : type == CLAIM_INGRESS ? claim_of_ingress(number)
                                   : claim_of_ip(number);
}

/* Reserves a number that the client requested, unless the service has it
 * already; returns whether the service has it now. */
static bool ask(struct settling *s, enum claim_type type, uint32_t number)
{
    CLEANUP_FREE char *key = claim_key(type, number);
    if (claims_have(s->had, key) || is_noted(s->w, key)) {
        return true;
    }
    if (!number_pool_is_free(&s->l->pools[type], number)) {
        return false;
    }
    reserve(s, type, number, TAKE(key));
    return true;
}

static bool choose(struct settling *s, enum claim_type type, uint32_t *ret)
{
    uint32_t number;
    struct number_pool *pool = &s->l->pools[type];
    if (number_pool_choose(pool, random_seed(), &number) < 0) {
        return false;
    }
    reserve(s, type, number, claim_key(type, number));
    *ret = number;
    return true;
}

static uint32_t first_ip(const struct alloc *l)
{
    return l->ranges.services.addr + 1;
}

/* The first address of the service network is reserved for the API's own
 * service and is not in the pool. */
static bool ask_first_ip(struct settling *s)
{
    CLEANUP_FREE char *key = claim_of_ip(first_ip(s->l));
    if (!streq(s->key, KUBERNETES) || cache_unknown_value(&s->l->server->cache, key, NULL)) {
        return false;
    }
    reserve(s, CLAIM_IP, first_ip(s->l), TAKE(key));
    return true;
}

static void choose_cluster_ip(struct settling *s)
{
    uint32_t ip;
    if (!choose(s, CLAIM_IP, &ip)) {
        s->full = "failed to allocate a serviceIP: range is full";
        s->full_field = "spec.clusterIP";
        return;
    }
    json_set_string(s->spec, "clusterIP", IP4_TEXT(ip));
    json_append(json_set(s->spec, "clusterIPs", json_array()), json_string(IP4_TEXT(ip)));
}

static void settle_cluster_ip(struct settling *s)
{
    const char *text = json_path_string(s->spec, "clusterIP", NULL);
    uint32_t ip;
    if (!service_needs_cluster_ip(s->spec) || service_is_headless(s->spec)) {
        return;
    }
    if (!text || !*text) {
        choose_cluster_ip(s);
        return;
    }
    CLEANUP_FREE char *key = ip4_parse(text, &ip) == 0 ? claim_of_ip(ip) : NULL;
    if (!key || claims_have(s->had, key)) {
        return;
    }
    const struct json *field = json_get(s->spec, "clusterIPs");
    bool first = ip == first_ip(s->l);
    if (!first && !number_pool_has(&s->l->pools[CLAIM_IP], ip)) {
        api_invalid(&s->causes, "spec.clusterIPs", field,
                    "failed to allocate IP %s: the provided IP (%s) is not in the valid range. "
                    "The range of valid IPs is %s",
                    text, text, PREFIX_TEXT(s->l->ranges.services));
    } else if (first ? !ask_first_ip(s) : !ask(s, CLAIM_IP, ip)) {
        api_invalid(&s->causes, "spec.clusterIPs", field,
                    "failed to allocate IP %s: provided IP is already allocated", text);
    }
}

static void check_port(struct settling *s, const char *field, const struct json *v)
{
    int64_t port = json_get_int_or(v, 0);
    CLEANUP_FREE char *key = claim_of_port((uint16_t) port);
    if (claims_have(s->had, key)) {
        return;
    }
    if (!number_pool_has(&s->l->pools[CLAIM_PORT], (uint32_t) port)) {
        api_invalid(&s->causes, field, v,
                    "provided port is not in the valid range. The range of valid ports is %u-%u",
                    s->l->ranges.first_port, s->l->ranges.last_port);
    } else if (!ask(s, CLAIM_PORT, (uint32_t) port)) {
        api_invalid(&s->causes, field, v, "provided port is already allocated");
    }
}

/* The node port of an earlier port with the same number and another protocol (as
 * for DNS), which is used for both; 0: none. */
static int64_t twin_port(const struct json *ports, size_t i)
{
    const struct json *port = json_at(ports, i);
    for (size_t k = 0; k < i; k++) {
        const struct json *p = json_at(ports, k);
        if (json_equal(json_get(p, "port"), json_get(port, "port")) &&
            !json_equal(json_get(p, "protocol"), json_get(port, "protocol"))) {
            return json_get_int_or(json_get(p, "nodePort"), 0);
        }
    }
    return 0;
}

static void choose_port(struct settling *s, struct json *to, const char *key, const char *field)
{
    uint32_t port;
    if (choose(s, CLAIM_PORT, &port)) {
        json_set_int(to, key, port);
    } else if (!s->full) {
        s->full = "failed to allocate a nodePort: range is full";
        s->full_field = field;
    }
}

/* Ports requested by number are reserved first, so that none of them is chosen for another port. */
static void settle_ports(struct settling *s)
{
    struct json *ports = json_get(s->spec, "ports");
    bool wants = service_needs_node_ports(s->spec), health = service_needs_health_port(s->spec);
    for (size_t i = 0; wants && i < json_count(ports); i++) {
        const struct json *v = json_get(json_at(ports, i), "nodePort");
        if (v) {
            check_port(s, API_FIELD("spec.ports[%zu].nodePort", i), v);
        }
    }
    const struct json *given = json_get(s->spec, "healthCheckNodePort");
    if (health && json_get_int_or(given, 0)) {
        check_port(s, "spec.healthCheckNodePort", given);
    }
    for (size_t i = 0; wants && i < json_count(ports); i++) {
        struct json *port = json_at(ports, i);
        int64_t twin = twin_port(ports, i);
        if (!json_get(port, "nodePort") && twin) {
            json_set_int(port, "nodePort", twin);
        } else if (!json_get(port, "nodePort")) {
            choose_port(s, port, "nodePort", "spec.ports");
        }
    }
    if (health && !json_get_int_or(given, 0)) {
        choose_port(s, s->spec, "healthCheckNodePort", "spec.healthCheckNodePort");
    }
}

/* Services with another load balancer class get their addresses from another implementation. */
static bool is_ours(const struct settling *s)
{
    const char *class = json_path_string(s->spec, "loadBalancerClass", NULL);
    return service_is_load_balancer(s->spec) && s->l->ranges.has_ingress && !(class && *class);
}

static void settle_ingress(struct settling *s)
{
    const char *wish = json_path_string(s->spec, "loadBalancerIP", NULL), *text;
    struct json *list = json_path(s->obj, "status", "loadBalancer", "ingress", NULL);
    uint32_t ip;
    if (!is_ours(s)) {
        return;
    }
    for (size_t i = 0; i < json_count(list); i++) {
        text = json_path_string(json_at(list, i), "ip", NULL);
        if (text && ip4_parse(text, &ip) == 0 && prefix_contains(s->l->ranges.ingress, ip) &&
            !ask(s, CLAIM_INGRESS, ip)) {
            api_invalid(&s->causes, API_FIELD("status.loadBalancer.ingress[%zu].ip", i),
                        json_get(json_at(list, i), "ip"), "provided IP is already allocated");
        }
    }
    if (json_count(list)) {
        return;
    }
    bool found = wish && ip4_parse(wish, &ip) == 0 && ask(s, CLAIM_INGRESS, ip);
    /* If none is free, the service waits until one is. */
    if (found || choose(s, CLAIM_INGRESS, &ip)) {
        struct json *status = json_ensure_object(s->obj, "status");
        list = json_set(json_ensure_object(status, "loadBalancer"), "ingress", json_array());
        json_set_string(json_append(list, json_object()), "ip", IP4_TEXT(ip));
    }
}

static bool has_text(const struct json *list, const char *text)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (streq_null(json_get_string(item), text)) {
            return true;
        }
    }
    return false;
}

static void check_external_ips(struct settling *s, const struct json *old)
{
    const struct json *list = json_get(s->spec, "externalIPs");
    const struct json *before = json_path(old, "spec", "externalIPs", NULL);
    uint32_t ip = 0;
    for (size_t i = 0; i < json_count(list); i++) {
        const char *text = json_get_string(json_at(list, i)), *field;
        field = API_FIELD("spec.externalIPs[%zu]", i);
        if (!text || has_text(before, text)) {
            continue;
        }
        if (!s->l->ranges.n_external) {
            api_forbidden(&s->causes, "spec.externalIPs",
                          "externalIPs have been disabled: networkConfig.externalIPNetworkCIDRs "
                          "of the master allows none");
            return;
        }
        if (ip4_parse(text, &ip) < 0 || !service_ranges_allow_external(&s->l->ranges, ip)) {
            api_forbidden(&s->causes, field,
                          "externalIP is not allowed: %s is not within "
                          "networkConfig.externalIPNetworkCIDRs of the master",
                          text);
        }
    }
}

static void fail_full(const struct settling *s, struct outcome *outcome)
{
    outcome_status(outcome, 500, "InternalError",
                   json_path_string(s->obj, "metadata", "name", NULL),
                   "Internal error occurred: %s", s->full);
    outcome_add_cause(outcome, "FieldValueInvalid", s->full_field, s->full);
}

int alloc_settle(struct request *q, struct alloc_write *w, const char *key, struct json *obj,
                 const struct json *old, struct outcome *outcome)
{
    struct alloc *l = q->server->alloc;
    alloc_drop(l, w);
    if (!alloc_concerns(l, q->ck) || !json_is(json_get(obj, "spec"), JSON_OBJECT)) {
        return 0;
    }
    struct settling s = {.l = l, .w = w, .key = key, .obj = obj, .spec = json_get(obj, "spec")};
    s.had = old ? claims_of(&l->ranges, old) : xcalloc(1, sizeof *s.had);
    check_external_ips(&s, old);
    settle_cluster_ip(&s);
    settle_ports(&s);
    settle_ingress(&s);
    char **has = claims_of(&l->ranges, obj);
    for (size_t i = 0; s.had[i]; i++) {
        if (!claims_have(has, s.had[i])) {
            note_release(l, w, key, s.had[i]);
        }
    }
    claims_free(has);
    claims_free(s.had);
    int r = 0;
    if (s.causes.n) {
        outcome_invalid(outcome, q->kind, json_path_string(obj, "metadata", "name", NULL),
                        &s.causes);
        r = -EINVAL;
    } else if (s.full) {
        fail_full(&s, outcome);
        r = -ENOSPC;
    }
    api_causes_done(&s.causes);
    return r;
}
