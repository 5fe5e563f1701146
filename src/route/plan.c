/* SPDX-License-Identifier: Apache-2.0 */
#include "route/plan.h"

#include "api/kinds/route_fields.h"
#include "base/ip.h"
#include "base/mem.h"
#include "base/xxh64.h"

#include <stdio.h>

#define PREFIX "haproxy.router.openshift.io/"
#define MAX_WEIGHT 256u
#define MAX_SOURCES 61        /* Addresses of ip_whitelist; HAProxy reads 64 words a line. */
#define MAX_TIME_MS INT32_MAX /* HAProxy's longest time. */
/* Bytes of spec.httpHeaders in a direction: half of tune.maxrewrite.  HAProxy answers 500 when a
 * header does not fit. */
#define MAX_HEADERS_SIZE 4096

const char *route_plan_map_file(enum route_plan_map m)
{
    static const char *const names[ROUTE_N_MAPS] = {
        [ROUTE_MAP_HTTP] = "http.map",       [ROUTE_MAP_HTTP_WILDCARD] = "http-wildcard.map",
        [ROUTE_MAP_HTTPS] = "https.map",     [ROUTE_MAP_HTTPS_WILDCARD] = "https-wildcard.map",
        [ROUTE_MAP_SNI] = "sni.map",         [ROUTE_MAP_SNI_WILDCARD] = "sni-wildcard.map",
        [ROUTE_MAP_TIMEOUT] = "timeout.map", [ROUTE_MAP_HSTS] = "hsts.map",
        [ROUTE_MAP_COOKIE] = "cookie.map",
    };
    return names[m];
}

/* ---- values ---- */

