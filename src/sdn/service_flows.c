/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/service_flows.h"

#include "base/map.h"
#include "base/mem.h"
#include "sdn/tables.h"

#include <string.h>

enum { TCP, UDP, N_PROTOCOLS };

/* A group that services share. */
struct shared {
    struct hmap_node node;
    struct list dirty;
    uint64_t cookie;
    size_t uses[N_PROTOCOLS]; /* Where the protocol does not matter, all are of TCP. */
};

struct use {
    uint64_t cookie;
    unsigned protocol;
};
struct uses {
    struct use *list;
    size_t n, cap;
};

struct record {
    struct hmap_node node, by_cookie;
    uint64_t cookie;
    struct uses uses;
    char key[]; /* "namespace/name" */
};

struct service_flows {
    char *node;
    const struct service_flows_ops *ops;
    void *ctx;
    struct sdn_network net;
    struct hmap records, cookies, shared;
    struct list dirty;
    size_t n_endpoints;
};

static uint32_t cookie_hash(uint64_t cookie)
{
    return hash32(&cookie, sizeof cookie);
}

static unsigned kind_of(uint64_t cookie)
{
    return (unsigned) (cookie >> 48 & 0x7fff);
}

static void hand_out(struct service_flows *f, uint64_t cookie, struct of_flow_list *l)
{
    f->ops->set_group(f->ctx, cookie, l);
    of_flow_list_done(l);
}

/* ---- shared groups ---- */

static struct shared *find_shared(const struct service_flows *f, uint64_t cookie)
{
    struct shared *s;
    HMAP_FOREACH_WITH_HASH (s, struct shared, node, cookie_hash(cookie), &f->shared) {
        if (s->cookie == cookie) {
            return s;
        }
    }
    return NULL;
}

static void mark(struct service_flows *f, struct shared *s)
{
    if (list_is_empty(&s->dirty)) {
        list_push_back(&f->dirty, &s->dirty);
    }
}

static void use(struct service_flows *f, const struct use *u)
{
    struct shared *s = find_shared(f, u->cookie);
    if (!s) {
        s = NEW(struct shared);
        s->cookie = u->cookie;
        list_init(&s->dirty);
        hmap_insert(&f->shared, &s->node, cookie_hash(u->cookie));
        f->n_endpoints += kind_of(u->cookie) == PIPELINE_SERVICE_ENDPOINT;
    }
    if (s->uses[u->protocol]++ == 0) {
        mark(f, s);
    }
}

static void unuse(struct service_flows *f, const struct use *u)
{
    struct shared *s = find_shared(f, u->cookie);
    if (--s->uses[u->protocol] == 0) {
        mark(f, s);
    }
}

static void shared_flows(const struct shared *s, struct of_flow_list *out)
{
    uint64_t id = s->cookie & 0xffffffffffffu;
    switch (kind_of(s->cookie)) {
    case PIPELINE_SERVICE_ADDRESS:
        pipeline_service_address((uint32_t) id, out);
        break;
    case PIPELINE_SERVICE_ENDPOINT:
        pipeline_service_endpoint((uint32_t) (id >> 16), (uint16_t) id, s->uses[TCP] > 0,
                                  s->uses[UDP] > 0, out);
        break;
    default:
        pipeline_service_spread((uint8_t) (id >> 32), (uint32_t) id, out);
    }
}

void service_flows_flush(struct service_flows *f)
{
    struct list *link;
    while ((link = list_pop_front(&f->dirty))) {
        struct shared *s = CONTAINER_OF(link, struct shared, dirty);
        struct of_flow_list l = {0};
        bool gone = !s->uses[TCP] && !s->uses[UDP];
        if (!gone) {
            shared_flows(s, &l);
        }
        hand_out(f, s->cookie, &l);
        if (gone) {
            f->n_endpoints -= kind_of(s->cookie) == PIPELINE_SERVICE_ENDPOINT;
            hmap_remove(&f->shared, &s->node);
            free(s);
        }
    }
}

/* ---- services ---- */

