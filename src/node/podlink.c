/* SPDX-License-Identifier: Apache-2.0 */
#include "node/podlink.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/netns.h"
#include "net/process.h"
#include "net/rtnl.h"

#include <stdio.h>

void podlink_name(const char *container_id, const char *ifname, unsigned attempt,
                  char ret[IF_NAMESIZE])
{
    CLEANUP_FREE char *key = xasprintf("%s/%s/%u", container_id, ifname, attempt);
    snprintf(ret, IF_NAMESIZE, "veth%08x", hash_string(key));
}

struct mac podlink_host_mac(uint32_t pod_ip)
{
    struct mac m = mac_from_ip4(pod_ip);
    m.b[0] = 0xee; /* Locally administered, as the pods' 0a, but none of them. */
    return m;
}

/* Nobody's: a bridge or the kernel's switch would be its master.  (A user space switch is not, but then the
 * caller knows the pods that it serves.) */
static bool is_abandoned(struct rtnl *r, const char *host_if)
{
    struct rtnl_link l;
    return rtnl_link_get(r, host_if, &l, NULL) == 0 && streq(l.kind, "veth") && l.master == 0;
}

/* In user space mode the switch needs whole checksums, and the host's stack gets a copy of what the pod sends.
 * It must neither answer ARP there nor take packets in: all of that is br0's to decide. */
static int deafen(const char *host_if, struct err *e)
{
    static const struct {
        const char *family, *name, *value;
    } settings[] = {
        {"ipv4", "arp_ignore", "8"}, {"ipv4", "rp_filter", "1"}, {"ipv6", "disable_ipv6", "1"}};
    int err = ethtool_tx_checksum(host_if, false, e);
    for (size_t i = 0; err == 0 && i < ARRAY_SIZE(settings); i++) {
        char path[96];
        snprintf(path, sizeof path, "net/%s/conf/%s/%s", settings[i].family, host_if,
                 settings[i].name);
        err = sysctl_set(path, settings[i].value, e);
        if (err == -ENOENT && streq(settings[i].family, "ipv6")) {
            err = 0; /* A kernel without it. */
        }
    }
    return err;
}

static int create(struct rtnl *r, const struct podlink *p, struct err *e)
{
    struct rtnl_veth v = {.name = p->host_if,
                          .peer_name = p->ifname,
                          .peer_ns_fd = p->netns_fd,
                          .mtu = p->mtu,
                          .mac = &p->host_mac,
                          .peer_mac = &p->mac,
                          .up = true};
    return rtnl_veth_add(r, &v, e);
}

int podlink_create(const struct podlink *p, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    int err = rtnl_open(&r, e);
    if (err < 0) {
        return err;
    }
    err = create(r, p, e);
    if (err == -EEXIST && is_abandoned(r, p->host_if)) {
        err = rtnl_link_del(r, p->host_if, e);
        if (err == 0) {
            err = create(r, p, e);
        }
    }
    if (err == -EEXIST) {
        struct rtnl_link l;
        return rtnl_link_get(r, p->host_if, &l, NULL) == 0
                   ? err
                   : err_set(e, -EBUSY, "the container has an interface %s already", p->ifname);
    }
    return err;
}

/* A netlink socket in the pod's namespace; and there, what has no netlink request. */
static int open_in_pod(const struct podlink *p, bool configure, struct rtnl **ret, struct err *e)
{
    int back;
    int err = netns_enter(p->netns_fd, &back, e);
    if (err < 0) {
        return err;
    }
    err = rtnl_open(ret, e);
    if (err == 0 && configure && p->userspace_switch) {
        err = ethtool_tx_checksum(p->ifname, false, e);
    }
    netns_leave(back);
    return err;
}

int podlink_configure(const struct podlink *p, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct rtnl_link l;
    int err = p->userspace_switch ? deafen(p->host_if, e) : 0;
    if (err < 0) {
        return err;
    }
    err = open_in_pod(p, true, &r, e);
    if (err == 0) {
        struct rtnl_link_set lo = RTNL_LINK_SET_INIT("lo");
        lo.up = 1;
        err = rtnl_link_set(r, &lo, e);
    }
    if (err == 0) {
        err = rtnl_link_get(r, p->ifname, &l, e);
    }
    if (err == 0) {
        err = rtnl_addr_add(r, l.ifindex, p->address, false, e);
    }
    if (err == 0) {
        struct rtnl_link_set up = RTNL_LINK_SET_INIT(p->ifname);
        up.up = 1;
        err = rtnl_link_set(r, &up, e);
    }
    if (err == 0) {
        struct rtnl_route dflt = {.gateway = p->gateway, .ifindex = l.ifindex};
        err = rtnl_route_add(r, &dflt, e);
    }
    return err < 0 ? err_prefix(e, "in the container") : 0;
}

static int check_pod(struct rtnl *r, const struct podlink *p, struct err *e)
{
    struct rtnl_link l;
    CLEANUP_FREE struct rtnl_addr *addrs = NULL;
    CLEANUP_FREE struct rtnl_route *routes = NULL;
    size_t n_addrs, n_routes;
    int err = rtnl_link_get(r, p->ifname, &l, e);
    if (err == 0) {
        err = rtnl_addr_list(r, l.ifindex, &addrs, &n_addrs, e);
    }
    if (err == 0) {
        err = rtnl_route_list(r, l.ifindex, &routes, &n_routes, e);
    }
    if (err < 0) {
        return err;
    }
    if (!mac_equal(l.mac, p->mac)) {
        return err_set(e, -ENOENT, "%s: its MAC is %s, not %s", p->ifname, MAC_TEXT(l.mac),
                       MAC_TEXT(p->mac));
    }
    if (!(l.flags & IFF_UP)) {
        return err_set(e, -ENOENT, "%s: is down", p->ifname);
    }
    bool found = false;
    for (size_t i = 0; i < n_addrs; i++) {
        found = found || prefix_equal(addrs[i].addr, p->address);
    }
    if (!found) {
        return err_set(e, -ENOENT, "%s: has not the address %s", p->ifname,
                       PREFIX_TEXT(p->address));
    }
    found = false;
    for (size_t i = 0; i < n_routes; i++) {
        found = found || (routes[i].dst.len == 0 && routes[i].gateway == p->gateway);
    }
    return found ? 0
                 : err_set(e, -ENOENT, "%s: has no default route via %s", p->ifname,
                           IP4_TEXT(p->gateway));
}

int podlink_check(const struct podlink *p, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *host = NULL;
    CLEANUP(rtnl_close) struct rtnl *pod = NULL;
    struct rtnl_link l;
    int err = rtnl_open(&host, e);
    if (err == 0) {
        err = rtnl_link_get(host, p->host_if, &l, e);
    }
    if (err == 0 && !(l.flags & IFF_UP)) {
        err = err_set(e, -ENOENT, "%s: is down", p->host_if);
    }
    if (err == 0) {
        err = open_in_pod(p, false, &pod, e);
    }
    return err < 0 ? err : check_pod(pod, p, e);
}

int podlink_delete(const char *host_if, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    int err = rtnl_open(&r, e);
    return err < 0 ? err : rtnl_link_del(r, host_if, e);
}

int podlink_delete_abandoned(const char *host_if, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    int err = rtnl_open(&r, e);
    if (err < 0) {
        return err;
    }
    return is_abandoned(r, host_if) ? rtnl_link_del(r, host_if, e) : 0;
}