int route_plan_time(const char *s, uint64_t *ret_ms)
{
    static const struct {
        const char *unit;
        uint64_t us;
    } units[] = {{"us", 1},
                 {"ms", 1000},
                 {"", 1000},
                 {"s", 1000000},
                 {"m", 60000000},
                 {"h", UINT64_C(3600000000)},
                 {"d", UINT64_C(86400000000)}};
    uint64_t v = 0;
    const char *p = s;
    if (*p < '1' || *p > '9') {
        return -EINVAL;
    }
    for (; *p >= '0' && *p <= '9'; p++) {
        v = v * 10 + (uint64_t) (*p - '0');
        if (v > UINT32_MAX) {
            return -EINVAL;
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        if (streq(p, units[i].unit)) {
            uint64_t ms = (v * units[i].us + 999) / 1000;
            *ret_ms = MIN(ms, MAX_TIME_MS);
            return 0;
        }
    }
    return -EINVAL;
}

bool route_plan_is_true(const char *s)
{
    return s && (streq(s, "1") || streq(s, "t") || streq(s, "T") || streq(s, "true") ||
                 streq(s, "TRUE") || streq(s, "True"));
}

static uint64_t annotation_time(const struct route *r, const char *name, uint64_t dflt)
{
    const char *v = route_annotation(r, name);
    uint64_t ms;
    return v && route_plan_time(v, &ms) == 0 ? ms : dflt;
}

static bool is_balance(const char *s)
{
    return streq(s, "roundrobin") || streq(s, "leastconn") || streq(s, "source") ||
           streq(s, "random");
}

static bool all_of(const char *s, const char *extra)
{
    for (; *s; s++) {
        bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z');
        if (!letter && !(*s >= '0' && *s <= '9') && !strchr(extra, *s)) {
            return false;
        }
    }
    return true;
}

/* "max-age=N", then ";includeSubDomains" and ";preload" in any order. */
static bool is_hsts(const char *s)
{
    const char *p = s + strlen("max-age=");
    if (!str_has_prefix(s, "max-age=") || *p < '0' || *p > '9' || strlen(s) > 100) {
        return false;
    }
    p += strspn(p, "0123456789");
    while (*p == ';') {
        p++;
        p += *p == ' ' ? 1 : 0;
        static const char *const words[] = {"includeSubDomains", "includeSubdomains", "preload"};
        size_t i = 0;
        while (i < ARRAY_SIZE(words) && !str_has_prefix(p, words[i])) {
            i++;
        }
        if (i == ARRAY_SIZE(words)) {
            return false;
        }
        p += strlen(words[i]);
    }
    return *p == '\0';
}

/* ---- the shape ---- */

static bool has_cookie(const struct route *r)
{
    return !route_plan_is_true(route_annotation(r, PREFIX "disable_cookies"));
}

static const char *balance_of(const struct route_plan_options *o, const struct route *r)
{
    const char *v = route_annotation(r, PREFIX "balance");
    if (v && is_balance(v)) {
        return v;
    }
    if (r->termination == ROUTE_PASSTHROUGH) {
        return o->tcp_balance;
    }
    if (o->balance) {
        return o->balance;
    }
    size_t weighted = 0;
    for (size_t i = 0; i < r->n_targets; i++) {
        weighted += r->targets[i].weight > 0;
    }
    return weighted > 1 ? "roundrobin" : "leastconn";
}

/* Fails closed: with a wrong item the route is not served, instead of being open to every client.
 * */
static int write_whitelist(const struct route *r, struct strbuf *out, struct err *e)
{
    const char *v = route_annotation(r, PREFIX "ip_whitelist");
    v = v ? v : route_annotation(r, PREFIX "ip_allowlist");
    if (!v || !*v) {
        return 0;
    }
    CLEANUP_FREE char *list = xstrdup(v);
    char *rest = NULL;
    unsigned n = 0;
    CLEANUP_STRBUF struct strbuf line = STRBUF_INIT;
    for (char *item = strtok_r(list, " \t\n", &rest); item; item = strtok_r(NULL, " \t\n", &rest)) {
        struct ip4_prefix p;
        uint32_t ip;
        if (ip4_parse(item, &ip) == 0) {
            p = (struct ip4_prefix){ip, 32};
        } else if (prefix_parse(item, &p, NULL) < 0) {
            return err_set(e, -EINVAL,
                           "annotation " PREFIX "ip_whitelist: \"%.64s\" is neither an IPv4 "
                           "address nor a network",
                           item);
        }
        if (n++ % MAX_SOURCES == 0) {
            strbuf_adds(&line, line.size ? "\n    acl allowed src" : "    acl allowed src");
        }
        strbuf_addf(&line, " %s/%u", IP4_TEXT(p.addr), p.len);
    }
    if (n > 0) {
        strbuf_addf(out, "%s\n    tcp-request content reject if !allowed\n", strbuf_cstr(&line));
    }
    return 0;
}

static bool annotation_number(const struct route *r, const char *name, uint64_t max, uint64_t *ret)
{
    const char *v = route_annotation(r, name);
    return v && str_to_u64(v, max, ret) == 0 && *ret > 0;
}

static void write_rate_limits(const struct route *r, bool http, struct strbuf *out)
{
    if (!route_plan_is_true(route_annotation(r, PREFIX "rate-limit-connections"))) {
        return;
    }
    uint64_t n;
    strbuf_adds(out, "    stick-table type ip size 100k expire 30s store "
                     "conn_cur,conn_rate(3s),http_req_rate(10s)\n"
                     "    tcp-request content track-sc2 src\n");
    if (annotation_number(r, PREFIX "rate-limit-connections.concurrent-tcp", 1000000, &n)) {
        strbuf_addf(out, "    tcp-request content reject if { src_conn_cur ge %u }\n",
                    (unsigned) n);
    }
    if (annotation_number(r, PREFIX "rate-limit-connections.rate-tcp", 1000000, &n)) {
        strbuf_addf(out, "    tcp-request content reject if { src_conn_rate ge %u }\n",
                    (unsigned) n);
    }
    if (http && annotation_number(r, PREFIX "rate-limit-connections.rate-http", 1000000, &n)) {
        strbuf_addf(out, "    tcp-request content reject if { src_http_req_rate ge %u }\n",
                    (unsigned) n);
    }
}

/* The path of the route is replaced by the annotation's value. */
static int write_rewrite(const struct route *r, struct strbuf *out, struct err *e)
{
    const char *to = route_annotation(r, PREFIX "rewrite-target");
    if (!to || !*to) {
        return 0;
    }
    if (!all_of(to, "/_.~-") || !all_of(r->path, "/_.~-") || *to != '/') {
        return err_set(e, -EINVAL,
                       "annotation " PREFIX "rewrite-target: the value and spec.path can have "
                       "letters, digits and /_.~- only");
    }
    size_t n = strlen(r->path);
    CLEANUP_STRBUF struct strbuf pattern = STRBUF_INIT;
    for (size_t i = 0; i < n; i++) {
        strbuf_adds(&pattern, r->path[i] == '.' ? "[.]" : "");
        strbuf_add(&pattern, &r->path[i], r->path[i] == '.' ? 0 : 1);
    }
    bool slash = n == 0 || r->path[n - 1] == '/';
    strbuf_addf(out, "    http-request replace-path '^%s%s(.*)$' '%s%s\\1'\n",
                strbuf_cstr(&pattern), slash ? "" : "/?", to,
                str_has_suffix(to, "/") || slash ? "" : "/");
    return 0;
}

/* One word of the configuration, in which HAProxy replaces only the expressions of a log format. */
static void write_quoted(const char *s, struct strbuf *out)
{
    strbuf_adds(out, "'");
    for (; *s; s++) {
        if (*s == '\'') {
            strbuf_adds(out, "'\\''");
        } else {
            strbuf_add(out, s, 1);
        }
    }
    strbuf_adds(out, "'");
}

/* HAProxy writes the headers of a message's framing itself: with another value, the bytes after a
 * response could be taken for the response to a request of another client. */
static const char *check_header(const struct route_header *h, bool request)
{
    static const char *const framing[] = {"connection", "content-length", "transfer-encoding",
                                          "upgrade"};
    for (size_t i = 0; i < ARRAY_SIZE(framing); i++) {
        if (strcasecmp(h->name, framing[i]) == 0) {
            return "the router does not change the headers connection, content-length, "
                   "transfer-encoding and upgrade";
        }
    }
    if (h->value && !*h->value) {
        return "the value is empty";
    }
    const char *wrong = route_check_header_name(h->name);
    return wrong ? wrong : h->value ? route_check_header_value(h->value, request) : NULL;
}

static int write_header_list(const struct route_headers *list, bool request, struct strbuf *out,
                             struct err *e)
{
    const char *direction = request ? "request" : "response";
    size_t size = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct route_header *h = &list->list[i];
        const char *wrong = check_header(h, request);
        if (wrong) {
            return err_set(e, -EINVAL, "spec.httpHeaders.actions.%s: \"%.64s\": %s", direction,
                           h->name, wrong);
        }
        size += h->value ? strlen(h->name) + strlen(h->value) : 0;
        strbuf_addf(out, "    http-%s %s-header ", direction, h->value ? "set" : "del");
        write_quoted(h->name, out);
        if (h->value) {
            strbuf_adds(out, " ");
            write_quoted(h->value, out);
        }
        strbuf_adds(out, "\n");
    }
    return size <= MAX_HEADERS_SIZE
               ? 0
               : err_set(e, -EINVAL,
                         "spec.httpHeaders.actions.%s: the names and values have more than %d "
                         "bytes together",
                         direction, MAX_HEADERS_SIZE);
}

