/* SPDX-License-Identifier: Apache-2.0 */
#include "node/registry/resolver.h"

#include "base/log.h"

#include <stdio.h>

LOG_MODULE("dns");

#define AGAIN_MS 2000
/* Kubernetes's value: names with fewer than five dots are searched first. */
#define OPTIONS "ndots:5"

struct resolver {
    struct resolver_config cfg;
    struct dns *dns;
    struct loop_timer *again;
    uint32_t gateway; /* 0: not known yet. */
    bool trouble;
};

/* Address to listen at; false: not known yet. */
static bool address(const struct resolver *r, uint32_t *ret_ip, uint16_t *ret_port)
{
    union dns_endpoint a;
    if (r->cfg.node->dns_bind_address &&
        dns_endpoint_parse(r->cfg.node->dns_bind_address, &a, NULL) == 0) {
        *ret_ip = ntohl(a.v4.sin_addr.s_addr);
        *ret_port = ntohs(a.v4.sin_port);
        return true;
    }
    *ret_ip = r->gateway;
    *ret_port = DNS_PORT;
    return r->gateway != 0;
}

static void listen_now(void *ctx)
{
    struct resolver *r = ctx;
    struct err e = {0};
    uint32_t ip;
    uint16_t port;
    if (!address(r, &ip, &port)) {
        return;
    }
    if (dns_listen(r->dns, ip, port, &e) < 0) {
        if (!r->trouble) {
            log_error("DNS cannot be answered, trying again", "error=\"%s\"", e.text);
            r->cfg.trouble(r->cfg.ctx, e.text);
        }
        r->trouble = true;
        loop_timer_arm(r->again, AGAIN_MS);
    } else if (r->trouble) {
        r->trouble = false;
        r->cfg.trouble(r->cfg.ctx, NULL);
    }
}

int resolver_new(const struct resolver_config *c, struct resolver **ret, struct err *e)
{
    const struct node_config *n = c->node;
    struct dns_servers servers = {0};
    struct dns_options o = {.domain = n->dns_domain, .resolv_conf = n->dns_resolv_conf};
    struct dns *dns = NULL;
    if (n->dns_bind_address && streq(n->dns_bind_address, "none")) {
        *ret = NULL;
        return 0;
    }
    if (n->dns_nameservers) {
        o.servers = &servers;
        if (!streq(n->dns_nameservers, "none") &&
            dns_servers_parse(n->dns_nameservers, &servers, e) < 0) {
            return err_prefix(e, "dnsNameservers");
        }
    }
    if (dns_new(c->loop, &o, &dns, e) < 0) {
        return err_prefix(e, "dnsDomain");
    }
    struct resolver *r = NEW(struct resolver);
    r->cfg = *c;
    r->dns = dns;
    r->again = loop_timer_new(c->loop, listen_now, r);
    dns_follow(dns, c->services);
    *ret = r;
    return 0;
}

struct resolver *resolver_free(struct resolver *r)
{
    if (r) {
        dns_free(r->dns);
        loop_timer_free(r->again);
        free(r);
    }
    return NULL;
}

struct dns *resolver_dns_of(struct resolver *r)
{
    return r ? r->dns : NULL;
}

void resolver_set_network(struct resolver *r, const struct sdn_network *n)
{
    if (!r) {
        return;
    }
    struct ip4_prefix nets[ARRAY_SIZE(n->cluster) + 1];
    for (size_t i = 0; i < n->n_cluster; i++) {
        nets[i] = n->cluster[i];
    }
    nets[n->n_cluster] = n->service;
    dns_zone_set_networks(dns_zone_of(r->dns), nets, n->n_cluster + 1);
    dns_zone_set_isolated(dns_zone_of(r->dns), r->cfg.node->dns_isolate_projects &&
                                                   sdn_plugin_compares_vnids(n->plugin));
    r->gateway = sdn_gateway(n);
    listen_now(r);
}

void resolver_set_pod(struct resolver *r, uint32_t ip, const char *project)
{
    if (r) {
        dns_zone_set_pod(dns_zone_of(r->dns), ip, project);
    }
}

static void pod_attaching(void *ctx, const struct dp_pod *pod)
{
    resolver_set_pod(ctx, pod->ip, pod->pod_namespace);
}

static void pod_detached(void *ctx, const struct dp_pod *pod)
{
    resolver_set_pod(ctx, pod->ip, NULL);
}

const struct pod_listener resolver_pod_listener = {.attaching = pod_attaching,
                                                   .detached = pod_detached};

void resolver_set_project(struct resolver *r, const char *project, const struct sdn_vnids *vnids)
{
    if (r) {
        dns_zone_set_project(dns_zone_of(r->dns), project, vnids);
    }
}

void resolver_projects_known(struct resolver *r)
{
    if (r) {
        dns_zone_set_projects_complete(dns_zone_of(r->dns));
    }
}

struct json *resolver_dns(const struct resolver *r, const char *project)
{
    const struct node_config *n = r ? r->cfg.node : NULL;
    uint32_t ip = n && n->dns_ip ? n->dns_ip : r ? r->gateway : 0;
    if (!ip) {
        return NULL;
    }
    const char *domain = n->dns_domain ? n->dns_domain : DNS_DEFAULT_DOMAIN;
    struct json *v = json_object();
    json_append(json_ensure_array(v, "nameservers"), json_string(IP4_TEXT(ip)));
    json_set_string(v, "domain", domain);
    struct json *search = json_ensure_array(v, "search");
    json_append(search, json_stringf("%s.svc.%s", project, domain));
    json_append(search, json_stringf("svc.%s", domain));
    json_append(search, json_string(domain));
    json_append(json_ensure_array(v, "options"), json_string(OPTIONS));
    return v;
}

void resolver_write_metrics(struct resolver *r, struct strbuf *out)
{
    if (r) {
        dns_write_metrics(r->dns, out);
    }
}