static struct record *find_record(const struct service_flows *f, const char *key)
{
    struct record *r;
    HMAP_FOREACH_WITH_HASH (r, struct record, node, hash_string(key), &f->records) {
        if (streq(r->key, key)) {
            return r;
        }
    }
    return NULL;
}

static struct record *get_record(struct service_flows *f, const char *key, uint64_t cookie)
{
    struct record *r = find_record(f, key);
    if (!r) {
        size_t size = strlen(key) + 1;
        r = xcalloc(1, sizeof *r + size);
        memcpy(r->key, key, size);
        r->cookie = cookie;
        hmap_insert(&f->records, &r->node, hash_string(key));
        hmap_insert(&f->cookies, &r->by_cookie, cookie_hash(cookie));
    }
    return r;
}

static void record_free(struct service_flows *f, struct record *r)
{
    hmap_remove(&f->records, &r->node);
    hmap_remove(&f->cookies, &r->by_cookie);
    free(r->uses.list);
    free(r);
}

static void add_use(struct uses *u, uint64_t cookie, unsigned protocol)
{
    u->list = grow(u->list, &u->cap, u->n + 1, sizeof *u->list);
    u->list[u->n++] = (struct use){cookie, protocol};
}

/* As many endpoints as the flows of pipeline_service choose from. */
static void use_spread(struct service_flows *f, const struct sdn_service *s,
                       const struct sdn_service_port *p, const char *node, struct uses *u)
{
    const struct sdn_backend **backends = NULL;
    size_t n = sdn_service_choose(s, p, node, &backends), used = 0;
    for (size_t i = 0; i < n; i++) {
        used += pipeline_may_serve(&f->net, p->protocol, backends[i]);
    }
    free(backends);
    used = MIN(used, PIPELINE_MAX_ENDPOINTS);
    if (used > 1 && !f->net.service_by_host) {
        add_use(u, pipeline_service_spread_cookie(p->protocol, (uint32_t) used), TCP);
    }
}

static void collect_uses(struct service_flows *f, const struct sdn_service *s, struct uses *u)
{
    for (size_t i = 0; i < s->n_external_ips; i++) {
        if (pipeline_is_external(&f->net, s->external_ips[i])) {
            add_use(u, pipeline_service_address_cookie(s->external_ips[i]), TCP);
        }
    }
    for (size_t i = 0; i < s->n_ports; i++) {
        const struct sdn_service_port *p = &s->ports[i];
        if (p->protocol != SDN_TCP && p->protocol != SDN_UDP) {
            continue;
        }
        use_spread(f, s, p, s->internal_local ? f->node : NULL, u);
        if (s->internal_local) {
            use_spread(f, s, p, NULL, u);
        }
        /* All that may have connections, also if they get no new ones. */
        for (size_t k = 0; k < p->n_backends && !f->net.service_by_host; k++) {
            const struct sdn_backend *b = &p->backends[k];
            if (b->endpoint->ip) {
                add_use(u, pipeline_service_endpoint_cookie(b->endpoint->ip, b->port),
                        p->protocol == SDN_UDP ? UDP : TCP);
            }
        }
    }
}

/* The new ones first, so that nothing goes for a moment that stays. */
static void replace_uses(struct service_flows *f, struct record *r, struct uses *u)
{
    for (size_t i = 0; i < u->n; i++) {
        use(f, &u->list[i]);
    }
    for (size_t i = 0; i < r->uses.n; i++) {
        unuse(f, &r->uses.list[i]);
    }
    free(r->uses.list);
    r->uses = *u;
}

static void remove_record(struct service_flows *f, const char *key)
{
    struct record *r = find_record(f, key);
    if (r) {
        struct uses none = {0};
        struct of_flow_list l = {0};
        hand_out(f, r->cookie, &l);
        replace_uses(f, r, &none);
        record_free(f, r);
    }
}