static int write_headers(const struct route *r, struct strbuf *out, struct err *e)
{
    int err = write_header_list(&r->request, true, out, e);
    return err < 0 ? err : write_header_list(&r->response, false, out, e);
}

static void write_http_options(const struct route_plan_options *o, struct strbuf *out)
{
    strbuf_addf(out,
                "    http-request set-timeout server var(txn.be),map_str_int(%s/%s) if { "
                "var(txn.be),map_str_int(%s/%s) -m found }\n",
                o->dir, route_plan_map_file(ROUTE_MAP_TIMEOUT), o->dir,
                route_plan_map_file(ROUTE_MAP_TIMEOUT));
    strbuf_addf(out,
                "    http-response set-header Strict-Transport-Security "
                "%%[var(txn.be),map(%s/%s)] if { var(txn.tls) -m found } { "
                "var(txn.be),map(%s/%s) -m found }\n",
                o->dir, route_plan_map_file(ROUTE_MAP_HSTS), o->dir,
                route_plan_map_file(ROUTE_MAP_HSTS));
}

/* The name of the cookie is checked. */
static void write_cookie(const struct route_plan_options *o, const char *name, bool secure,
                         bool with_path, struct strbuf *out)
{
    strbuf_addf(out,
                "    cookie %s insert indirect nocache httponly dynamic%s\n"
                "    dynamic-cookie-key %s\n",
                name, secure ? " secure" : "", o->cookie_key);
    if (with_path) {
        strbuf_addf(out,
                    "    http-after-response replace-header Set-Cookie '^(%s=.*path=)/(.*)$' "
                    "'\\1%%[var(txn.be),map(%s/%s)]\\2'\n",
                    name, o->dir, route_plan_map_file(ROUTE_MAP_COOKIE));
    }
}

