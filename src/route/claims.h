/* SPDX-License-Identifier: Apache-2.0 */
/* Claims: which of several routes has a host name, in the eyes of one router.
 *
 * The answer is a function of the set of routes and of the router's options alone; the order in
 * which routes come, change and go has no influence (the original's depended on it).  Walk the
 * routes from the oldest to the newest (time of creation, then uid).  A route is admitted if the
 * router may serve its host at all, and no route that is already admitted conflicts with it:
 *
 *     the same host                                   same namespace   another namespace
 *     both without wildcard, same path                conflict         conflict
 *     both without wildcard, other path               -                conflict
 *     one of them a wildcard of the other's domain    -                conflict
 *     both wildcards of one domain, same path         conflict         conflict
 *     both wildcards of one domain, other path        -                conflict
 *
 * With 'share_hosts' all namespaces count as the same one.  "" and "/" are different paths.
 *
 * The original's router refuses with the same reasons and texts (host_admitter.go, unique_host.go);
 * a route of another namespace is not named.
 *
 * Two forms give the same answers: route_claims_decide (all routes at once), and 'struct
 * route_claims', which keeps the routes and decides only what a change touches.  Pure; one
 * thread. */
#pragma once

#include "route/domains.h"
#include "route/route.h"

#define ROUTE_NOT_ADMITTED "RouteNotAdmitted"
#define ROUTE_NO_HOST "NoHostValue"
#define ROUTE_INVALID_HOST "InvalidHost"
#define ROUTE_HOST_CLAIMED "HostAlreadyClaimed"
#define ROUTE_INVALID "ExtendedValidationFailed"

struct route_claims_options {
    bool wildcards;   /* ROUTER_ALLOW_WILDCARD_ROUTES */
    bool share_hosts; /* ROUTER_DISABLE_NAMESPACE_OWNERSHIP_CHECK */
    /* Borrowed; NULL or empty: every domain is allowed, none is denied. */
    const struct route_domains *allowed, *denied;
};

struct route_verdict {
    bool admitted;
    const char *reason; /* That of Admitted=False: a constant; NULL when admitted. */
    char *message;      /* Owned; NULL when admitted. */
};
void route_verdict_done(struct route_verdict *v);

/* Decides about all routes, in any order; 'ret' has 'n' elements in the order of 'routes', which
 * the caller ends with route_verdict_done.  No two routes have the same namespace and name. */
void route_claims_decide(const struct route_claims_options *o, const struct route *const *routes,
                         size_t n, struct route_verdict *ret);

/* ---- the incremental form ----
 *
 * A change costs O(k), where k is the number of routes with the same host, plus one step for each
 * wildcard of the domain; k is 1 or 2 almost always.  Only a wildcard that comes, goes or changes
 * sides costs O(m log m), where m is the number of routes of its domain. */

struct route_claims;

/* 'o' is copied; its lists are borrowed until route_claims_free. */
struct route_claims *route_claims_new(const struct route_claims_options *o);
struct route_claims *route_claims_free(struct route_claims *c);
DEFINE_CLEANUP(struct route_claims *, route_claims_free)

/* Adds the route, or puts it in the place of the one with the same namespace and name.  'r' is
 * borrowed until it is replaced or removed. */
void route_claims_set(struct route_claims *c, const struct route *r);
/* Removes the route; false: there was none. */
bool route_claims_remove(struct route_claims *c, const char *namespace, const char *name);
size_t route_claims_size(const struct route_claims *c);
/* The verdict about the route; NULL: there is no such route.  Borrowed until the next change. */
const struct route_verdict *route_claims_verdict(const struct route_claims *c,
                                                 const char *namespace, const char *name);
/* Calls 'fn' for each route that was set, or whose verdict changed, since the last call, each once,
 * and forgets them; removed routes are not among them.  'fn' may not change the claims. */
typedef void route_claims_fn(void *ctx, const struct route *r, const struct route_verdict *v);
void route_claims_take_changes(struct route_claims *c, route_claims_fn *fn, void *ctx);
/* Calls 'fn' for every route, in no particular order. */
void route_claims_each(const struct route_claims *c, route_claims_fn *fn, void *ctx);
