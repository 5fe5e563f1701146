/* SPDX-License-Identifier: Apache-2.0 */
/* The incremental form of the claims.
 *
 * Routes conflict within one domain only.  There, routes without wildcard on different hosts do not
 * conflict with each other; they meet only by the wildcards of the domain.  So a change of a route
 * without wildcard is decided among the routes of its host.  Each wildcard counts the admitted
 * older routes of other namespaces below its domain; the domain is decided as a whole only when
 * such a count becomes 0 or stops being 0, and when a wildcard changes itself. */
#include "route/claims_priv.h"

#include "base/mem.h"

/* Up to this many routes the path of a rival is searched without a table. */
#define FEW_ROUTES 8

struct entry {
    struct hmap_node node; /* By namespace and name. */
    const struct route *r;
    struct group *group; /* NULL: its own fields refuse the route. */
    struct route_verdict v;
    size_t blockers; /* A wildcard's: admitted older foreign routes below its domain. */
    bool is_changed;
    struct list changed;
};

/* The routes of one host, or the wildcards of one domain, from the oldest to the newest. */
struct group {
    struct hmap_node node; /* By host; not in use for wildcards. */
    struct list in_domain;
    char *host; /* NULL: wildcards. */
    struct domain *domain;
    struct entry **list;
    size_t n, cap;
    /* While the group is decided: the oldest admitted route, and the admitted ones by path. */
    struct entry *owner;
    struct smap paths;
};

struct domain {
    struct hmap_node node;
    char *name;
    struct group wild;
    struct list hosts; /* struct group */
    bool is_stale;     /* A wildcard's count became 0 or stopped being 0. */
};

struct route_claims {
    struct route_claims_options o;
    struct hmap routes, hosts, domains;
    struct list changed;
};

static bool is_wild(const struct route *r)
{
    return r->wildcard == ROUTE_WILDCARD_SUBDOMAIN;
}

static uint32_t key_hash(const char *namespace, const char *name)
{
    return hash_string(namespace) * 31 + hash_string(name);
}

static struct entry *find(const struct route_claims *c, const char *namespace, const char *name)
{
    struct entry *e;
    HMAP_FOREACH_WITH_HASH (e, struct entry, node, key_hash(namespace, name), &c->routes) {
        if (streq(e->r->name, name) && streq(e->r->namespace, namespace)) {
            return e;
        }
    }
    return NULL;
}

/* ---- groups ---- */

static void group_init(struct group *g, struct domain *d)
{
    g->domain = d;
    smap_init(&g->paths, NULL);
}

static void group_done(struct group *g)
{
    smap_done(&g->paths);
    free(g->list);
    free(g->host);
}

