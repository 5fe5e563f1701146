/* SPDX-License-Identifier: Apache-2.0 */
/* Wires between a pod's link and a port of the pool.
 *
 * A macvlan on the port's peer (port_peers.h) needs no wire.  Pods with limits, pods that an
 * earlier version attached, and pods on a kernel without macvlan have a veth pair of their own;
 * eBPF programs hand its frames over (net/kernel/redirect.h). */
#include "datapath/limit.h"
#include "datapath/ovs/ovs.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/kernel/redirect.h"
#include "net/loop/process.h"

#include <fcntl.h>

/* The links of a wire. */
struct wire_links {
    struct rtnl_link link; /* The pod's link. */
    struct rtnl_link port; /* The switch's port. */
    /* The peer of the port: the switch receives the frames that it sends. */
    struct rtnl_link other;
};

static int links_of(struct rtnl *r, const struct dp_wire *w, struct wire_links *ret, struct err *e)
{
    char other[IF_NAMESIZE];
    port_peers_name(w->port, other);
    int k = w->link ? 0 : rtnl_link_get(r, w->host_if, &ret->link, e);
    if (w->link) {
        ret->link = *w->link;
    }
    k = k < 0 ? k : rtnl_link_get(r, w->port, &ret->port, e);
    return k == 0 && w->limits.from_pod ? rtnl_link_get(r, other, &ret->other, e) : k;
}

static struct redirect from_bridge(const struct rtnl_link *bridge, const struct wire_links *l)
{
    return (struct redirect){
        .ifindex = bridge->ifindex, .hook = REDIRECT_INGRESS, .to = l->port.ifindex};
}

/* The hook is put on the bridge before the pod's link is in it. */
static int wire_by_bridge(struct rtnl *r, const struct wire_links *l, struct err *e)
{
    struct rtnl_link bridge;
    int k = limit_bridge_make(r, l->link.name, &bridge, e);
    if (k == 0) {
        struct redirect in = from_bridge(&bridge, l);
        k = redirect_set(r, &in, e);
    }
    return k < 0 ? k : limit_bridge_join(r, &l->link, &bridge, e);
}

static int check_bridge(struct rtnl *r, const struct wire_links *l, struct err *e)
{
    struct rtnl_link bridge;
    int k = limit_bridge_check(r, &l->link, &bridge, e);
    if (k < 0) {
        return k;
    }
    struct redirect in = from_bridge(&bridge, l);
    return redirect_check(r, &in, e);
}

/* The direction from the pod.  A limit is a queue, which only the sending side of a link has. */
static struct redirect inwards(const struct dp_wire *w, const struct wire_links *l)
{
    bool limited = w->limits.from_pod;
    return (struct redirect){.ifindex = l->link.ifindex,
                             .hook = REDIRECT_INGRESS,
                             .to = limited ? l->other.ifindex : l->port.ifindex,
                             .send = limited};
}

static struct redirect outwards(const struct dp_wire *w, const struct wire_links *l)
{
    return (struct redirect){.ifindex = l->port.ifindex,
                             .hook = REDIRECT_EGRESS,
                             .to = l->link.ifindex,
                             .destination = &w->mac};
}

static int limit(struct rtnl *r, const struct dp_wire *w, const struct wire_links *l, struct err *e)
{
    struct shape to = limit_to_pod(w), from = limit_from_pod(w);
    int k = to.rate ? shape_set(r, l->link.ifindex, &to, e) : 0;
    return k == 0 && from.rate ? shape_set(r, l->other.ifindex, &from, e) : k;
}

/* ---- links on other ends ---- */

static const struct port_peers *port_peers_of(struct datapath *dp)
{
    return CONTAINER_OF(dp, struct ovs_dp, dp)->pool.ends;
}

int wire_end(struct datapath *dp, const char *port, const char *host_if)
{
    char end[IF_NAMESIZE] = "";
    if (port) {
        port_peers_name(port, end);
    }
    return port_peers_of(dp) && (!port || streq(end, host_if)) ? port_peers_fd(port_peers_of(dp))
                                                               : -1;
}

