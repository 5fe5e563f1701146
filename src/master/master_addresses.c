/* SPDX-License-Identifier: Apache-2.0 */
#include "master/master_addresses.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>
#include <unistd.h>

LOG_MODULE("master");

static void add(struct address_ranges *r, uint32_t ip)
{
    if (ip && ip >> 24 != 127 && !address_ranges_contain(r, ip) && r->n < ADDRESS_MAX_RANGES) {
        r->list[r->n++] = (struct ip4_prefix){ip, 32};
    }
}

/* Returns the address of "ADDRESS[:PORT]"; 0: the host is a name. */
static uint32_t address_of(const char *text, size_t size)
{
    uint32_t ip = 0;
    size_t n = MIN(size, strcspn(text, ":/,"));
    CLEANUP_FREE char *host = xstrndup(text, n);
    return ip4_parse(host, &ip) == 0 ? ip : 0;
}

/* Adds the hosts of "https://10.0.0.1:2379,https://etcd2:2379" that are IP addresses. */
static void add_endpoints(struct address_ranges *r, const char *urls)
{
    for (const char *p = urls; p && *p;) {
        size_t n = strcspn(p, ",");
        const char *host = strstr(p, "://");
        if (host && host < p + n) {
            add(r, address_of(host + 3, n));
        }
        p += n + (p[n] == ',');
    }
}

static void add_masters(struct address_ranges *r, const struct master_config *c, uint32_t ip,
                        const struct netconf_host_net *nets, size_t n)
{
    add(r, ip);
    add(r, address_of(c->bind_address, SIZE_MAX));
    if (c->dns.bind_address) {
        add(r, address_of(c->dns.bind_address, SIZE_MAX));
    }
    add_endpoints(r, c->storage_endpoints);
    /* The master listens at all addresses of the host. */
    for (size_t i = 0; i < n && str_has_prefix(c->bind_address, "0.0.0.0:"); i++) {
        if (!netconf_is_own_interface(nets[i].ifname)) {
            add(r, nets[i].addr);
        }
    }
}

static void read_host_name(struct master_addresses *a)
{
    if (gethostname(a->host_name, sizeof a->host_name - 1) < 0) {
        log_debug("host has no name");
    }
    /* Agents normalise their node's name in the same way. */
    for (char *p = a->host_name; *p; p++) {
        *p = *p >= 'A' && *p <= 'Z' ? (char) (*p + 'a' - 'A') : *p;
    }
    a->own_node[0] = *a->host_name ? a->host_name : NULL;
}

void master_addresses_fill(struct master_addresses *ret, const struct master_config *c,
                           const struct service_ranges *services, uint32_t ip, bool open,
                           const struct netconf_host_net *nets, size_t n)
{
    struct node_rules *rules = &ret->rules;
    netconf_node_rules(&c->network, rules);
    rules->reserved = c->reserved;
    if (services->has_ingress) {
        rules->ingress = (struct address_ranges){.list = {services->ingress}, .n = 1};
    }
    if (!open) {
        add_masters(&rules->masters, c, ip, nets, n);
    }
    read_host_name(ret);
    rules->master_nodes = c->master_nodes ? (const char *const *) c->master_nodes : ret->own_node;
}
