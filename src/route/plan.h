/* SPDX-License-Identifier: Apache-2.0 */
/* HAProxy's part for a route: entries of maps, a backend with its servers, certificates.
 *
 * The router serves most changes through HAProxy's runtime API, which can change maps, servers and
 * certificates, but cannot add a backend or change its options.  Therefore a backend belongs to no
 * route: it has a *shape* (the text of its options), the configuration has more backends of the
 * common shapes than there are routes, and a map says which backend serves a host and path.  A new
 * route takes a free backend of its shape; only when there is none the router has to reload.
 * Options of a route that a map can carry (timeouts, HSTS) are no part of the shape.
 *
 * The request's key is HOST/PATH with "?" at its end, which no path contains.  A route with the
 * path "/sub" has the keys "HOST/sub?" and "HOST/sub/"; HAProxy takes the longest key that the
 * request's key begins with.  So "/sub" and "/sub/x" are served, "/subpar" is not, and the
 * longest path wins.
 *
 * No text of a route reaches the configuration unchecked: a value has a grammar of its own, or is
 * refused.  Pure; the caller owns a plan, which is constant. */
#pragma once

#include "route/route.h"

/* Options of the whole proxy.  All texts are borrowed. */
struct route_plan_options {
    const char *dir; /* Folder of the maps, certificates and sockets. */
    uint16_t http_port, https_port;
    const char *address; /* "": all IPv4 addresses. */
    bool wildcards, passthrough, proxy_protocol, http2, strict_sni, compression;
    const char *compression_mime;
    const char *balance;     /* ROUTER_LOAD_BALANCE_ALGORITHM; NULL: leastconn or roundrobin. */
    const char *tcp_balance; /* ROUTER_TCP_BALANCE_SCHEME */
    const char *cookie_name, *cookie_key;
    const char *service_ca;            /* File; NULL: re-encrypt needs a CA of the route. */
    unsigned max_connections, threads; /* 0: HAProxy's own. */
    const char *ciphers;               /* NULL: intermediate. */
    const char *syslog_address, *log_level;
    bool json_log;
    const char *errorfile_503; /* NULL: HAProxy's own page. */
    uint64_t connect_ms, client_ms, client_fin_ms, server_ms, server_fin_ms, tunnel_ms;
    uint64_t request_ms, keepalive_ms, check_ms, hard_stop_ms;
};

struct route_plan_endpoint {
    uint32_t ip;
    uint16_t port;
};
/* Endpoints of a target of the route, in the order of route.targets. */
struct route_plan_service {
    const struct route_plan_endpoint *endpoints;
    size_t n;
    bool idle; /* The only endpoint is the service's own address: it is not probed. */
};

enum route_plan_map {
    ROUTE_MAP_HTTP,
    ROUTE_MAP_HTTP_WILDCARD,
    ROUTE_MAP_HTTPS,
    ROUTE_MAP_HTTPS_WILDCARD,
    ROUTE_MAP_SNI,
    ROUTE_MAP_SNI_WILDCARD,
    ROUTE_MAP_TIMEOUT, /* By backend: milliseconds. */
    ROUTE_MAP_HSTS,    /* By backend: the header's value. */
    ROUTE_MAP_COOKIE,  /* By backend: the path of the cookie. */
    ROUTE_N_MAPS
};
/* "http.map" */
const char *route_plan_map_file(enum route_plan_map m);
#define ROUTE_PLAN_REDIRECT "redirect" /* In place of a backend: answer with a redirect to HTTPS. */

struct route_plan_entry {
    enum route_plan_map map;
    char *key;   /* NULL: the backend's name. */
    char *value; /* NULL: the backend's name. */
};
struct route_plan_server {
    char *name; /* Says all that distinguishes the server, but for its weight. */
    char *args; /* "10.1.2.3:8080 check inter 5000ms", as in the configuration, without a weight. */
    unsigned weight;
    bool check;
};

#define ROUTE_SHAPE_SIZE 17
struct route_plan {
    char *shape; /* Lines of the backend. */
    char shape_id[ROUTE_SHAPE_SIZE];
    bool common; /* Further backends of the shape are made before they are needed. */
    bool passthrough, cookie;
    struct route_plan_entry *entries;
    size_t n_entries;
    struct route_plan_server *servers;
    size_t n_servers;
    char *cert_file, *cert_host; /* "NAMESPACE:NAME.pem" and "www.example.com"; NULL: none. */
    char *cert;                  /* PEM of certificate, chain and key. */
    char *ca_file, *ca;          /* "ca-HASH.pem" and PEM; NULL: none. */
};

/* -EINVAL: the route cannot be served; the text is for its status.  'cert' (NULL: none) is PEM that
 * the caller has verified. */
int route_plan_make(const struct route_plan_options *o, const struct route *r,
                    const struct route_plan_service *services, const char *cert,
                    struct route_plan **ret, struct err *e);
struct route_plan *route_plan_free(struct route_plan *p);
DEFINE_CLEANUP(struct route_plan *, route_plan_free)

/* The shapes of which every configuration has free backends; 'i' counts from 0, NULL: no more.
 * Owned. */
struct route_plan *route_plan_common(const struct route_plan_options *o, size_t i);

/* ---- the configuration ---- */

/* The fixed part: global options, front ends, and the backends that no route uses.  'description'
 * is what "show info" answers. */
void route_plan_write_head(const struct route_plan_options *o, const char *description,
                           struct strbuf *out);
/* A backend of the shape of 'shape'; 'p' has its servers; NULL: none. */
void route_plan_write_backend(const char *name, const struct route_plan *shape,
                              const struct route_plan *p, struct strbuf *out);
/* A line of a list of certificates. */
void route_plan_write_cert(const struct route_plan_options *o, const struct route_plan *p,
                           struct strbuf *out);

/* A duration as the original's annotations and variables have it: "[1-9][0-9]*(us|ms|s|m|h|d)?",
 * milliseconds without a unit.  -EINVAL. */
int route_plan_time(const char *s, uint64_t *ret_ms);
/* "1", "t", "true" and their upper case. */
bool route_plan_is_true(const char *s);