static bool has_options(const struct route *r)
{
    const char *hsts = route_annotation(r, PREFIX "hsts_header");
    return annotation_time(r, PREFIX "timeout", 0) > 0 || (hsts && is_hsts(hsts));
}

static bool has_path(const struct route *r)
{
    return *r->path && strspn(r->path, "/") != strlen(r->path);
}

static const char *cookie_name_of(const struct route_plan_options *o, const struct route *r)
{
    const char *v = route_annotation(r, "router.openshift.io/cookie_name");
    return v && *v && strlen(v) <= 128 && all_of(v, "_-") ? v : o->cookie_name;
}

static void write_balance(const char *balance, struct strbuf *out)
{
    strbuf_addf(out, "    balance %s\n", balance);
    if (streq(balance, "source")) {
        strbuf_adds(out, "    hash-type consistent\n");
    }
}

static int make_shape(const struct route_plan_options *o, const struct route *r,
                      struct route_plan *p, struct err *e)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    bool http = r->termination != ROUTE_PASSTHROUGH;
    const char *cookie = cookie_name_of(o, r);
    strbuf_addf(&out, "    mode %s\n", http ? "http" : "tcp");
    write_balance(balance_of(o, r), &out);
    p->common = streq(cookie, o->cookie_name);
    size_t common_size = 0;
    if (http) {
        p->cookie = has_cookie(r);
        if (p->cookie) {
            bool secure = r->termination != ROUTE_PLAIN && r->insecure != ROUTE_INSECURE_ALLOW;
            write_cookie(o, cookie, secure, has_path(r), &out);
        }
        if (has_options(r)) {
            write_http_options(o, &out);
        }
        common_size = out.size;
        int err = write_rewrite(r, &out, e);
        if (err == 0) {
            err = write_headers(r, &out, e);
        }
        if (err < 0) {
            return err;
        }
    } else {
        if (r->request.n + r->response.n > 0) {
            return err_set(
                e, -EINVAL,
                "spec.httpHeaders: the router cannot change the headers of a passthrough "
                "route");
        }
        common_size = out.size;
        uint64_t ms = annotation_time(r, PREFIX "timeout", 0);
        if (ms > 0) {
            strbuf_addf(&out, "    timeout tunnel %llums\n", (unsigned long long) ms);
        }
    }
    int err = write_whitelist(r, &out, e);
    if (err < 0) {
        return err;
    }
    write_rate_limits(r, http, &out);
    p->common = p->common && out.size == common_size;
    p->passthrough = !http;
    (void) snprintf(p->shape_id, sizeof p->shape_id, "%016llx",
                    (unsigned long long) xxh64(strbuf_cstr(&out), out.size, 0));
    p->shape = strbuf_steal(&out);
    return 0;
}

