/* SPDX-License-Identifier: Apache-2.0 */
#include "node/cni/pod_link.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/kernel/netns.h"
#include "net/kernel/rtnl.h"
#include "net/loop/process.h"

#include <stdio.h>

void pod_link_name(const char *container_id, const char *ifname, unsigned attempt,
                   char ret[IF_NAMESIZE])
{
    CLEANUP_FREE char *key = xasprintf("%s/%s/%u", container_id, ifname, attempt);
    snprintf(ret, IF_NAMESIZE, "veth%08x", hash_string(key));
}

struct mac pod_link_host_mac(uint32_t pod_ip)
{
    struct mac m = mac_from_ip4(pod_ip);
    m.b[0] = 0xee; /* A locally administered prefix, like the pods' 0a, that no pod uses. */
    return m;
}

/* Whether no switch uses the link: a bridge or the kernel's switch would be its master.  (A user
 * space switch is no link's master, but then the caller knows the pods that it serves.)
 * 'ret_bridge' gets the bridge that was made for the link alone, or "". */
static bool is_abandoned(struct rtnl *r, const char *host_if, char ret_bridge[IF_NAMESIZE])
{
    struct rtnl_link l, master;
    ret_bridge[0] = '\0';
    if (rtnl_link_get(r, host_if, &l, NULL) < 0 || !streq(l.kind, "veth")) {
        return false;
    }
    if (l.master && rtnl_link_get_index(r, l.master, &master, NULL) == 0 &&
        str_has_prefix(master.name, POOL_BRIDGE)) {
        snprintf(ret_bridge, IF_NAMESIZE, "%s", master.name);
        return true;
    }
    return l.master == 0;
}

static int delete_abandoned(struct rtnl *r, const char *host_if, const char *bridge, struct err *e)
{
    int err = rtnl_link_del(r, host_if, e);
    return err == 0 && *bridge ? rtnl_link_del(r, bridge, e) : err;
}

static int make_pair(struct rtnl *r, const struct pod_link *p, struct rtnl_link *ret, struct err *e)
{
    struct rtnl_veth v = {.name = p->host_if,
                          .peer_name = p->ifname,
                          .peer_ns_fd = p->netns_fd,
                          .mtu = p->mtu,
                          .mac = &p->host_mac,
                          .peer_mac = &p->mac};
    return rtnl_veth_add_get(r, &v, ret, e);
}

static int replace_pair(struct rtnl *r, const struct pod_link *p, struct rtnl_link *ret,
                        struct err *e)
{
    char bridge[IF_NAMESIZE];
    int err = make_pair(r, p, ret, e);
    if (err == -EEXIST && is_abandoned(r, p->host_if, bridge)) {
        err = delete_abandoned(r, p->host_if, bridge, e);
        err = err < 0 ? err : make_pair(r, p, ret, e);
    }
    if (err == -EEXIST) {
        struct rtnl_link l;
        return rtnl_link_get(r, p->host_if, &l, NULL) == 0
                   ? err
                   : err_set(e, -EBUSY, "the container has an interface %s already", p->ifname);
    }
    return err;
}

static struct dp_wire wire_of(const struct pod_link *p)
{
    return (struct dp_wire){
        .host_if = p->host_if, .port = p->port, .mac = p->mac, .mtu = p->mtu, .limits = p->limits};
}

/* Opens a netlink socket in the pod's namespace, and makes the settings there that netlink does not
 * offer. */
