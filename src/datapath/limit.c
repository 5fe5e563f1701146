/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/limit.h"

#include "net/kernel/redirect.h"
#include "net/loop/process.h"

#include <stdio.h>

struct shape limit_to_pod(const struct dp_wire *w)
{
    return (struct shape){.rate = w->limits.to_pod, .burst = w->limits.to_pod_burst};
}

struct shape limit_from_pod(const struct dp_wire *w)
{
    return (struct shape){.rate = w->limits.from_pod, .burst = w->limits.from_pod_burst};
}

void limit_link_name(const char *prefix, const char *host_if, char ret[IF_NAMESIZE])
{
    snprintf(ret, IF_NAMESIZE, "%s%.8s", prefix, host_if + MIN(strlen(host_if), 4));
}

int limit_bridge_make(struct rtnl *r, const char *host_if, struct rtnl_link *ret, struct err *e)
{
    char name[IF_NAMESIZE];
    limit_link_name(POOL_BRIDGE, host_if, name);
    int k = rtnl_bridge_add(r, name, e);
    return k < 0 ? k : rtnl_link_get(r, name, ret, e);
}

int limit_bridge_join(struct rtnl *r, const struct rtnl_link *link, const struct rtnl_link *bridge,
                      struct err *e)
{
    struct rtnl_link_set up = RTNL_LINK_SET_INIT(bridge->name);
    struct rtnl_link_set master = RTNL_LINK_SET_INIT(link->name);
    up.up = 1;
    up.promisc = true;
    master.master = bridge->ifindex;
    int k = sysctl_silence(bridge->name, e);
    k = k < 0 ? k : rtnl_link_set(r, &up, e);
    k = k < 0 ? k : rtnl_link_set(r, &master, e);
    return k < 0 ? k : redirect_clear(r, link->ifindex, e);
}

int limit_bridge_check(struct rtnl *r, const struct rtnl_link *link, struct rtnl_link *ret,
                       struct err *e)
{
    char name[IF_NAMESIZE];
    struct rtnl_link bridge;
    limit_link_name(POOL_BRIDGE, link->name, name);
    int k = rtnl_link_get(r, name, &bridge, e);
    if (k == 0 && (link->master != bridge.ifindex || !(bridge.flags & IFF_UP))) {
        k = err_set(e, -ENOENT, "%s is not in bridge %s, or that is down", link->name, name);
    }
    if (k == 0) {
        *ret = bridge;
    }
    return k;
}

int limit_bridge_remove(struct rtnl *r, const char *host_if, struct err *e)
{
    char name[IF_NAMESIZE];
    limit_link_name(POOL_BRIDGE, host_if, name);
    return rtnl_link_del(r, name, e);
}