/* ---- entries of maps ---- */

static void add_entry(struct route_plan *p, enum route_plan_map map, char *key, const char *value)
{
    p->entries = xreallocarray(p->entries, p->n_entries + 1, sizeof *p->entries);
    p->entries[p->n_entries++] = (struct route_plan_entry){map, key, value ? xstrdup(value) : NULL};
}

/* The keys of host and path; 'value' NULL: the backend. */
static void add_paths(struct route_plan *p, const struct route *r, enum route_plan_map map,
                      const char *value)
{
    const char *host = r->host;
    if (r->wildcard == ROUTE_WILDCARD_SUBDOMAIN) {
        host = route_domain(r);
        map++;
    }
    if (!has_path(r)) {
        add_entry(p, map, xasprintf("%s/", host), value);
    } else if (str_has_suffix(r->path, "/")) {
        add_entry(p, map, xasprintf("%s%s", host, r->path), value);
    } else {
        add_entry(p, map, xasprintf("%s%s?", host, r->path), value);
        add_entry(p, map, xasprintf("%s%s/", host, r->path), value);
    }
}

static void make_entries(const struct route *r, struct route_plan *p)
{
    if (r->termination == ROUTE_PLAIN ||
        (r->termination != ROUTE_PASSTHROUGH && r->insecure == ROUTE_INSECURE_ALLOW)) {
        add_paths(p, r, ROUTE_MAP_HTTP, NULL);
    } else if (r->insecure == ROUTE_INSECURE_REDIRECT) {
        add_paths(p, r, ROUTE_MAP_HTTP, ROUTE_PLAN_REDIRECT);
    }
    if (r->termination == ROUTE_EDGE || r->termination == ROUTE_REENCRYPT) {
        add_paths(p, r, ROUTE_MAP_HTTPS, NULL);
    } else if (r->termination == ROUTE_PASSTHROUGH) {
        bool wild = r->wildcard == ROUTE_WILDCARD_SUBDOMAIN;
        add_entry(p, wild ? ROUTE_MAP_SNI_WILDCARD : ROUTE_MAP_SNI,
                  xstrdup(wild ? route_domain(r) : r->host), NULL);
    }
    if (r->termination == ROUTE_PASSTHROUGH) {
        return;
    }
    uint64_t ms = annotation_time(r, PREFIX "timeout", 0);
    const char *hsts = route_annotation(r, PREFIX "hsts_header");
    if (ms > 0) {
        CLEANUP_FREE char *text = xasprintf("%llu", (unsigned long long) ms);
        add_entry(p, ROUTE_MAP_TIMEOUT, NULL, text);
    }
    if (hsts && is_hsts(hsts) && r->termination != ROUTE_PLAIN) {
        add_entry(p, ROUTE_MAP_HSTS, NULL, hsts);
    }
    if (has_path(r) && has_cookie(r)) {
        add_entry(p, ROUTE_MAP_COOKIE, NULL, r->path);
    }
}

/* ---- servers ---- */

/* Weights of the servers: each target's weight divided by its endpoints, scaled so that the largest
 * is 256. */
static double largest_share(const struct route *r, const struct route_plan_service *s)
{
    double max = 0;
    for (size_t i = 0; i < r->n_targets; i++) {
        double share = s[i].n ? (double) r->targets[i].weight / (double) s[i].n : 0;
        max = MAX(max, share);
    }
    return max;
}

static unsigned weight_of(double share, double max)
{
    double w = max > 0 ? share * MAX_WEIGHT / max : 0;
    return w <= 0 ? 0 : w < 1 ? 1 : MIN((unsigned) w, MAX_WEIGHT);
}

static bool has_server(const struct route_plan *p, const char *name)
{
    for (size_t i = 0; i < p->n_servers; i++) {
        if (streq(p->servers[i].name, name)) {
            return true;
        }
    }
    return false;
}

