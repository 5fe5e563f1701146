/* SPDX-License-Identifier: Apache-2.0 */
#include "node/host/own_ports.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/kernel/rtnl.h"
#include "sdn/service_ranges.h"

#define DNS_PORT 53
#define ETCD_FIRST 2379
#define ETCD_LAST 2380
#define HTTP_PORT 80
#define HTTPS_PORT 443

/* The port in "ADDRESS:PORT"; 'dflt' if there is none. */
static uint16_t port_of(const char *address, uint16_t dflt)
{
    const char *colon = address ? strrchr(address, ':') : NULL;
    uint64_t port;
    return colon && str_to_u64(colon + 1, UINT16_MAX, &port) == 0 && port ? (uint16_t) port : dflt;
}

static bool is_of_this_host(const char *address)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    CLEANUP_FREE struct rtnl_addr *list = NULL;
    struct err e = {0};
    size_t n = 0;
    uint32_t ip;
    bool found = streq(address, "localhost");
    if (!found && ip4_parse(address, &ip) == 0 && rtnl_open(&r, &e) == 0 &&
        rtnl_addr_list(r, 0, &list, &n, &e) == 0) {
        found = ip >> 24 == 127;
        for (size_t i = 0; i < n; i++) {
            found = found || list[i].addr.addr == ip;
        }
    }
    return found;
}

/* The port of the master's API if the master is on this host; else 0. */
static uint16_t master_port(const char *url)
{
    const char *host = url ? strstr(url, "://") : NULL;
    if (!host) {
        return 0;
    }
    bool tls = str_has_prefix(url, "https");
    CLEANUP_FREE char *end = xstrndup(host + 3, strcspn(host + 3, "/"));
    CLEANUP_FREE char *address = xstrndup(end, strcspn(end, ":"));
    return is_of_this_host(address) ? port_of(end, tls ? HTTPS_PORT : HTTP_PORT) : 0;
}

struct port_query {
    const struct cni_host_port *port;
    bool found;
};

static void ask_service(void *ctx, const struct sdn_service *s)
{
    struct port_query *q = ctx;
    q->found = q->found || s->health_port == q->port->host_port;
    for (size_t i = 0; i < s->n_ports; i++) {
        q->found = q->found || s->ports[i].node_port == q->port->host_port;
    }
}

static bool is_of_service(const struct services_watch *services, const struct cni_host_port *p)
{
    struct port_query q = {.port = p};
    if (services) {
        services_watch_each(services, ask_service, &q);
    }
    return q.found;
}

const char *own_ports_find(const struct own_ports *o, const struct cni_host_port *p)
{
    const struct node_config *c = o->config;
    bool serves_dns = !c->dns_bind_address || !streq(c->dns_bind_address, "none");
    uint16_t dns = serves_dns ? port_of(c->dns_bind_address, DNS_PORT) : 0;
    uint16_t metrics = port_of(c->metrics_address, 0), master = master_port(o->master);
    const struct {
        const char *what;
        uint8_t protocol; /* 0: any address. */
        uint16_t first, last;
    } table[] = {
        {"DNS of pods", 0, dns, dns},
        {"the tunnels between nodes (VXLAN)", CNI_UDP, o->net->vxlan_port, o->net->vxlan_port},
        {"the agent's metrics", CNI_TCP, metrics, metrics},
        {"the master's API", CNI_TCP, master, master},
        {"the master's etcd", CNI_TCP, master ? ETCD_FIRST : 0, master ? ETCD_LAST : 0},
        {"node ports of services", 0, SERVICE_NODE_PORT_FIRST, SERVICE_NODE_PORT_LAST},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        if (table[i].first && (!table[i].protocol || table[i].protocol == p->protocol) &&
            p->host_port >= table[i].first && p->host_port <= table[i].last) {
            return table[i].what;
        }
    }
    return is_of_service(o->services, p) ? "a node port of a service" : NULL;
}
