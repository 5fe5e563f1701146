/* SPDX-License-Identifier: Apache-2.0 */
#include "sdn/service_flows.h"

#include "base/map.h"
#include "base/mem.h"
#include "sdn/tables.h"

#include <string.h>

enum { TCP, UDP, N_PROTOCOLS };

/* A group that services share, with its number of uses. There are twice as many as services:
 * they are in one open-addressing table. */
#define MIN_SLOTS 64
struct shared {
    uint64_t cookie;            /* 0: the slot is free. */
    uint32_t uses[N_PROTOCOLS]; /* If the protocol does not matter, all uses count as TCP. */
};

/* The use of a shared group by a service: its cookie; a bit that no cookie of these groups has
 * shows the protocol. */
#define USE_UDP PIPELINE_DROPS
struct uses {
    uint64_t *list;
    size_t n, cap;
};

struct record {
    struct hmap_node node; /* By cookie. */
    uint32_t n;
    uint64_t uses[]; /* Then "namespace/name". */
};

struct service_flows {
    char *node;
    const struct service_flows_ops *ops;
    void *ctx;
    struct sdn_network net;
    struct hmap records;
    struct shared *shared;
    size_t n_shared, shared_mask;
    /* Cookies of shared groups that were added or removed; duplicates are possible. */
    struct uses dirty;
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

static void add_to(struct uses *u, uint64_t v)
{
    u->list = grow(u->list, &u->cap, u->n + 1, sizeof *u->list);
    u->list[u->n++] = v;
}

/* Its slot, or the free one for it. */
static struct shared *shared_slot(const struct service_flows *f, uint64_t cookie)
{
    size_t i = cookie_hash(cookie) & f->shared_mask;
    while (f->shared[i].cookie && f->shared[i].cookie != cookie) {
        i = (i + 1) & f->shared_mask;
    }
    return &f->shared[i];
}

/* The table is at most three quarters full. */
static void make_room(struct service_flows *f)
{
    if (f->n_shared + 1 <= (f->shared_mask + 1) / 4 * 3) {
        return;
    }
    struct shared *old = f->shared;
    size_t n = f->shared_mask + 1;
    f->shared_mask = 2 * n - 1;
    f->shared = xcalloc(2 * n, sizeof *f->shared);
    for (size_t i = 0; i < n; i++) {
        if (old[i].cookie) {
            *shared_slot(f, old[i].cookie) = old[i];
        }
    }
    free(old);
}

static struct shared *get_shared(struct service_flows *f, uint64_t cookie)
{
    make_room(f);
    struct shared *s = shared_slot(f, cookie);
    if (!s->cookie) {
        s->cookie = cookie;
        f->n_shared++;
        f->n_endpoints += kind_of(cookie) == PIPELINE_SERVICE_ENDPOINT;
    }
    return s;
}

/* Entries that follow because of collisions move up. */
static void remove_shared(struct service_flows *f, struct shared *s)
{
    f->n_endpoints -= kind_of(s->cookie) == PIPELINE_SERVICE_ENDPOINT;
    f->n_shared--;
    size_t gap = (size_t) (s - f->shared), i = gap;
    for (;;) {
        f->shared[gap] = (struct shared){0};
        size_t home;
        do {
            i = (i + 1) & f->shared_mask;
            if (!f->shared[i].cookie) {
                return;
            }
            home = cookie_hash(f->shared[i].cookie) & f->shared_mask;
        } while (((i - home) & f->shared_mask) < ((i - gap) & f->shared_mask));
        f->shared[gap] = f->shared[i];
        gap = i;
    }
}

static void use(struct service_flows *f, uint64_t u)
{
    struct shared *s = get_shared(f, u & ~USE_UDP);
    if (s->uses[u & USE_UDP ? UDP : TCP]++ == 0) {
        add_to(&f->dirty, s->cookie);
    }
}

static void unuse(struct service_flows *f, uint64_t u)
{
    struct shared *s = shared_slot(f, u & ~USE_UDP);
    if (--s->uses[u & USE_UDP ? UDP : TCP] == 0) {
        add_to(&f->dirty, s->cookie);
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
    for (size_t i = 0; i < f->dirty.n; i++) {
        struct shared *s = shared_slot(f, f->dirty.list[i]);
        struct of_flow_list l = {0};
        if (!s->cookie) {
            continue; /* Named twice. */
        }
        bool gone = !s->uses[TCP] && !s->uses[UDP];
        if (!gone) {
            shared_flows(s, &l);
        }
        hand_out(f, s->cookie, &l);
        if (gone) {
            remove_shared(f, s);
        }
    }
    free(f->dirty.list);
    f->dirty = (struct uses){0};
}

/* ---- services ---- */

static const char *key_of(const struct record *r)
{
    return (const char *) (r->uses + r->n);
}

static struct record *find_record(const struct service_flows *f, uint64_t cookie, const char *ns,
                                  const char *name)
{
    struct record *r;
    size_t n = strlen(ns);
    HMAP_FOREACH_WITH_HASH (r, struct record, node, cookie_hash(cookie), &f->records) {
        const char *key = key_of(r);
        if (strncmp(key, ns, n) == 0 && key[n] == '/' && streq(key + n + 1, name)) {
            return r;
        }
    }
    return NULL;
}

static struct record *record_new(const char *ns, const char *name, const struct uses *u)
{
    size_t n_ns = strlen(ns), n_name = strlen(name);
    struct record *r = xmalloc(sizeof *r + u->n * sizeof *u->list + n_ns + n_name + 2);
    r->n = (uint32_t) u->n;
    if (u->n) {
        memcpy(r->uses, u->list, u->n * sizeof *u->list);
    }
    char *key = (char *) (r->uses + r->n);
    memcpy(key, ns, n_ns);
    key[n_ns] = '/';
    memcpy(key + n_ns + 1, name, n_name + 1);
    return r;
}

/* At most the number of endpoints that pipeline_service uses. */
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
        add_to(u, pipeline_service_spread_cookie(p->protocol, (uint32_t) used));
    }
}