static int open_in_pod(const struct pod_link *p, bool configure, struct rtnl **ret, struct err *e)
{
    int back;
    int err = netns_enter_from(p->host_ns_fd, p->netns_fd, &back, e);
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

/* 'ifindex' is 0 if it is not known; 'mac' is NULL if the link has its MAC already. */
static int configure_pod(const struct pod_link *p, int ifindex, const struct mac *mac,
                         struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct rtnl_link l = {.ifindex = ifindex};
    int err = open_in_pod(p, !mac, &r, e);
    err = err < 0 || ifindex ? err : rtnl_link_get(r, p->ifname, &l, e);
    if (err == 0) {
        struct rtnl_endpoint end = {
            .ifindex = l.ifindex, .mac = mac, .address = p->address, .gateway = p->gateway};
        err = rtnl_endpoint_set(r, &end, e);
    }
    return err < 0 ? err_prefix(e, "in the container") : 0;
}

/* An unknown link is on the port: deleting the port's device deletes that link, and the datapath
 * makes the device anew. */
static int port_is_taken(struct rtnl *r, const struct pod_link *p, struct err *e)
{
    rtnl_link_del(r, p->host_if, NULL);
    return err_set(e, -EADDRINUSE, "port %s had a link already; it is made anew", p->port);
}

static int create_on_end(const struct pod_link *p, int ns_fd, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct dp_wire wire = wire_of(p);
    struct rtnl_link end;
    int err = rtnl_open_from(p->host_ns_fd, ns_fd, &r, e);
    err = err < 0 ? err : rtnl_link_get(r, p->host_if, &end, e);
    if (err == 0 && end.mtu != p->mtu) {
        err = datapath_wire(p->datapath, &wire, e);
    }
    if (err < 0) {
        return err;
    }
    struct rtnl_macvlan m = {
        .name = p->ifname, .lower = end.ifindex, .ns_fd = p->netns_fd, .mtu = p->mtu};
    err = rtnl_macvlan_add(r, &m, e);
    if (err == -EEXIST) {
        return err_set(e, -EBUSY, "the container has an interface %s already", p->ifname);
    }
    if (err == -EINVAL || err == -EBUSY) {
        return port_is_taken(r, p, e);
    }
    return err < 0 ? err : configure_pod(p, 0, &p->mac, e);
}

int pod_link_create(const struct pod_link *p, struct err *e)
{
    int ns_fd = datapath_end(p->datapath, p->port, p->host_if);
    if (ns_fd >= 0) {
        return create_on_end(p, ns_fd, e);
    }
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct dp_wire wire = wire_of(p);
    struct rtnl_link link;
    int err = rtnl_open(&r, e);
    err = err < 0 ? err : replace_pair(r, p, &link, e);
    err = err < 0 ? err : configure_pod(p, link.peer, NULL, e);
    err = err < 0 ? err : sysctl_silence(p->host_if, e);
    if (err == 0) {
        wire.rtnl = r;
        wire.link = &link;
        err = datapath_wire(p->datapath, &wire, e);
    }
    if (err == 0) {
        /* Brought up last, so that the kernel announces carrier once: programs that follow links
         * (Open vSwitch) look at all of them each time. */
        struct rtnl_link_set up = RTNL_LINK_SET_INIT(p->host_if);
        up.up = 1;
        err = rtnl_link_set(r, &up, e);
    }
    return err;
}

int pod_link_limit(const struct pod_link *p, struct err *e)
{
    struct dp_wire wire = wire_of(p);
    return datapath_wire(p->datapath, &wire, e);
}

int pod_link_unlimit(const struct pod_link *p, struct err *e)
{
    struct dp_wire wire = wire_of(p);
    return datapath_unlimit(p->datapath, &wire, e);
}

static int check_pod(struct rtnl *r, const struct pod_link *p, struct err *e)
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

int pod_link_check(const struct pod_link *p, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *host = NULL;
    CLEANUP(rtnl_close) struct rtnl *pod = NULL;
    struct rtnl_link l;
    int err = rtnl_open(&host, e);
    bool pair = datapath_end(p->datapath, p->port, p->host_if) < 0;
    if (err == 0 && pair) {
        err = rtnl_link_get(host, p->host_if, &l, e);
    }
    if (err == 0 && pair && !(l.flags & IFF_UP)) {
        err = err_set(e, -ENOENT, "%s: is down", p->host_if);
    }
    if (err == 0) {
        struct dp_wire wire = wire_of(p);
        err = datapath_check_wire(p->datapath, &wire, e);
    }
    if (err == 0) {
        err = open_in_pod(p, false, &pod, e);
    }
    return err < 0 ? err : check_pod(pod, p, e);
}

/* The pod's link that 'p' names, if it is a macvlan on link number 'end' (0: on any link). */
static int delete_in_pod(const struct pod_link *p, int end, struct err *e)
{
    CLEANUP(fd_close) int opened = -1;
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct rtnl_link l;
    int err = 0, ns_fd = p->netns_fd;
    if (ns_fd < 0) {
        err = p->netns ? netns_open(p->netns, &opened, e) : -ENOENT;
        ns_fd = opened;
    }
    err = err < 0 ? err : rtnl_open_from(p->host_ns_fd, ns_fd, &r, e);
    err = err < 0 ? err : rtnl_link_get(r, p->ifname, &l, e);
    if (err == 0 &&
        (!streq(l.kind, "macvlan") || !mac_equal(l.mac, p->mac) || (end && l.peer != end))) {
        return -ENODEV;
    }
    return err < 0 ? err : rtnl_link_del(r, p->ifname, e);
}

/* A link that is not found in the pod but is still on the port (the runtime does not name the
 * namespace, or the pod moved the link) is deleted with the port's device. */
static int delete_on_end(const struct pod_link *p, int ns_fd, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct rtnl_link end;
    int err = rtnl_open_from(p->host_ns_fd, ns_fd, &r, e);
    err = err < 0 ? err : rtnl_link_get(r, p->host_if, &end, e);
    if (err < 0) {
        return err == -ENODEV ? 0 : err;
    }
    if (delete_in_pod(p, end.ifindex, NULL) == 0) {
        return 0;
    }
    err = rtnl_link_get(r, p->host_if, &end, e);
    return err == 0 && mac_equal(end.mac, p->mac) ? rtnl_link_del(r, p->host_if, e) : 0;
}

int pod_link_delete(const struct pod_link *p, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    int ns_fd = datapath_end(p->datapath, p->port, p->host_if);
    if (ns_fd >= 0) {
        return delete_on_end(p, ns_fd, e);
    }
    int err = rtnl_open(&r, e);
    return err < 0 ? err : rtnl_link_del(r, p->host_if, e);
}

int pod_link_delete_stray(const struct pod_link *p, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    CLEANUP(rtnl_close) struct rtnl *ends = NULL;
    struct rtnl_link l, end;
    int ns_fd = datapath_end(p->datapath, NULL, NULL);
    if (ns_fd < 0 || p->netns_fd < 0) {
        return 0;
    }
    int err = rtnl_open_from(p->host_ns_fd, p->netns_fd, &r, e);
    err = err < 0 ? err : rtnl_open_from(p->host_ns_fd, ns_fd, &ends, e);
    if (err < 0) {
        return err;
    }
    if (rtnl_link_get(r, p->ifname, &l, NULL) < 0 || !streq(l.kind, "macvlan") ||
        rtnl_link_get_index(ends, l.peer, &end, NULL) < 0 || !mac_equal(l.mac, end.mac)) {
        return 0;
    }
    char word[IF_NAMESIZE + 2];
    snprintf(word, sizeof word, " %s ", end.name);
    if (strstr(p->known, word)) {
        return 0;
    }
    err = rtnl_link_del(r, p->ifname, e);
    return err < 0 ? err : 1;
}

int pod_link_delete_abandoned(const char *host_if, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    int err = rtnl_open(&r, e);
    if (err < 0) {
        return err;
    }
    char bridge[IF_NAMESIZE];
    return is_abandoned(r, host_if, bridge) ? delete_abandoned(r, host_if, bridge, e) : 0;
}