/* The port was made when the network had another MTU. */
static int set_mtu(struct rtnl *r, struct rtnl *ends, const struct dp_wire *w, struct err *e)
{
    struct rtnl_link_set port = RTNL_LINK_SET_INIT(w->port), end = RTNL_LINK_SET_INIT(w->host_if);
    port.mtu = end.mtu = w->mtu;
    int k = rtnl_link_set(ends, &end, e);
    return k < 0 ? k : rtnl_link_set(r, &port, e);
}

static int check_end(struct rtnl *r, struct rtnl *ends, const struct dp_wire *w, struct err *e)
{
    struct rtnl_link port, end;
    int k = rtnl_link_get(r, w->port, &port, e);
    k = k < 0 ? k : rtnl_link_get(ends, w->host_if, &end, e);
    if (k == 0 && !(port.flags & end.flags & IFF_UP)) {
        k = err_set(e, -ENOENT, "port %s is down", w->port);
    }
    if (k == 0 && !mac_equal(end.mac, w->mac)) {
        k = err_set(e, -ENOENT, "the pod's link is not on port %s", w->port);
    }
    return k < 0 ? k : redirect_check_own(ends, end.ifindex, e);
}

static int on_end(int ns_fd, const struct dp_wire *w,
                  int (*fn)(struct rtnl *r, struct rtnl *ends, const struct dp_wire *w,
                            struct err *e),
                  struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    CLEANUP(rtnl_close) struct rtnl *ends = NULL;
    int k = rtnl_open(&r, e);
    k = k < 0 ? k : rtnl_open_at(ns_fd, &ends, e);
    k = k < 0 ? k : fn(r, ends, w, e);
    return k < 0 ? err_prefix(e, "port %s", w->port) : 0;
}

/* If the peer is in an unknown namespace (that of an agent with another folder), it is also unknown
 * whether a pod is on it: assume that there is one. */
int wire_links(struct datapath *dp, struct rtnl_link **ret, size_t *ret_n, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    CLEANUP(rtnl_close) struct rtnl *ends = NULL;
    CLEANUP_FREE struct rtnl_link *links = NULL;
    CLEANUP_FREE struct rtnl_link *there = NULL;
    size_t n, n_there = 0;
    int k = rtnl_open(&r, e);
    k = k < 0 ? k : rtnl_link_list(r, &links, &n, e);
    if (k == 0 && port_peers_of(dp)) {
        k = rtnl_open_at(port_peers_fd(port_peers_of(dp)), &ends, e);
        k = k < 0 ? k : rtnl_link_list(ends, &there, &n_there, e);
    }
    if (k < 0) {
        return k;
    }
    struct smap idle; /* Peers without a pod are not listed. */
    smap_init(&idle, NULL);
    for (size_t i = 0; i < n_there; i++) {
        if (mac_equal(there[i].mac, port_peers_mac(there[i].name))) {
            smap_set(&idle, there[i].name, &there[i]);
        }
    }
    size_t cap = n, all = n;
    for (size_t i = 0; i < n; i++) {
        struct rtnl_link end = {0};
        port_peers_name(links[i].name, end.name);
        if (streq(links[i].kind, "veth") && !smap_get(&idle, end.name)) {
            links = grow(links, &cap, all + 1, sizeof *links);
            links[all++] = end;
        }
    }
    smap_done(&idle);
    *ret = TAKE(links);
    *ret_n = all;
    return 0;
}

/* A limited pod's frames wait in the queue of the port's peer, which has to be where the pod's own
 * link is. */
