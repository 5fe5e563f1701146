/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts: namespaces joined by the wire, a Linux bridge in a namespace of its own. */
#include "base/mem.h"
#include "lab/lab_internal.h"
#include "net/kernel/netns.h"
#include "net/kernel/rtnl.h"

#include <unistd.h>

#define WIRE_BRIDGE "wire"
#define HOST_LINK "eth0"
#define WIRE_MTU_MIN 1500
#define LINK_TIMEOUT_MS 10000

int host_open(const struct lab *l, const char *host, int *ret_fd, struct err *e)
{
    CLEANUP_FREE char *ns = lab_ns(l, host);
    return netns_open(ns, ret_fd, e);
}

static int host_rtnl(const struct lab *l, const char *host, struct rtnl **ret, struct err *e)
{
    CLEANUP(fd_close) int ns = -1;
    int r = host_open(l, host, &ns, e);
    return r < 0 ? r : rtnl_open_at(ns, ret, e);
}

uint32_t wire_mtu(const struct lab *l)
{
    int64_t pods = json_get_int_or(json_get(l->config, "mtu"), 0);
    return MAX((uint32_t) pods + 50, (uint32_t) WIRE_MTU_MIN);
}

static int link_up(struct rtnl *r, const char *name, int master, struct err *e)
{
    struct rtnl_link_set s = RTNL_LINK_SET_INIT(name);
    s.up = 1;
    s.master = master;
    return rtnl_link_set(r, &s, e);
}

int wire_create(struct lab *l, struct err *e)
{
    CLEANUP_FREE char *ns = lab_ns(l, "wire");
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    int err = netns_create(ns, e);
    if (err < 0 || (err = host_rtnl(l, "wire", &r, e)) < 0 ||
        (err = rtnl_bridge_add(r, WIRE_BRIDGE, e)) < 0) {
        return err;
    }
    return link_up(r, WIRE_BRIDGE, 0, e);
}

/* A userspace switch gets packets as they are on the link, so they must be complete there:
 * senders compute their checksums. */
static int no_offload(const struct lab *l, const char *host, const char *link, struct err *e)
{
    CLEANUP(fd_close) int ns = -1;
    int back;
    int r = host_open(l, host, &ns, e);
    if (r < 0 || (r = netns_enter(ns, &back, e)) < 0) {
        return r;
    }
    r = ethtool_tx_checksum(link, false, e);
    netns_leave(back);
    return r;
}

struct mac host_mac(uint32_t addr)
{
    struct mac m = mac_from_ip4(addr);
    m.b[0] = 0x02;
    m.b[1] = 0;
    return m;
}

int host_create(struct lab *l, const char *host, uint32_t addr, bool in_switch, struct err *e)
{
    CLEANUP_FREE char *ns = lab_ns(l, host);
    CLEANUP(rtnl_close) struct rtnl *wire = NULL;
    CLEANUP(rtnl_close) struct rtnl *mine = NULL;
    CLEANUP(fd_close) int fd = -1;
    struct rtnl_link bridge;
    int r = netns_create(ns, e);
    if (r < 0 || (r = netns_open(ns, &fd, e)) < 0 || (r = rtnl_open_at(fd, &mine, e)) < 0 ||
        (r = host_rtnl(l, "wire", &wire, e)) < 0 ||
        (r = rtnl_link_get(wire, WIRE_BRIDGE, &bridge, e)) < 0) {
        return r;
    }
    struct mac mac = host_mac(addr);
    struct rtnl_veth v = {.name = host,
                          .peer_name = HOST_LINK,
                          .peer_ns_fd = fd,
                          .mtu = wire_mtu(l),
                          .peer_mac = &mac};
    if ((r = rtnl_veth_add(wire, &v, e)) < 0 || (r = link_up(wire, host, bridge.ifindex, e)) < 0 ||
        (r = no_offload(l, "wire", host, e)) < 0 || (r = no_offload(l, host, HOST_LINK, e)) < 0 ||
        (r = link_up(mine, HOST_LINK, 0, e)) < 0) {
        return r;
    }
    return in_switch ? 0 : host_address(l, host, HOST_LINK, addr, e);
}

struct link_wait {
    struct rtnl *rt;
    const char *name;
};

static int is_running(void *ctx)
{
    struct link_wait *w = ctx;
    struct rtnl_link lk;
    return rtnl_link_get(w->rt, w->name, &lk, NULL) == 0 && (lk.flags & IFF_RUNNING);
}

/* Waits for the carrier: until the kernel has noticed it, it drops packets that wait for an
 * address. */
static int wait_running(struct rtnl *rt, const char *host, const char *name, struct err *e)
{
    struct link_wait w = {.rt = rt, .name = name};
    int r = lab_wait(is_running, &w, LINK_TIMEOUT_MS);
    return r < 0 ? err_set(e, r, "%s of %s has no carrier", name, host) : 0;
}

int host_address(struct lab *l, const char *host, const char *link, uint32_t addr, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *rt = NULL;
    struct rtnl_link lk;
    int r = host_rtnl(l, host, &rt, e);
    if (r < 0 || (r = rtnl_link_get(rt, link, &lk, e)) < 0 || (r = link_up(rt, link, 0, e)) < 0 ||
        (r = wait_running(rt, host, link, e)) < 0 ||
        (r = rtnl_addr_add(rt, lk.ifindex, (struct ip4_prefix){addr, WIRE_LEN}, false, e)) < 0) {
        return r;
    }
    if (addr == OUTSIDE_IP) {
        return 0;
    }
    return rtnl_route_add(rt, &(struct rtnl_route){.gateway = OUTSIDE_IP, .ifindex = lk.ifindex},
                          e);
}

int outside_create(struct lab *l, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *rt = NULL;
    struct rtnl_link lo;
    int r = host_create(l, "outside", OUTSIDE_IP, false, e);
    if (r < 0 || (r = host_rtnl(l, "outside", &rt, e)) < 0 ||
        (r = rtnl_link_get(rt, "lo", &lo, e)) < 0) {
        return r;
    }
    return rtnl_addr_add(rt, lo.ifindex, (struct ip4_prefix){INTERNET_IP, 32}, false, e);
}