/* The place of 'r' in the order of age. */
static size_t group_seek(const struct group *g, const struct route *r)
{
    size_t low = 0, high = g->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (route_compare_age(g->list[mid]->r, r) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

static void group_add(struct group *g, struct entry *e)
{
    size_t at = group_seek(g, e->r);
    g->list = grow(g->list, &g->cap, g->n + 1, sizeof *g->list);
    memmove(g->list + at + 1, g->list + at, (g->n - at) * sizeof *g->list);
    g->list[at] = e;
    g->n++;
    e->group = g;
}

static void group_remove(struct group *g, struct entry *e)
{
    size_t at = group_seek(g, e->r);
    /* Two routes of one age and uid are next to each other. */
    while (g->list[at] != e) {
        at++;
    }
    g->n--;
    memmove(g->list + at, g->list + at + 1, (g->n - at) * sizeof *g->list);
    e->group = NULL;
}

static struct domain *domain_of(struct route_claims *c, const struct route *r)
{
    const char *name = route_domain(r);
    struct domain *d;
    HMAP_FOREACH_WITH_HASH (d, struct domain, node, hash_string(name), &c->domains) {
        if (streq(d->name, name)) {
            return d;
        }
    }
    d = NEW(struct domain);
    d->name = xstrdup(name);
    list_init(&d->hosts);
    group_init(&d->wild, d);
    hmap_insert(&c->domains, &d->node, hash_string(name));
    return d;
}

static struct group *group_of(struct route_claims *c, const struct route *r)
{
    struct domain *d = domain_of(c, r);
    struct group *g;
    if (is_wild(r)) {
        return &d->wild;
    }
    HMAP_FOREACH_WITH_HASH (g, struct group, node, hash_string(r->host), &c->hosts) {
        if (streq(g->host, r->host)) {
            return g;
        }
    }
    g = NEW(struct group);
    g->host = xstrdup(r->host);
    group_init(g, d);
    list_push_back(&d->hosts, &g->in_domain);
    hmap_insert(&c->hosts, &g->node, hash_string(r->host));
    return g;
}

/* Frees the group and its domain when no route is left in them. */
static void release_empty(struct route_claims *c, struct group *g)
{
    struct domain *d = g->domain;
    if (g->host && g->n == 0) {
        hmap_remove(&c->hosts, &g->node);
        list_remove(&g->in_domain);
        group_done(g);
        free(g);
    }
    if (list_is_empty(&d->hosts) && d->wild.n == 0) {
        hmap_remove(&c->domains, &d->node);
        group_done(&d->wild);
        free(d->name);
        free(d);
    }
}

/* ---- deciding ---- */

static void mark_changed(struct route_claims *c, struct entry *e)
{
    if (!e->is_changed) {
        e->is_changed = true;
        list_push_back(&c->changed, &e->changed);
    }
}

/* Counts the route, which has no wildcard, for or no longer for the newer wildcards. */
static void count_blocker(const struct route_claims *c, const struct entry *e, bool add)
{
    struct domain *d = e->group->domain;
    for (size_t i = group_seek(&d->wild, e->r); i < d->wild.n; i++) {
        struct entry *w = d->wild.list[i];
        if (!claims_same_owner(&c->o, e->r, w->r)) {
            w->blockers += add ? 1 : -1UL;
            d->is_stale |= w->blockers == (add ? 1 : 0);
        }
    }
}

/* Takes the verdict '*v' for the route's own. */
static void set_verdict(struct route_claims *c, struct entry *e, struct route_verdict *v)
{
    bool was = e->v.admitted, same = was == v->admitted && streq_null(e->v.reason, v->reason) &&
                                     streq_null(e->v.message, v->message);
    if (same) {
        route_verdict_done(v);
        return;
    }
    route_verdict_done(&e->v);
    e->v = *v;
    mark_changed(c, e);
}

static void group_begin(struct group *g)
{
    g->owner = NULL;
    smap_clear(&g->paths);
}

/* The admitted older route of the group that is in the way of 'e', which is the i-th. */
static struct entry *rival_in_group(const struct route_claims *c, const struct group *g,
                                    const struct entry *e)
{
    if (!g->owner || !claims_same_owner(&c->o, g->owner->r, e->r)) {
        return g->owner;
    }
    if (g->n > FEW_ROUTES) {
        return smap_get(&g->paths, e->r->path);
    }
    for (size_t i = 0; g->list[i] != e; i++) {
        if (g->list[i]->v.admitted && streq(g->list[i]->r->path, e->r->path)) {
            return g->list[i];
        }
    }
    return NULL;
}

/* The oldest admitted wildcard of another namespace that is older than 'e'. */
static bool is_under_foreign_wildcard(const struct route_claims *c, const struct entry *e)
{
    const struct group *wild = &e->group->domain->wild;
    for (size_t i = 0; i < wild->n && route_compare_age(wild->list[i]->r, e->r) < 0; i++) {
        if (wild->list[i]->v.admitted && !claims_same_owner(&c->o, wild->list[i]->r, e->r)) {
            return true;
        }
    }
    return false;
}

/* Decides about the next route of a group, all older ones being decided. */
static void decide_next(struct route_claims *c, struct entry *e)
{
    struct group *g = e->group;
    const struct entry *by = rival_in_group(c, g, e);
    enum claims_rival rival = CLAIMS_FREE;
    if (by) {
        rival = g->host ? CLAIMS_SAME_HOST : CLAIMS_WILDCARD;
    } else if (g->host && is_under_foreign_wildcard(c, e)) {
        rival = CLAIMS_WILDCARD;
    } else if (!g->host && e->blockers) {
        rival = CLAIMS_BELOW_DOMAIN;
    }
    struct route_verdict v = claims_verdict(e->r, rival, by ? by->r : NULL);
    bool admitted = v.admitted;
    set_verdict(c, e, &v);
    if (admitted) {
        g->owner = g->owner ? g->owner : e;
        if (g->n > FEW_ROUTES) {
            smap_set(&g->paths, e->r->path, e);
        }
    }
}

static void decide_group(struct route_claims *c, struct group *g)
{
    group_begin(g);
    for (size_t i = 0; i < g->n; i++) {
        struct entry *e = g->list[i];
        bool was = e->v.admitted;
        decide_next(c, e);
        if (was != e->v.admitted) {
            count_blocker(c, e, e->v.admitted);
        }
    }
}

static int compare_entries(const void *a, const void *b)
{
    struct entry *const *x = a, *const *y = b;
    return route_compare_age((*x)->r, (*y)->r);
}

/* The admitted routes without wildcard of one namespace, while a domain is decided. */
struct tally {
    struct smap by_namespace; /* size_t */
    size_t total;
};

static void tally_add(struct tally *t, const char *namespace)
{
    size_t *n = smap_get(&t->by_namespace, namespace);
    if (!n) {
        n = NEW(size_t);
        smap_set(&t->by_namespace, namespace, n);
    }
    (*n)++;
    t->total++;
}

static size_t tally_foreign(const struct tally *t, const char *namespace)
{
    const size_t *n = smap_get(&t->by_namespace, namespace);
    return t->total - (n ? *n : 0);
}

/* Entries of several groups. */
struct gathered {
    struct entry **list;
    size_t n, cap;
};

static void gather(struct gathered *all, struct group *g)
{
    group_begin(g);
    all->list = grow(all->list, &all->cap, all->n + g->n, sizeof(struct entry *));
    for (size_t i = 0; i < g->n; i++) {
        all->list[all->n++] = g->list[i];
    }
}

static void decide_domain(struct route_claims *c, struct domain *d)
{
    struct gathered all = {.n = 0};
    struct tally t = {.total = 0};
    struct group *g;
    smap_init(&t.by_namespace, free);
    LIST_FOREACH (g, struct group, in_domain, &d->hosts) {
        gather(&all, g);
    }
    gather(&all, &d->wild);
    if (all.n) {
        qsort(all.list, all.n, sizeof(struct entry *), compare_entries);
    }
    for (size_t i = 0; i < all.n; i++) {
        struct entry *e = all.list[i];
        if (is_wild(e->r) && !c->o.share_hosts) {
            e->blockers = tally_foreign(&t, e->r->namespace);
        }
        decide_next(c, e);
        if (!is_wild(e->r) && e->v.admitted) {
            tally_add(&t, e->r->namespace);
        }
    }
    smap_done(&t.by_namespace);
    free(all.list);
    d->is_stale = false;
}

/* Decides what the change of a route of the group 'g' touches. */
static void settle(struct route_claims *c, struct group *g)
{
    struct domain *d = g->domain;
    if (g->host) {
        decide_group(c, g);
    }
    if (!g->host || d->is_stale) {
        decide_domain(c, d);
    }
}

/* ---- changes ---- */

/* Takes the route out of its group; returns the group, whose routes are not decided yet. */
static struct group *detach(struct route_claims *c, struct entry *e)
{
    struct group *g = e->group;
    if (!g) {
        return NULL;
    }
    if (g->host && e->v.admitted) {
        count_blocker(c, e, false);
    }
    group_remove(g, e);
    return g;
}

void route_claims_set(struct route_claims *c, const struct route *r)
{
    struct entry *e = find(c, r->namespace, r->name);
    struct group *before = e ? detach(c, e) : NULL;
    struct route_verdict v = {0};
    if (!e) {
        e = NEW(struct entry);
        hmap_insert(&c->routes, &e->node, key_hash(r->namespace, r->name));
    }
    e->r = r;
    e->blockers = 0;
    mark_changed(c, e);
    if (claims_refuse_alone(&c->o, r, &v)) {
        set_verdict(c, e, &v);
    } else {
        route_verdict_done(&e->v);
        group_add(group_of(c, r), e);
        settle(c, e->group);
    }
    if (before && before != e->group) {
        settle(c, before);
        release_empty(c, before);
    }
}

bool route_claims_remove(struct route_claims *c, const char *namespace, const char *name)
{
    struct entry *e = find(c, namespace, name);
    if (!e) {
        return false;
    }
    struct group *g = detach(c, e);
    hmap_remove(&c->routes, &e->node);
    if (e->is_changed) {
        list_remove(&e->changed);
    }
    route_verdict_done(&e->v);
    free(e);
    if (g) {
        settle(c, g);
        release_empty(c, g);
    }
    return true;
}

struct route_claims *route_claims_new(const struct route_claims_options *o)
{
    struct route_claims *c = NEW(struct route_claims);
    c->o = *o;
    hmap_init(&c->routes);
    hmap_init(&c->hosts);
    hmap_init(&c->domains);
    list_init(&c->changed);
    return c;
}

struct route_claims *route_claims_free(struct route_claims *c)
{
    struct entry *e;
    struct group *g;
    struct domain *d;
    if (!c) {
        return NULL;
    }
    HMAP_FOREACH (e, struct entry, node, &c->routes) {
        route_verdict_done(&e->v);
        free(e);
    }
    HMAP_FOREACH (g, struct group, node, &c->hosts) {
        group_done(g);
        free(g);
    }
    HMAP_FOREACH (d, struct domain, node, &c->domains) {
        group_done(&d->wild);
        free(d->name);
        free(d);
    }
    hmap_done(&c->routes);
    hmap_done(&c->hosts);
    hmap_done(&c->domains);
    free(c);
    return NULL;
}

size_t route_claims_size(const struct route_claims *c)
{
    return c->routes.n;
}

const struct route_verdict *route_claims_verdict(const struct route_claims *c,
                                                 const char *namespace, const char *name)
{
    const struct entry *e = find(c, namespace, name);
    return e ? &e->v : NULL;
}

void route_claims_take_changes(struct route_claims *c, route_claims_fn *fn, void *ctx)
{
    while (!list_is_empty(&c->changed)) {
        struct entry *e = CONTAINER_OF(list_pop_front(&c->changed), struct entry, changed);
        e->is_changed = false;
        fn(ctx, e->r, &e->v);
    }
}

void route_claims_each(const struct route_claims *c, route_claims_fn *fn, void *ctx)
{
    struct entry *e;
    HMAP_FOREACH (e, struct entry, node, &c->routes) {
        fn(ctx, e->r, &e->v);
    }
}