static int fetch_end(struct datapath *dp, struct rtnl *r, const struct dp_wire *w, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *ends = NULL;
    CLEANUP(fd_close) int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    char end[IF_NAMESIZE];
    struct rtnl_link l;
    port_peers_name(w->port, end);
    if (!port_peers_of(dp) || !w->limits.from_pod || rtnl_link_get(r, end, &l, NULL) == 0) {
        return 0;
    }
    struct rtnl_link_set move = RTNL_LINK_SET_INIT(end), up = RTNL_LINK_SET_INIT(end);
    move.ns_fd = here;
    up.up = 1;
    int k = rtnl_open_at(port_peers_fd(port_peers_of(dp)), &ends, e);
    k = k < 0 ? k : rtnl_link_set(ends, &move, e);
    k = k < 0 ? k : sysctl_silence(end, e);
    return k < 0 ? k : rtnl_link_set(r, &up, e);
}

/* ---- all ---- */

int wire_set(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    int ns_fd = wire_end(dp, w->port, w->host_if);
    if (ns_fd >= 0) {
        return on_end(ns_fd, w, set_mtu, e);
    }
    CLEANUP(rtnl_close) struct rtnl *own = NULL;
    struct wire_links l;
    int k = w->rtnl ? 0 : rtnl_open(&own, e);
    struct rtnl *r = w->rtnl ? w->rtnl : own;
    k = k < 0 ? k : fetch_end(dp, r, w, e);
    k = k < 0 ? k : links_of(r, w, &l, e);
    if (k == 0 && l.port.mtu != w->mtu) {
        struct rtnl_link_set mtu = RTNL_LINK_SET_INIT(w->port);
        mtu.mtu = w->mtu;
        k = rtnl_link_set(r, &mtu, e);
    }
    k = k < 0 ? k : limit(r, w, &l, e);
    if (k == 0 && w->limits.elsewhere) {
        k = wire_by_bridge(r, &l, e);
    } else if (k == 0) {
        struct redirect in = inwards(w, &l);
        k = redirect_set(r, &in, e);
    }
    if (k == 0) {
        struct redirect out = outwards(w, &l);
        k = redirect_set(r, &out, e);
    }
    return k < 0 ? err_prefix(e, "wire %s to port %s", w->host_if, w->port) : 0;
}

int wire_unlimit(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    char name[IF_NAMESIZE];
    struct rtnl_link other;
    if (wire_end(dp, w->port, w->host_if) >= 0) {
        return 0;
    }
    int k = rtnl_open(&r, e);
    if (k == 0 && w->limits.elsewhere) {
        return limit_bridge_remove(r, w->host_if, e);
    }
    port_peers_name(w->port, name);
    k = k < 0 ? k : rtnl_link_get(r, name, &other, e);
    return k == 0 ? shape_clear(r, other.ifindex, e) : k == -ENODEV ? 0 : k;
}

static int check_limits(struct rtnl *r, const struct dp_wire *w, const struct wire_links *l,
                        struct err *e)
{
    struct shape to = limit_to_pod(w), from = limit_from_pod(w);
    int k = to.rate ? shape_check(r, l->link.ifindex, &to, e) : 0;
    return k == 0 && from.rate ? shape_check(r, l->other.ifindex, &from, e) : k;
}

int wire_check(struct datapath *dp, const struct dp_wire *w, struct err *e)
{
    if (streq(w->host_if, w->port)) {
        return 0; /* A pod of an earlier version: the link itself is the port. */
    }
    int ns_fd = wire_end(dp, w->port, w->host_if);
    if (ns_fd >= 0) {
        return on_end(ns_fd, w, check_end, e);
    }
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    struct wire_links l;
    int k = rtnl_open(&r, e);
    k = k < 0 ? k : links_of(r, w, &l, e);
    if (k == 0 && !(l.port.flags & IFF_UP)) {
        k = err_set(e, -ENOENT, "port %s is down", w->port);
    }
    if (k == 0 && w->limits.elsewhere) {
        k = check_bridge(r, &l, e);
    } else if (k == 0) {
        struct redirect in = inwards(w, &l);
        k = redirect_check(r, &in, e);
    }
    if (k == 0) {
        struct redirect out = outwards(w, &l);
        k = redirect_check(r, &out, e);
    }
    k = k < 0 ? k : check_limits(r, w, &l, e);
    return k < 0 ? err_prefix(e, "wire %s to port %s", w->host_if, w->port) : 0;
}
