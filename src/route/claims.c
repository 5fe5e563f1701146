/* SPDX-License-Identifier: Apache-2.0 */
#include "route/claims_priv.h"

#include "api/kinds/route_fields.h"
#include "base/mem.h"

void route_verdict_done(struct route_verdict *v)
{
    free(v->message);
    *v = (struct route_verdict){0};
}

static bool refuse(struct route_verdict *ret, const char *reason, const char *message)
{
    *ret = (struct route_verdict){.reason = reason, .message = xstrdup(message)};
    return true;
}

/* ---- what one route's fields decide ---- */

static const char *domain_rule(const struct route_claims_options *o, const char *host)
{
    if (!*host) {
        return NULL;
    }
    if (o->denied && route_domains_has(o->denied, host)) {
        return "host in list of denied domains";
    }
    if (o->allowed && !route_domains_is_empty(o->allowed) && !route_domains_has(o->allowed, host)) {
        return "host not in the allowed list of domains";
    }
    return NULL;
}

static const char *wildcard_rule(const struct route_claims_options *o, const struct route *r)
{
    return r->wildcard == ROUTE_WILDCARD_UNKNOWN ? "unknown wildcard policy"
           : r->wildcard == ROUTE_WILDCARD_SUBDOMAIN && !o->wildcards
               ? "wildcard routes are not allowed"
               : NULL;
}

bool claims_refuse_alone(const struct route_claims_options *o, const struct route *r,
                         struct route_verdict *ret)
{
    const char *why = domain_rule(o, r->host);
    why = why ? why : wildcard_rule(o, r);
    if (why) {
        return refuse(ret, ROUTE_NOT_ADMITTED, why);
    }
    if (!*r->host) {
        return refuse(ret, ROUTE_NO_HOST, "no host value was defined for the route");
    }
    if ((why = route_check_host(r->host))) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        strbuf_adds(&b, "host name validation errors: spec.host: Invalid value: ");
        json_write_string(r->host, strlen(r->host), &b);
        strbuf_addf(&b, ": %s", why);
        return refuse(ret, ROUTE_INVALID_HOST, strbuf_cstr(&b));
    }
    return r->wrong ? refuse(ret, ROUTE_INVALID, r->wrong) : false;
}

/* ---- what routes decide about each other ---- */

bool claims_same_owner(const struct route_claims_options *o, const struct route *a,
                       const struct route *b)
{
    return o->share_hosts || streq(a->namespace, b->namespace);
}

struct route_verdict claims_verdict(const struct route *r, enum claims_rival rival,
                                    const struct route *by)
{
    bool named = by && streq(by->namespace, r->namespace);
    char *message = NULL;
    switch (rival) {
    case CLAIMS_FREE:
        return (struct route_verdict){.admitted = true};
    case CLAIMS_SAME_HOST:
        message = named ? xasprintf("route %s already exposes %s and is older", by->name, r->host)
                        : xasprintf("a route in another namespace holds %s and is older than %s",
                                    r->host, r->name);
        break;
    case CLAIMS_WILDCARD:
        message = named ? xasprintf("wildcard route %s/%s has host *.%s, blocking %s",
                                    by->namespace, by->name, route_domain(by), r->host)
                        : xasprintf("a route in another namespace holds host %s", r->host);
        break;
    case CLAIMS_BELOW_DOMAIN:
        message = xasprintf("a route in another namespace holds host %s", r->host);
        break;
    }
    return (struct route_verdict){.reason = ROUTE_HOST_CLAIMED, .message = message};
}

/* ---- all routes at once ---- */

/* An admitted route in the tables by which newer routes find their rivals. */
struct winner {
    struct hmap_node by_host, by_domain;
    const struct route *r;
};

struct deciding {
    const struct route_claims_options *o;
    struct hmap hosts;     /* Winners without wildcard, by host. */
    struct hmap wildcards; /* Winners with wildcard, by domain. */
    struct hmap below;     /* Winners without wildcard, by domain. */
};

