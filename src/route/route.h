/* SPDX-License-Identifier: Apache-2.0 */
/* A Route (route.openshift.io/v1) as routers read it: owned texts instead of JSON.
 *
 * The claims (claims.h) and each kind of router work from these.  A router serves what is in here,
 * so that route_parse checks again each text that reaches a proxy's configuration: another API
 * server may be less strict.  Pure; a route is owned by the caller of route_parse, and constant but
 * for route_set_host.  The private key is wiped when the route is freed. */
#pragma once

#include "wire/json.h"

enum route_termination {
    ROUTE_PLAIN,       /* HTTP without TLS. */
    ROUTE_EDGE,        /* The router ends TLS. */
    ROUTE_PASSTHROUGH, /* The pod ends TLS. */
    ROUTE_REENCRYPT,   /* The router ends TLS, and begins another connection with TLS. */
};

/* Plain HTTP of a route with TLS. */
enum route_insecure { ROUTE_INSECURE_NONE, ROUTE_INSECURE_ALLOW, ROUTE_INSECURE_REDIRECT };

enum route_wildcard {
    ROUTE_WILDCARD_NONE,
    ROUTE_WILDCARD_SUBDOMAIN, /* All hosts with one label before the domain of 'host'. */
    ROUTE_WILDCARD_UNKNOWN,   /* Another text: no router serves the route. */
};

/* A service of the route's namespace. */
struct route_target {
    char *service;
    unsigned weight; /* 0 to 256; 1 when the object has none. */
};

/* A header that the router sets, or removes ('value' is NULL). */
struct route_header {
    char *name;
    char *value; /* In HAProxy's log format. */
};

struct route_headers {
    struct route_header *list;
    size_t n;
};

struct route {
    /* "NAMESPACE/NAME" is the route's key; 'uid' differs when the route was made anew. */
    char *namespace, *name, *uid;
    char *version;     /* resourceVersion */
    int64_t created_s; /* Seconds since 1970. */

    char *host;      /* "": none. */
    char *subdomain; /* "": none. */
    char *path;      /* "": all paths. */
    enum route_wildcard wildcard;

    struct route_target *targets; /* spec.to first. */
    size_t n_targets;
    char *port; /* Number or name of the endpoints' port; NULL: all ports. */

    enum route_termination termination;
    enum route_insecure insecure;
    /* PEM; NULL: absent. */
    char *certificate, *key, *ca, *destination_ca;
    char *external_certificate; /* Name of a secret with certificate and key; NULL: none. */
    struct route_headers request, response;
    /* The annotations under router.openshift.io/ and haproxy.router.openshift.io/: an object. */
    struct json *annotations;
    /* The first rule that the object breaks, with its field; NULL: none.  No router serves a route
     * with one. */
    char *wrong;
};

/* Reads a Route.  -EINVAL: it has no namespace, name or uid, or no time of creation.  Anything else
 * that is wrong is in 'wrong', so that a router can say it in the route's status. */
int route_parse(const struct json *obj, struct route **ret, struct err *e);
struct route *route_free(struct route *r);
DEFINE_CLEANUP(struct route *, route_free)

/* Replaces the host, as a router does that makes host names itself. */
void route_set_host(struct route *r, const char *host);
/* The annotation's text; NULL: absent, or not of the two prefixes. */
const char *route_annotation(const struct route *r, const char *name);
/* The host without its first label, for example "example.com" of "www.example.com": hosts of a
 * wildcard are those with one more label.  "" of a host with one label; borrowed. */
const char *route_domain(const struct route *r);
/* Order of age: negative when 'a' is older.  The time of creation, then the uid, as texts. */
int route_compare_age(const struct route *a, const struct route *b);
/* Whether both are the same object in the same version. */
bool route_is_same(const struct route *a, const struct route *b);
