/* SPDX-License-Identifier: Apache-2.0 */
#include "master/master_host.h"

#include "base/log.h"
#include "base/mem.h"
#include "net/kernel/rtnl.h"

LOG_MODULE("master");

static int list_networks(struct netconf_host_net **ret, size_t *ret_n, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *rt = NULL;
    CLEANUP_FREE struct rtnl_addr *addrs = NULL;
    CLEANUP_FREE struct rtnl_link *links = NULL;
    size_t n_addrs = 0, n_links = 0;
    int r = rtnl_open(&rt, e);
    if (r < 0 || (r = rtnl_link_list(rt, &links, &n_links, e)) < 0 ||
        (r = rtnl_addr_list(rt, 0, &addrs, &n_addrs, e)) < 0) {
        return err_prefix(e, "this host's networks");
    }
    struct netconf_host_net *nets = xcalloc(n_addrs + 1, sizeof(*nets));
    for (size_t i = 0; i < n_addrs; i++) {
        struct ip4_prefix p = addrs[i].addr;
        nets[i].addr = p.addr;
        nets[i].net = (struct ip4_prefix){p.addr & prefix_mask(p.len), p.len};
        for (size_t j = 0; j < n_links; j++) {
            if (links[j].ifindex == addrs[i].ifindex) {
                memcpy(nets[i].ifname, links[j].name, sizeof(nets[i].ifname));
            }
        }
    }
    *ret = nets;
    *ret_n = n_addrs;
    return 0;
}

/* OpenShift's rule for clusters with several masters, which a store in etcd allows.  Tenet's
 * masters allocate by transactions and need no such rule; a master of OpenShift that takes over
 * does. */
#define RULED_INGRESS_ADDRESSES 256

static void warn_of_ingress_rule(const struct master_config *c, const struct service_ranges *r)
{
    if (!r->has_ingress || !streq_null(c->storage_backend, "etcd") ||
        prefix_size(r->ingress) < RULED_INGRESS_ADDRESSES) {
        return;
    }
    log_warn("OpenShift's rules SING-04 and HA-09 ask for fewer than 256 ingress addresses with "
             "several masters; Tenet allocates from any range",
             "networkConfig.ingressIPNetworkCIDR=%s", PREFIX_TEXT(r->ingress));
}

int master_host_read(const struct master_config *c, bool open, struct master_host *ret,
                     struct err *e)
{
    CLEANUP_FREE struct netconf_host_net *nets = NULL;
    size_t n = 0;
    int r = list_networks(&nets, &n, e);
    if (r < 0 || (r = netconf_check_host(&c->network, nets, n, e)) < 0 ||
        (r = service_config_check(&c->services, &c->network, nets, n, e)) < 0) {
        return err_prefix(e, "networkConfig");
    }
    ret->services = service_config_ranges(&c->services, &c->network, nets, n);
    ret->ip = service_config_master_ip(&c->services, c->bind_address, nets, n);
    if (!ret->services.has_ingress && !c->services.ingress_given) {
        log_warn("services of type LoadBalancer get no address: the default "
                 "networkConfig.ingressIPNetworkCIDR is in use by other networks");
    }
    warn_of_ingress_rule(c, &ret->services);
    master_addresses_fill(&ret->addresses, c, &ret->services, ret->ip, open, nets, n);
    return 0;
}