/* The words after "ADDRESS:PORT" and "check". */
static void write_server_options(const struct route_plan_options *o, const struct route *r,
                                 const struct route_plan *p, const char *service,
                                 struct strbuf *out)
{
    uint64_t n;
    if (annotation_number(r, PREFIX "pod-concurrent-connections", 1000000, &n)) {
        strbuf_addf(out, " maxconn %u", (unsigned) n);
    }
    if (r->termination == ROUTE_REENCRYPT) {
        if (p->ca_file) {
            strbuf_addf(out, " ssl verify required ca-file %s/certs/%s", o->dir, p->ca_file);
        } else {
            strbuf_addf(out, " ssl verify required ca-file %s verifyhost %s.%s.svc", o->service_ca,
                        service, r->namespace);
        }
    }
}

static void make_servers(const struct route_plan_options *o, const struct route *r,
                         const struct route_plan_service *s, struct route_plan *p)
{
    double max = largest_share(r, s);
    size_t total = 0;
    bool idle = false;
    for (size_t i = 0; i < r->n_targets; i++) {
        total += s[i].n;
        idle = idle || s[i].idle;
    }
    uint64_t inter =
        annotation_time(r, "router.openshift.io/haproxy.health.check.interval", o->check_ms);
    p->servers = xcalloc(total + 1, sizeof *p->servers);
    for (size_t i = 0; i < r->n_targets; i++) {
        double share = s[i].n ? (double) r->targets[i].weight / (double) s[i].n : 0;
        unsigned weight = weight_of(share, max);
        if (weight == 0 && r->termination == ROUTE_PASSTHROUGH) {
            continue;
        }
        CLEANUP_STRBUF struct strbuf options = STRBUF_INIT;
        bool check = total > 1 && !idle;
        if (check) {
            strbuf_addf(&options, " check inter %llums", (unsigned long long) inter);
        }
        write_server_options(o, r, p, r->targets[i].service, &options);
        for (size_t j = 0; j < s[i].n; j++) {
            const struct route_plan_endpoint *at = &s[i].endpoints[j];
            CLEANUP_STRBUF struct strbuf name = STRBUF_INIT;
            strbuf_addf(&name, "%s:%u", IP4_TEXT(at->ip), at->port);
            if (options.size > 0) {
                strbuf_addf(&name, "-%08x", hash_string(strbuf_cstr(&options)));
            }
            if (has_server(p, strbuf_cstr(&name))) {
                continue;
            }
            p->servers[p->n_servers++] = (struct route_plan_server){
                .name = strbuf_steal(&name),
                .args = xasprintf("%s:%u%s", IP4_TEXT(at->ip), at->port, strbuf_cstr(&options)),
                .weight = weight,
                .check = check,
            };
        }
    }
}

/* ---- plans ---- */

/* The characters that a request's path can have (RFC 3986, section 3.3). */
static int check_path(const struct route *r, struct err *e)
{
    return all_of(r->path, "-._~!$&'()*+,;=:@%/")
               ? 0
               : err_set(e, -EINVAL,
                         "spec.path: a request cannot have this path: characters other than "
                         "letters, digits and -._~!$&'()*+,;=:@%%/ must be written as %%XX");
}

/* The claims have verified the host; this is the last barrier before the configuration. */
static int check_host(const struct route *r, struct err *e)
{
    return *r->host && all_of(r->host, "-.") && strlen(r->host) <= 253 &&
                   all_of(r->namespace, "-.") && all_of(r->name, "-.")
               ? 0
               : err_set(e, -EINVAL, "spec.host: not a host name");
}

static int make_certs(const struct route_plan_options *o, const struct route *r, const char *cert,
                      struct route_plan *p, struct err *e)
{
    if (cert && (r->termination == ROUTE_EDGE || r->termination == ROUTE_REENCRYPT)) {
        p->cert = xstrdup(cert);
        p->cert_file = xasprintf("%s:%s.pem", r->namespace, r->name);
        p->cert_host = r->wildcard == ROUTE_WILDCARD_SUBDOMAIN ? xasprintf("*.%s", route_domain(r))
                                                               : xstrdup(r->host);
    }
    if (r->termination != ROUTE_REENCRYPT) {
        return 0;
    }
    if (r->destination_ca && *r->destination_ca) {
        p->ca = xstrdup(r->destination_ca);
        p->ca_file =
            xasprintf("ca-%016llx.pem", (unsigned long long) xxh64(p->ca, strlen(p->ca), 0));
    } else if (!o->service_ca) {
        return err_set(e, -EINVAL,
                       "spec.tls.destinationCACertificate: required: this router has no CA of "
                       "services");
    }
    return 0;
}