/* Whether the older route is in the way of 'r', where both are of the same sort. */
static bool takes(const struct deciding *d, const struct route *older, const struct route *r)
{
    return !claims_same_owner(d->o, older, r) || streq(older->path, r->path);
}

static const struct route *older_of(const struct route *a, const struct route *b)
{
    return !a || route_compare_age(b, a) < 0 ? b : a;
}

static const struct route *rival_on_host(const struct deciding *d, const struct route *r)
{
    const struct route *best = NULL;
    struct winner *w;
    HMAP_FOREACH_WITH_HASH (w, struct winner, by_host, hash_string(r->host), &d->hosts) {
        if (streq(w->r->host, r->host) && takes(d, w->r, r)) {
            best = older_of(best, w->r);
        }
    }
    return best;
}

static const struct route *rival_wildcard(const struct deciding *d, const struct route *r)
{
    bool wild = r->wildcard == ROUTE_WILDCARD_SUBDOMAIN;
    const struct route *best = NULL;
    struct winner *w;
    HMAP_FOREACH_WITH_HASH (w, struct winner, by_domain, hash_string(route_domain(r)),
                            &d->wildcards) {
        if (streq(route_domain(w->r), route_domain(r)) &&
            (wild ? takes(d, w->r, r) : !claims_same_owner(d->o, w->r, r))) {
            best = older_of(best, w->r);
        }
    }
    return best;
}

static bool is_blocked_below(const struct deciding *d, const struct route *r)
{
    struct winner *w;
    HMAP_FOREACH_WITH_HASH (w, struct winner, by_domain, hash_string(route_domain(r)), &d->below) {
        if (streq(route_domain(w->r), route_domain(r)) && !claims_same_owner(d->o, w->r, r)) {
            return true;
        }
    }
    return false;
}

static void decide(struct deciding *d, struct winner *w, struct route_verdict *ret)
{
    const struct route *r = w->r, *by;
    bool wild = r->wildcard == ROUTE_WILDCARD_SUBDOMAIN;
    if (claims_refuse_alone(d->o, r, ret)) {
        return;
    }
    if (!wild && (by = rival_on_host(d, r))) {
        *ret = claims_verdict(r, CLAIMS_SAME_HOST, by);
    } else if ((by = rival_wildcard(d, r))) {
        *ret = claims_verdict(r, CLAIMS_WILDCARD, by);
    } else if (wild && is_blocked_below(d, r)) {
        *ret = claims_verdict(r, CLAIMS_BELOW_DOMAIN, NULL);
    } else {
        *ret = claims_verdict(r, CLAIMS_FREE, NULL);
        hmap_insert(wild ? &d->wildcards : &d->below, &w->by_domain, hash_string(route_domain(r)));
        if (!wild) {
            hmap_insert(&d->hosts, &w->by_host, hash_string(r->host));
        }
    }
}

struct ordered {
    const struct route *r;
    size_t i; /* Its place in the input. */
};

static int compare_ordered(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;
    int age = route_compare_age(x->r, y->r);
    return age ? age : x->i < y->i ? -1 : 1;
}

void route_claims_decide(const struct route_claims_options *o, const struct route *const *routes,
                         size_t n, struct route_verdict *ret)
{
    struct deciding d = {.o = o};
    CLEANUP_FREE struct ordered *order = xcalloc(n, sizeof *order);
    CLEANUP_FREE struct winner *winners = xcalloc(n, sizeof *winners);
    for (size_t i = 0; i < n; i++) {
        order[i] = (struct ordered){routes[i], i};
    }
    if (n) {
        qsort(order, n, sizeof *order, compare_ordered);
    }
    hmap_init(&d.hosts);
    hmap_init(&d.wildcards);
    hmap_init(&d.below);
    for (size_t i = 0; i < n; i++) {
        winners[i].r = order[i].r;
        decide(&d, &winners[i], &ret[order[i].i]);
    }
    hmap_done(&d.hosts);
    hmap_done(&d.wildcards);
    hmap_done(&d.below);
}