void service_flows_set(struct service_flows *f, const struct sdn_service *s,
                       const struct sdn_vnids *v)
{
    static const struct sdn_vnids nobody = {.id = SDN_VNID_NOBODY};
    CLEANUP_FREE char *key = xasprintf("%s/%s", s->namespace, s->name);
    if (!s->cluster_ip) {
        remove_record(f, key);
        return;
    }
    struct record *r = get_record(f, key, pipeline_service_cookie(s->namespace, s->name));
    struct of_flow_list l = {0};
    struct uses u = {0};
    pipeline_service(&f->net, s, v ? v : &nobody, f->node, &l);
    hand_out(f, r->cookie, &l);
    collect_uses(f, s, &u);
    replace_uses(f, r, &u);
}

void service_flows_delete(struct service_flows *f, const char *ns, const char *name)
{
    CLEANUP_FREE char *key = xasprintf("%s/%s", ns, name);
    remove_record(f, key);
}

/* ---- the whole ---- */

struct service_flows *service_flows_new(const char *node, const struct service_flows_ops *ops,
                                        void *ctx)
{
    struct service_flows *f = NEW(struct service_flows);
    f->node = xstrdup(node);
    f->ops = ops;
    f->ctx = ctx;
    hmap_init(&f->records);
    hmap_init(&f->cookies);
    hmap_init(&f->shared);
    list_init(&f->dirty);
    return f;
}

struct service_flows *service_flows_free(struct service_flows *f)
{
    if (!f) {
        return NULL;
    }
    struct record *r;
    HMAP_FOREACH (r, struct record, node, &f->records) {
        record_free(f, r);
    }
    struct shared *s;
    HMAP_FOREACH (s, struct shared, node, &f->shared) {
        hmap_remove(&f->shared, &s->node);
        free(s);
    }
    hmap_done(&f->records);
    hmap_done(&f->cookies);
    hmap_done(&f->shared);
    free(f->node);
    free(f);
    return NULL;
}

void service_flows_set_network(struct service_flows *f, const struct sdn_network *n)
{
    f->net = *n;
    f->net.remotes = NULL;
    f->net.n_remotes = 0;
}

bool service_flows_describe(const struct service_flows *f, uint64_t cookie, struct strbuf *out)
{
    uint64_t id = cookie & 0xffffffffffffu;
    const struct record *r;
    switch (kind_of(cookie)) {
    case PIPELINE_SERVICE:
        HMAP_FOREACH_WITH_HASH (r, struct record, by_cookie, cookie_hash(cookie), &f->cookies) {
            if (r->cookie == cookie) {
                strbuf_addf(out, "service %s", r->key);
                return true;
            }
        }
        return false;
    case PIPELINE_SERVICE_ADDRESS:
        strbuf_addf(out, "address %s of services", IP4_TEXT((uint32_t) id));
        return true;
    case PIPELINE_SERVICE_ENDPOINT:
        strbuf_addf(out, "endpoint %s:%u of services", IP4_TEXT((uint32_t) (id >> 16)),
                    (unsigned) (id & 0xffff));
        return true;
    case PIPELINE_SERVICE_SPREAD:
        strbuf_addf(out, "services with %u endpoints", (unsigned) id);
        return true;
    default:
        return false;
    }
}

void service_flows_get_stats(const struct service_flows *f, struct service_flows_stats *ret)
{
    *ret = (struct service_flows_stats){f->records.n, f->n_endpoints};
}

/* ---- what ends ---- */

struct ended {
    void (*fn)(void *ctx, const struct of_connection *c);
    void *ctx;
    struct of_connection c;
};

static const struct sdn_service_port *find_port(const struct sdn_service *s,
                                                const struct sdn_service_port *like)
{
    for (size_t i = 0; s && i < s->n_ports; i++) {
        if (s->ports[i].protocol == like->protocol && s->ports[i].port == like->port) {
            return &s->ports[i];
        }
    }
    return NULL;
}

static bool has_external_ip(const struct sdn_service *s, uint32_t ip)
{
    for (size_t i = 0; i < s->n_external_ips; i++) {
        if (s->external_ips[i] == ip) {
            return true;
        }
    }
    return false;
}

