/* SPDX-License-Identifier: Apache-2.0 */
#include "master/service_config.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>

void service_config_init(struct service_config *c)
{
    *c = (struct service_config){0};
    service_ranges_defaults(&c->ranges);
}

static int add_external(struct service_ranges *r, const char *s, struct err *e)
{
    if (r->n_external == SERVICE_MAX_EXTERNAL) {
        return err_set(e, -EINVAL, "more than %d ranges", SERVICE_MAX_EXTERNAL);
    }
    int error = service_external_parse(s, &r->external[r->n_external], e);
    r->n_external += error == 0;
    return error;
}

int service_config_set_external(struct service_config *c, const char *list, struct err *e)
{
    struct service_ranges now = c->ranges;
    now.n_external = 0;
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");
        CLEANUP_FREE char *one = xstrndup(p, n);
        int error = add_external(&now, one, e);
        if (error < 0) {
            return error;
        }
        p += n + (p[n] == ',');
    }
    c->ranges = now;
    return 0;
}

int service_config_set_ports(struct service_config *c, const char *range, struct err *e)
{
    return service_ports_parse(range, &c->ranges.first_port, &c->ranges.last_port, e);
}

int service_config_set_ingress(struct service_config *c, const char *cidr, struct err *e)
{
    struct ip4_prefix net = {0};
    bool off = !*cidr || streq(cidr, "0.0.0.0/32");
    int error = off ? 0 : prefix_parse(cidr, &net, e);
    if (error == 0) {
        c->ingress_given = true;
        c->ranges.has_ingress = !off;
        c->ranges.ingress = net;
    }
    return error;
}

int service_config_set_master_ip(struct service_config *c, const char *ip, struct err *e)
{
    uint32_t addr = 0;
    if (*ip && (ip4_parse(ip, &addr) < 0 || !addr)) {
        return err_set(e, -EINVAL, "\"%.40s\" is not an IPv4 address", ip);
    }
    c->master_ip = addr;
    return 0;
}

uint32_t service_config_master_ip(const struct service_config *c, const char *bind,
                                  const struct netconf_host_net *nets, size_t n)
{
    uint32_t ip = 0;
    CLEANUP_FREE char *host = xstrndup(bind, strcspn(bind, ":"));
    if (c->master_ip) {
        return c->master_ip;
    }
    if (ip4_parse(host, &ip) < 0 || ip >> 24 == 127) {
        return 0;
    }
    for (size_t i = 0; !ip && i < n; i++) {
        ip = netconf_is_own_interface(nets[i].ifname) || nets[i].addr >> 24 == 127 ? 0
                                                                                   : nets[i].addr;
    }
    return ip;
}

/* The first of the host's networks that is in the ingress range; NULL: none. */
static const struct netconf_host_net *taken_by(const struct service_ranges *r,
                                               const struct netconf_host_net *nets, size_t n)
{
    for (size_t i = 0; r->has_ingress && i < n; i++) {
        if (prefix_overlaps(nets[i].net, r->ingress)) {
            return &nets[i];
        }
    }
    return NULL;
}

struct service_ranges service_config_ranges(const struct service_config *c,
                                            const struct netconf *network,
                                            const struct netconf_host_net *nets, size_t n)
{
    struct service_ranges r = c->ranges;
    struct err e = {0};
    r.services = network->service;
    r.n_pods = network->n_ranges;
    for (size_t i = 0; i < r.n_pods; i++) {
        r.pods[i] = network->ranges[i].cidr;
    }
    if (!c->ingress_given) {
        r.has_ingress = service_ranges_check(&r, &e) == 0 && !taken_by(&r, nets, n);
    }
    return r;
}

int service_config_check(const struct service_config *c, const struct netconf *network,
                         const struct netconf_host_net *nets, size_t n, struct err *e)
{
    struct service_ranges r = service_config_ranges(c, network, nets, n);
    const struct netconf_host_net *net = taken_by(&r, nets, n);
    if (net) {
        return err_set(e, -EINVAL,
                       "ingressIPNetworkCIDR: %s: overlaps network %s of this host's interface %s",
                       PREFIX_TEXT(r.ingress), PREFIX_TEXT(net->net), net->ifname);
    }
    return service_ranges_check(&r, e);
}
