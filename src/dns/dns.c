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
    malloc_trim(0); /* Of a first list much was only passing. */
}

void dns_follow(struct dns *d, struct services_watch *w)
{
    static const struct services_listener ops = {.changed = service_changed,
                                                 .synced = services_synced};
    d->services = w;
    services_watch_add(w, &ops, d);
}

/* Never to ask ourselves. */
static void set_own(struct dns *d)
{
    struct dns_servers own = {.n = 1};
    own.at[0].v4 = (struct sockaddr_in){.sin_family = AF_INET,
                                        .sin_port = htons(dns_server_port(d->server)),
                                        .sin_addr = {htonl(d->address)}};
    if (d->address == 0) { /* At every address: the host's own one leads here, too. */
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

static void write_counters(const struct dns *d, struct strbuf *out)
{
    static const char *const rcodes[] = {"NOERROR",  "FORMERR", "SERVFAIL",
                                         "NXDOMAIN", "NOTIMP",  "REFUSED"};
    uint64_t n[DNS_COUNTERS] = {0};
    if (d->server) {
        dns_server_count(d->server, n);
    }
    prom_head(out, "tenet_dns_queries_total", "counter", "Messages that came, by transport.");
    strbuf_addf(out, "tenet_dns_queries_total{transport=\"udp\"} %lu\n", n[DNS_COUNT_UDP]);
    strbuf_addf(out, "tenet_dns_queries_total{transport=\"tcp\"} %lu\n", n[DNS_COUNT_TCP]);
    prom_head(out, "tenet_dns_answers_total", "counter", "Answers, by result.");
    for (size_t i = 0; i < ARRAY_SIZE(rcodes); i++) {
        strbuf_addf(out, "tenet_dns_answers_total{rcode=\"%s\"} %lu\n", rcodes[i],
                    n[DNS_COUNT_RCODE + i]);
    }
    prom_one(out, "tenet_dns_cluster_answers_total", "counter",
             "Answers made from services and endpoints alone.", n[DNS_COUNT_CLUSTER]);
    prom_one(out, "tenet_dns_cached_answers_total", "counter",
             "Answers for other names that were known.", n[DNS_COUNT_CACHED]);
    prom_one(out, "tenet_dns_forwarded_total", "counter",
             "Questions that other name servers had to be asked.", n[DNS_COUNT_FORWARDED]);
    prom_one(out, "tenet_dns_truncated_total", "counter", "Answers that were cut.",
             n[DNS_COUNT_TRUNCATED]);
    prom_one(out, "tenet_dns_dropped_total", "counter",
             "Messages that were not answered: no queries, or too many waiting.",
             n[DNS_COUNT_DROPPED]);
}

static void write_forwarder(struct dns *d, struct strbuf *out)
{
    const struct dns_forwarder_counters *c = dns_forwarder_counters(d->forwarder);
    size_t up, servers = dns_forwarder_servers(d->forwarder, &up);
    prom_one(out, "tenet_dns_upstreams", "gauge", "Name servers that are asked.", servers);
    prom_one(out, "tenet_dns_upstreams_up", "gauge", "Those of them that answer.", up);
    prom_one(out, "tenet_dns_upstream_queries_total", "counter", "Questions sent to them.",
             c->asked);
    prom_one(out, "tenet_dns_upstream_timeouts_total", "counter",
             "Those without an answer in time.", c->timeouts);
    prom_one(out, "tenet_dns_upstream_failures_total", "counter",
             "Names for which no server had an answer.", c->failed);
    prom_one(out, "tenet_dns_upstream_wrong_answers_total", "counter",
             "Answers that were none to what was asked, and not used.", c->wrong);
    prom_one(out, "tenet_dns_upstream_tcp_total", "counter", "Questions repeated over TCP.",
             c->tcp);
    prom_one(out, "tenet_dns_stale_answers_total", "counter",
             "Answers that were over their time, for want of a server that answers.", c->stale);
    prom_one(out, "tenet_dns_forward_refused_total", "counter",
             "Questions not asked because too many were waiting.", c->refused);
}

void dns_write_metrics(struct dns *d, struct strbuf *out)
{
    write_counters(d, out);
    if (d->forwarder) {
        write_forwarder(d, out);
    }
    prom_one(out, "tenet_dns_cache_bytes", "gauge", "Memory of answers that are kept.",
             dns_cache_bytes(d->cache));
    prom_one(out, "tenet_dns_cache_entries", "gauge", "Answers that are kept.",
             dns_cache_count(d->cache));
    prom_one(out, "tenet_dns_services", "gauge", "Services that are known.",
             dns_zone_count(d->zone));
    prom_one(out, "tenet_dns_master_connected", "gauge",
             "1 while services are followed; 0: what was known last is answered.",
             d->services && services_watch_connected(d->services) &&
                 services_watch_synced(d->services));
}