/* Those to an address of the port: of an endpoint, or to an address that went, all. */
static void end_at(struct ended *e, uint32_t dst, uint16_t port, const struct sdn_backend *b)
{
    e->c = (struct of_connection){SDN_UDP, dst, port, b ? b->endpoint->ip : 0, b ? b->port : 0};
    e->fn(e->ctx, &e->c);
}

/* 'b' NULL: those to the addresses that 's' and 'now' have not any more. */
static void end_port(struct ended *e, const struct sdn_service *old,
                     const struct sdn_service_port *p, const struct sdn_service *s,
                     const struct sdn_service_port *now, const struct sdn_backend *b)
{
    if (b || !now || old->cluster_ip != s->cluster_ip) {
        end_at(e, old->cluster_ip, p->port, b);
    }
    for (size_t i = 0; i < old->n_external_ips; i++) {
        uint32_t ip = old->external_ips[i];
        if (b || !now || !has_external_ip(s, ip)) {
            end_at(e, ip, p->port, b);
        }
    }
    if (p->node_port && (b || !now || now->node_port != p->node_port)) {
        end_at(e, 0, p->node_port, b);
    }
}

static bool is_among(const struct sdn_backend *b, const struct sdn_backend *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i]->endpoint->ip == b->endpoint->ip && list[i]->port == b->port) {
            return true;
        }
    }
    return false;
}

void service_flows_ended(const struct sdn_service *old, const struct sdn_service *s,
                         void (*fn)(void *ctx, const struct of_connection *c), void *ctx)
{
    struct ended e = {fn, ctx, {0}};
    for (size_t i = 0; old && old->cluster_ip && i < old->n_ports; i++) {
        const struct sdn_service_port *p = &old->ports[i];
        if (p->protocol != SDN_UDP) {
            continue;
        }
        const struct sdn_service_port *now = find_port(s, p);
        const struct sdn_backend **before = NULL, **after = NULL;
        size_t n_before = sdn_service_choose(old, p, NULL, &before);
        size_t n_after = now ? sdn_service_choose(s, now, NULL, &after) : 0;
        if (n_before) {
            end_port(&e, old, p, s, now, NULL);
        }
        for (size_t k = 0; now && k < n_before; k++) {
            if (!is_among(before[k], after, n_after)) {
                end_port(&e, old, p, s, now, before[k]);
            }
        }
        free(before);
        free(after);
    }
}

/* ---- packets ---- */

#define ETHERNET 14
#define IP4_MIN 20

static uint16_t be16(const uint8_t *p)
{
    return (uint16_t) (p[0] << 8 | p[1]);
}

int service_target_parse(const uint8_t *frame, size_t size, struct service_target *ret)
{
    if (size < ETHERNET + IP4_MIN || be16(frame + 12) != ETH_IP4 || frame[ETHERNET] >> 4 != 4) {
        return -EINVAL;
    }
    const uint8_t *ip = frame + ETHERNET;
    size_t header = (size_t) (ip[0] & 0xf) * 4;
    bool later = be16(ip + 6) & 0x1fff;
    if (header < IP4_MIN || later || size < ETHERNET + header + 4 ||
        (ip[9] != SDN_TCP && ip[9] != SDN_UDP)) {
        return -EINVAL;
    }
    *ret = (struct service_target){(uint32_t) be16(ip + 16) << 16 | be16(ip + 18), ip[9],
                                   be16(ip + header + 2)};
    return 0;
}

const struct sdn_service_port *service_target_port(const struct sdn_service *s,
                                                   const struct service_target *t)
{
    bool own = s->cluster_ip == t->dst || has_external_ip(s, t->dst);
    for (size_t i = 0; i < s->n_ports; i++) {
        const struct sdn_service_port *p = &s->ports[i];
        if (p->protocol == t->proto &&
            ((p->port == t->port && own) || (p->node_port && p->node_port == t->port && !own))) {
            return p;
        }
    }
    return NULL;
}