int route_plan_make(const struct route_plan_options *o, const struct route *r,
                    const struct route_plan_service *services, const char *cert,
                    struct route_plan **ret, struct err *e)
{
    CLEANUP(route_plan_free) struct route_plan *p = NEW(struct route_plan);
    int err = check_host(r, e);
    if (err == 0) {
        err = check_path(r, e);
    }
    if (err == 0) {
        err = make_shape(o, r, p, e);
    }
    if (err == 0) {
        err = make_certs(o, r, cert, p, e);
    }
    if (err < 0) {
        return err;
    }
    make_entries(r, p);
    make_servers(o, r, services, p);
    *ret = TAKE(p);
    return 0;
}

struct route_plan *route_plan_free(struct route_plan *p)
{
    if (!p) {
        return NULL;
    }
    for (size_t i = 0; i < p->n_entries; i++) {
        free(p->entries[i].key);
        free(p->entries[i].value);
    }
    for (size_t i = 0; i < p->n_servers; i++) {
        free(p->servers[i].name);
        free(p->servers[i].args);
    }
    if (p->cert) {
        explicit_bzero(p->cert, strlen(p->cert));
    }
    free(p->cert);
    free(p->cert_file);
    free(p->cert_host);
    free(p->ca);
    free(p->ca_file);
    free(p->entries);
    free(p->servers);
    free(p->shape);
    free(p);
    return NULL;
}

/* Plain and encrypted routes with one or several services, with and without options. */
struct route_plan *route_plan_common(const struct route_plan_options *o, size_t i)
{
    static const struct {
        enum route_termination termination;
        unsigned targets;
        const char *balance, *timeout;
        bool path;
    } rows[] = {
        {ROUTE_EDGE, 1, NULL, NULL},        {ROUTE_PLAIN, 1, NULL, NULL},
        {ROUTE_EDGE, 2, NULL, NULL},        {ROUTE_PLAIN, 2, NULL, NULL},
        {ROUTE_EDGE, 1, NULL, "1s"},        {ROUTE_PLAIN, 1, NULL, "1s"},
        {ROUTE_EDGE, 2, NULL, "1s"},        {ROUTE_PLAIN, 2, NULL, "1s"},
        {ROUTE_EDGE, 1, "source", "1s"},    {ROUTE_PLAIN, 1, "source", "1s"},
        {ROUTE_EDGE, 1, "source", NULL},    {ROUTE_PLAIN, 1, "source", NULL},
        {ROUTE_PASSTHROUGH, 1, NULL, NULL}, {ROUTE_EDGE, 1, NULL, NULL, true},
        {ROUTE_PLAIN, 1, NULL, NULL, true},
    };
    if (i >= ARRAY_SIZE(rows)) {
        return NULL;
    }
    char none[] = "", host[] = "h", path[] = "/p";
    struct route_target targets[2] = {{none, 1}, {none, 1}};
    CLEANUP(json_free) struct json *annotations = json_object();
    json_set_string(annotations, PREFIX "balance", rows[i].balance);
    json_set_string(annotations, PREFIX "timeout", rows[i].timeout);
    const struct route r = {.namespace = none,
                            .name = none,
                            .host = host,
                            .path = rows[i].path ? path : none,
                            .targets = targets,
                            .n_targets = rows[i].targets,
                            .termination = rows[i].termination,
                            .annotations = annotations};
    struct route_plan *p = NEW(struct route_plan);
    (void) make_shape(o, &r, p, NULL);
    return p;
}
