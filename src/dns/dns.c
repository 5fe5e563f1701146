/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/dns.h"

#include "base/prom.h"

#include <malloc.h>

#define CACHE_BYTES (4u << 20)

struct dns {
    struct loop *loop;
    struct dns_zone *zone;
    struct dns_cache *cache;
    struct dns_forwarder *forwarder;
    struct dns_server_options options;
    struct dns_server *server; /* NULL: does not listen yet. */
    uint32_t address;
    uint16_t port;
    struct services_watch *services;
};

int dns_new(struct loop *l, const struct dns_options *o, struct dns **ret, struct err *e)
{
    struct dns_zone *zone;
    int r = dns_zone_new(o->domain ? o->domain : DNS_DEFAULT_DOMAIN, &zone, e);
    if (r < 0) {
        return r;
    }
    struct dns *d = NEW(struct dns);
    d->loop = l;
    d->zone = zone;
    d->cache = dns_cache_new(CACHE_BYTES);
    if (!o->servers || o->servers->n) {
        d->forwarder = dns_forwarder_new(l, d->cache, o->servers,
                                         o->resolv_conf ? o->resolv_conf : DNS_RESOLV_CONF);
    }
    d->options = (struct dns_server_options){
        .responder = {.zone = zone, .cache = d->cache, .recurse_all = o->recurse_all},
        .forwarder = d->forwarder,
        .threads = o->threads};
    *ret = d;
    return 0;
}

struct dns *dns_free(struct dns *d)
{
    if (d) {
        if (d->services) {
            services_watch_remove(d->services, d);
        }
        dns_server_free(d->server);
        dns_forwarder_free(d->forwarder);
        dns_cache_free(d->cache);
        dns_zone_free(d->zone);
        free(d);
    }
    return NULL;
}

static int key_of(const char *name, struct dns_key *ret)
{
    *ret = (struct dns_key){.type = DNS_A};
    return dns_name_parse(name, &ret->name);
}

int dns_ask(struct dns *d, const char *name, dns_forwarder_fn *fn, void *ctx)
{
    struct dns_key key;
    if (key_of(name, &key) < 0) {
        return -EINVAL;
    }
    /* A client of its own, whose questions do not use up the share of pods. */
    return d->forwarder ? dns_forwarder_ask(d->forwarder, &key, 0, fn, ctx) : -EHOSTUNREACH;
}

void dns_forget(struct dns *d, void *ctx)
{
    if (d->forwarder) {
        dns_forwarder_forget(d->forwarder, ctx);
    }
}

bool dns_known(struct dns *d, const char *name, struct dns_cached *ret)
{
    struct dns_key key;
    return key_of(name, &key) == 0 &&
           dns_cache_get(d->cache, &key, loop_now_ms(d->loop), false, ret);
}

struct dns_zone *dns_zone_of(struct dns *d)
{
    return d->zone;
}

static void service_changed(void *ctx, const struct sdn_service *old, const struct sdn_service *s)
{
    struct dns *d = ctx;
    if (s) {
        dns_zone_set_service(d->zone, s);
    } else {
        dns_zone_remove_service(d->zone, old->namespace, old->name);
    }
}

static void services_synced(void *ctx)
{
    struct dns *d = ctx;
    dns_zone_set_complete(d->zone);
    malloc_trim(0); /* Much memory of the initial list was temporary. */
}

void dns_follow(struct dns *d, struct services_watch *w)
{
    static const struct services_listener ops = {.changed = service_changed,
                                                 .synced = services_synced};
    d->services = w;
    services_watch_add(w, &ops, d);
}