static void collect_uses(struct service_flows *f, const struct sdn_service *s, struct uses *u)
{
    for (size_t i = 0; i < s->n_external_ips; i++) {
        if (pipeline_is_external(&f->net, s->external_ips[i])) {
            add_to(u, pipeline_service_address_cookie(s->external_ips[i]));
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
        /* All endpoints that may have connections, even if they get no new ones. */
        for (size_t k = 0; k < p->n_backends && (!f->net.service_by_host || s->host_ports); k++) {
            const struct sdn_backend *b = &p->backends[k];
            if (b->endpoint->ip) {
                add_to(u, pipeline_service_endpoint_cookie(b->endpoint->ip, b->port) |
                              (p->protocol == SDN_UDP ? USE_UDP : 0));
            }
        }
    }
}

/* Replaces 'r', if any, by 'now', if any. New uses are added first, so that a group in both is
 * never removed in between. */
static void replace_record(struct service_flows *f, struct record *r, struct record *now,
                           uint64_t cookie)
{
    for (size_t i = 0; now && i < now->n; i++) {
        use(f, now->uses[i]);
    }
    for (size_t i = 0; r && i < r->n; i++) {
        unuse(f, r->uses[i]);
    }
    if (r) {
        hmap_remove(&f->records, &r->node);
        free(r);
    }
    if (now) {
        hmap_insert(&f->records, &now->node, cookie_hash(cookie));
    }
}

void service_flows_set(struct service_flows *f, const struct sdn_service *s,
                       const struct sdn_vnids *v)
{
    static const struct sdn_vnids nobody = {.id = SDN_VNID_NOBODY};
    if (!s->cluster_ip) {
        service_flows_delete(f, s->namespace, s->name);
        return;
    }
    uint64_t cookie = pipeline_service_cookie(s->namespace, s->name);
    struct of_flow_list l = {0};
    struct uses u = {0};
    pipeline_service(&f->net, s, v ? v : &nobody, f->node, &l);
    hand_out(f, cookie, &l);
    collect_uses(f, s, &u);
    replace_record(f, find_record(f, cookie, s->namespace, s->name),
                   record_new(s->namespace, s->name, &u), cookie);
    free(u.list);
}

void service_flows_delete(struct service_flows *f, const char *ns, const char *name)
{
    uint64_t cookie = pipeline_service_cookie(ns, name);
    struct record *r = find_record(f, cookie, ns, name);
    if (r) {
        struct of_flow_list l = {0};
        hand_out(f, cookie, &l);
        replace_record(f, r, NULL, cookie);
    }
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
    f->shared = xcalloc(MIN_SLOTS, sizeof *f->shared);
    f->shared_mask = MIN_SLOTS - 1;
    return f;
}

struct service_flows *service_flows_free(struct service_flows *f)
{
    if (!f) {
        return NULL;
    }
    struct record *r;
    HMAP_FOREACH (r, struct record, node, &f->records) {
        hmap_remove(&f->records, &r->node);
        free(r);
    }
    hmap_done(&f->records);
    free(f->shared);
    free(f->dirty.list);
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
        HMAP_FOREACH_WITH_HASH (r, struct record, node, cookie_hash(cookie), &f->records) {
            const char *key = key_of(r);
            CLEANUP_FREE char *ns = xstrndup(key, strcspn(key, "/"));
            if (pipeline_service_cookie(ns, key + strlen(ns) + 1) == cookie) {
                strbuf_addf(out, *ns ? "service %s" : "host ports at %s", *ns ? key : key + 1);
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

/* ---- ended connections ---- */

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

/* Connections to an endpoint at an address of the port; all of them for a removed address. */
static void end_at(struct ended *e, uint32_t dst, uint16_t port, const struct sdn_backend *b)
{
    e->c = (struct of_connection){SDN_UDP, dst, port, b ? b->endpoint->ip : 0, b ? b->port : 0};
    e->fn(e->ctx, &e->c);
}

/* 'b' NULL: connections to the addresses of 's' that 'now' does not have. */
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
