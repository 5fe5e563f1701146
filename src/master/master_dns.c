/* SPDX-License-Identifier: Apache-2.0 */
#include "master/master_dns.h"

#include "base/log.h"
#include "client/objects.h"
#include "controller/obj.h"

#include <stdio.h>

LOG_MODULE("dns");

#define AGAIN_MS 30000

struct master_dns {
    struct dns *dns;
    struct loop *loop;
    struct loop_timer *again;
    struct services_watch *services;
    bool isolates;
    /* NetNamespaces, for their VNIDs; NULL: every client gets all names. */
    struct informer *projects;
    union dns_endpoint at;
    bool said;
};

static int parse_address(const struct master_config *c, union dns_endpoint *ret, struct err *e)
{
    const char *serving = c->bind_address, *colon = strrchr(serving, ':');
    CLEANUP_FREE char *host = xstrndup(serving, (size_t) (colon - serving));
    const char *text = c->dns.bind_address        ? c->dns.bind_address
                       : streq(host, "localhost") ? "127.0.0.1"
                                                  : host;
    if (dns_endpoint_parse(text, ret, NULL) < 0 || ret->any.sa_family != AF_INET) {
        return err_set(e, -EINVAL,
                       "dnsConfig.bindAddress: \"%.80s\" is neither none nor an IPv4 "
                       "address with or without a port",
                       text);
    }
    return 0;
}

int master_dns_new(struct loop *l, const struct master_config *c, struct master_dns **ret,
                   struct err *e)
{
    struct dns_servers servers;
    struct dns_options o = {.domain = c->dns.domain, .recurse_all = c->dns.recursive};
    union dns_endpoint at;
    struct dns *dns = NULL;
    if (c->dns.bind_address && streq(c->dns.bind_address, "none")) {
        *ret = NULL;
        return 0;
    }
    int r = parse_address(c, &at, e);
    if (r < 0) {
        return r;
    }
    if (c->dns.nameservers) {
        o.servers = &servers;
        if ((r = dns_servers_parse(c->dns.nameservers, &servers, e)) < 0) {
            return err_prefix(e, "dnsConfig.nameservers");
        }
    }
    if ((r = dns_new(l, &o, &dns, e)) < 0) {
        return err_prefix(e, "dnsConfig.domain");
    }
    struct ip4_prefix nets[ARRAY_SIZE(c->network.ranges) + 1];
    for (size_t i = 0; i < c->network.n_ranges; i++) {
        nets[i] = c->network.ranges[i].cidr;
    }
    nets[c->network.n_ranges] = c->network.service;
    dns_zone_set_networks(dns_zone_of(dns), nets, c->network.n_ranges + 1);
    struct master_dns *d = NEW(struct master_dns);
    d->dns = dns;
    d->loop = l;
    d->at = at;
    d->isolates = c->dns.isolate && sdn_plugin_compares_vnids(c->network.plugin);
    dns_zone_set_isolated(dns_zone_of(dns), d->isolates);
    *ret = d;
    return 0;
}

static void listen_now(void *ctx)
{
    struct master_dns *d = ctx;
    struct err e = {0};
    if (dns_listen(d->dns, ntohl(d->at.v4.sin_addr.s_addr), ntohs(d->at.v4.sin_port), &e) < 0) {
        if (!d->said) {
            log_warn("DNS is not answered, trying again; dnsConfig.bindAddress says where",
                     "error=\"%s\"", e.text);
        }
        d->said = true;
        loop_timer_arm(d->again, AGAIN_MS);
    }
}

static void project_changed(void *ctx, const char *key, const struct json *old,
                            const struct json *obj)
{
    struct master_dns *d = ctx;
    struct sdn_vnids vnids;
    bool good = objects_parse_net_namespace(obj, &vnids, NULL) == 0;
    dns_zone_set_project(dns_zone_of(d->dns), key, good ? &vnids : NULL);
}

static void project_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct master_dns *d = ctx;
    dns_zone_set_project(dns_zone_of(d->dns), key, NULL);
}

static void projects_synced(void *ctx)
{
    struct master_dns *d = ctx;
    dns_zone_set_projects_complete(dns_zone_of(d->dns));
}

void master_dns_begin(struct master_dns *d, struct informer_set *informers)
{
    d->services = services_watch_new_in(d->loop, informers);
    d->again = loop_timer_new(d->loop, listen_now, d);
    dns_follow(d->dns, d->services);
    if (d->isolates) {
        static const struct informer_ops ops = {
            .changed = project_changed, .deleted = project_deleted, .synced = projects_synced};
        d->projects =
            informer_set_add(informers, NETWORK_API_VERSION, "netnamespaces", NULL, &ops, d);
    }
    listen_now(d);
}

struct master_dns *master_dns_free(struct master_dns *d)
{
    if (d) {
        informer_free(d->projects);
        dns_free(d->dns);
        loop_timer_free(d->again);
        services_watch_free(d->services);
        free(d);
    }
    return NULL;
}

void master_dns_write_metrics(void *master_dns, struct strbuf *out)
{
    struct master_dns *d = master_dns;
    dns_write_metrics(d->dns, out);
}