/* Sets the addresses that must not be queried, as they are ours. */
static void set_own(struct dns *d)
{
    struct dns_servers own = {.n = 1};
    own.at[0].v4 = (struct sockaddr_in){.sin_family = AF_INET,
                                        .sin_port = htons(dns_server_port(d->server)),
                                        .sin_addr = {htonl(d->address)}};
    if (d->address == 0) { /* Listening at every address, the host's own ones lead here, too. */
        own.at[0].v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    if (d->forwarder) {
        dns_forwarder_set_own(d->forwarder, &own);
    }
}

int dns_listen(struct dns *d, uint32_t address, uint16_t port, struct err *e)
{
    struct dns_server *s;
    if (d->server && d->address == address && d->port == port) {
        return 0;
    }
    int r = dns_server_new(d->loop, &d->options, address, port, &s, e);
    if (r < 0) {
        return r;
    }
    dns_server_free(d->server);
    d->server = s;
    d->address = address;
    d->port = port;
    dns_zone_set_server(d->zone, address);
    set_own(d);
    return 0;
}

uint16_t dns_port(const struct dns *d)
{
    return d->server ? dns_server_port(d->server) : 0;
}

/* ---- metrics ---- */

/* Values of the rows. */
struct facts {
    uint64_t n[DNS_COUNTERS];
    size_t upstreams, upstreams_up;
    struct dns_forwarder_counters forwarder;
    size_t cache_bytes, cache_entries, services;
    bool connected;
};

static void write_answers(const struct prom_metric *m, const void *facts, struct strbuf *out)
{
    static const char *const rcodes[] = {"NOERROR",  "FORMERR", "SERVFAIL",
                                         "NXDOMAIN", "NOTIMP",  "REFUSED"};
    const struct facts *f = facts;
    for (size_t i = 0; i < ARRAY_SIZE(rcodes); i++) {
        strbuf_addf(out, "%s{rcode=\"%s\"} %lu\n", m->name, rcodes[i], f->n[DNS_COUNT_RCODE + i]);
    }
}

#define FACT(member) PROM_MEMBER(struct facts, member)
#define GAUGE(metric, member, text) PROM_VALUE(metric, "gauge", text, struct facts, member)
#define COUNTER(metric, member, text) PROM_VALUE(metric, "counter", text, struct facts, member)
#define QUERIES(transport, id)                                                              \
    {                                                                                       \
        .name = "tenet_dns_queries_total", .type = "counter",                               \
        .help = "Messages received, by transport.", .label = "transport=\"" transport "\"", \
        FACT(n[id])                                                                         \
    }

static const struct prom_metric server_rows[] = {
    QUERIES("udp", DNS_COUNT_UDP),
    QUERIES("tcp", DNS_COUNT_TCP),
    {.name = "tenet_dns_answers_total",
     .type = "counter",
     .help = "Answers, by result.",
     .label = "rcode",
     .write = write_answers},
    COUNTER("tenet_dns_cluster_answers_total", n[DNS_COUNT_CLUSTER],
            "Answers made from services and endpoints alone."),
    COUNTER("tenet_dns_cached_answers_total", n[DNS_COUNT_CACHED],
            "Answers for names outside the cluster that came from the cache."),
    COUNTER("tenet_dns_forwarded_total", n[DNS_COUNT_FORWARDED],
            "Queries that were forwarded to other name servers."),
    COUNTER("tenet_dns_truncated_total", n[DNS_COUNT_TRUNCATED], "Answers that were truncated."),
    COUNTER("tenet_dns_dropped_total", n[DNS_COUNT_DROPPED],
            "Messages that were not answered: not a query, or too many waiting."),
};

static const struct prom_metric forwarder_rows[] = {
    GAUGE("tenet_dns_upstreams", upstreams, "Name servers that queries are forwarded to."),
    GAUGE("tenet_dns_upstreams_up", upstreams_up, "Name servers of these that answer."),
    COUNTER("tenet_dns_upstream_queries_total", forwarder.asked, "Queries sent to name servers."),
    COUNTER("tenet_dns_upstream_timeouts_total", forwarder.timeouts,
            "Queries to name servers without an answer in time."),
    COUNTER("tenet_dns_upstream_failures_total", forwarder.failed,
            "Names for which no name server had an answer."),
    COUNTER("tenet_dns_upstream_wrong_answers_total", forwarder.wrong,
            "Answers that did not match the query, and were ignored."),
    COUNTER("tenet_dns_upstream_tcp_total", forwarder.tcp, "Queries repeated over TCP."),
    COUNTER("tenet_dns_stale_answers_total", forwarder.stale,
            "Expired answers that were served because no name server answered."),
    COUNTER("tenet_dns_forward_refused_total", forwarder.refused,
            "Queries that were not forwarded because too many were waiting."),
};

static const struct prom_metric zone_rows[] = {
    GAUGE("tenet_dns_cache_bytes", cache_bytes, "Memory of the cached answers."),
    GAUGE("tenet_dns_cache_entries", cache_entries, "Cached answers."),
    GAUGE("tenet_dns_services", services, "Services that are known."),
    GAUGE("tenet_dns_master_connected", connected,
          "1 while changes of services arrive; 0: the state known last is served."),
};

enum { SERVER_TABLE, FORWARDER_TABLE, ZONE_TABLE };

const struct prom_table dns_metric_tables[DNS_METRIC_TABLES] = {
    [SERVER_TABLE] = {server_rows, ARRAY_SIZE(server_rows)},
    [FORWARDER_TABLE] = {forwarder_rows, ARRAY_SIZE(forwarder_rows)},
    [ZONE_TABLE] = {zone_rows, ARRAY_SIZE(zone_rows)},
};

void dns_write_metrics(struct dns *d, struct strbuf *out)
{
    struct facts f = {.cache_bytes = dns_cache_bytes(d->cache),
                      .cache_entries = dns_cache_count(d->cache),
                      .services = dns_zone_count(d->zone),
                      .connected = d->services && services_watch_connected(d->services) &&
                                   services_watch_synced(d->services)};
    if (d->server) {
        dns_server_count(d->server, f.n);
    }
    prom_write(&dns_metric_tables[SERVER_TABLE], &f, out);
    if (d->forwarder) {
        f.forwarder = *dns_forwarder_counters(d->forwarder);
        f.upstreams = dns_forwarder_servers(d->forwarder, &f.upstreams_up);
        prom_write(&dns_metric_tables[FORWARDER_TABLE], &f, out);
    }
    prom_write(&dns_metric_tables[ZONE_TABLE], &f, out);
}
