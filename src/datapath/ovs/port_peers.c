/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ovs/port_peers.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/kernel/netns.h"
#include "net/loop/process.h"

#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <sys/socket.h>

#define FILE_NAME "ports.netns"
#define BUFFER_SIZE 32768

struct port_peers {
    int fd;
    port_peers_gone_fn *fn;
    void *ctx;
    struct mnl_socket *events;
    struct loop_fd *watch;
    _Alignas(struct nlmsghdr) char buf[BUFFER_SIZE];
};

int port_peers_fd(const struct port_peers *x)
{
    return x->fd;
}

void port_peers_name(const char *port, char ret[IF_NAMESIZE])
{
    snprintf(ret, IF_NAMESIZE, "%.14sx", port);
}

struct mac port_peers_mac(const char *name)
{
    uint32_t h = hash_string(name);
    return (struct mac){
        {0xee, 0x74, (uint8_t) (h >> 24), (uint8_t) (h >> 16), (uint8_t) (h >> 8), (uint8_t) h}};
}

/* ---- events ---- */

static int on_attr(const struct nlattr *a, void *data)
{
    const struct nlattr **tb = data;
    uint16_t type = mnl_attr_get_type(a);
    if (type <= IFLA_IFNAME) {
        tb[type] = a;
    }
    return MNL_CB_OK;
}

static int on_link(const struct nlmsghdr *h, void *data)
{
    struct port_peers *x = data;
    const struct nlattr *tb[IFLA_IFNAME + 1] = {0};
    if (h->nlmsg_type != RTM_NEWLINK && h->nlmsg_type != RTM_DELLINK) {
        return MNL_CB_OK;
    }
    mnl_attr_parse(h, sizeof(struct ifinfomsg), on_attr, tb);
    if (!tb[IFLA_IFNAME] || mnl_attr_validate(tb[IFLA_IFNAME], MNL_TYPE_NUL_STRING) < 0) {
        return MNL_CB_OK;
    }
    const char *name = mnl_attr_get_str(tb[IFLA_IFNAME]);
    struct mac own = port_peers_mac(name);
    const struct nlattr *mac = tb[IFLA_ADDRESS];
    if (h->nlmsg_type == RTM_DELLINK || (mac && mnl_attr_get_payload_len(mac) == sizeof own.b &&
                                         memcmp(mnl_attr_get_payload(mac), own.b, 6) == 0)) {
        x->fn(x->ctx, name);
    }
    return MNL_CB_OK;
}

static void on_events(void *ctx, unsigned events)
{
    struct port_peers *x = ctx;
    for (;;) {
        ssize_t n = recv(mnl_socket_get_fd(x->events), x->buf, sizeof x->buf, MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == ENOBUFS)) {
            /* A lost notification does no harm: the kernel announces a deletion again when it has
             * finished it. */
            continue;
        }
        if (n <= 0) {
            return;
        }
        mnl_cb_run(x->buf, (size_t) n, 0, 0, on_link, x);
    }
}

static int subscribe(struct port_peers *x, struct err *e)
{
    int group = RTNLGRP_LINK;
    x->events = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (!x->events || mnl_socket_bind(x->events, 0, MNL_SOCKET_AUTOPID) < 0 ||
        mnl_socket_setsockopt(x->events, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) < 0) {
        return err_sys(e, -errno, "subscribe to link events");
    }
    return 0;
}

/* ---- the whole ---- */

/* Prepares the namespace, in which the thread is: without IPv6 the kernel sends no packets there by
 * itself. */
static int prepare(struct port_peers *x, struct err *e)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    int k = sysctl_set("net/ipv6/conf/default/disable_ipv6", "1", e);
    k = k == -ENOENT ? 0 : k; /* The kernel has no IPv6. */
    k = k < 0 ? k : rtnl_open(&r, e);
    if (k == 0 && !rtnl_has_macvlan(r)) {
        k = err_set(e, -EOPNOTSUPP, "the kernel has no macvlan");
    }
    return k < 0 ? k : subscribe(x, e);
}

int port_peers_mount(const char *run_dir, struct err *e)
{
    CLEANUP_FREE char *path = xasprintf("%s/" FILE_NAME, run_dir);
    CLEANUP(fd_close) int fd = -1;
    return netns_hold(path, &fd, e);
}

int port_peers_open(struct loop *l, const char *run_dir, port_peers_gone_fn *fn, void *ctx,
                    struct port_peers **ret, struct err *e)
{
    CLEANUP(port_peers_close) struct port_peers *x = NEW(struct port_peers);
    CLEANUP_FREE char *path = xasprintf("%s/" FILE_NAME, run_dir);
    int back;
    x->fd = -1;
    x->fn = fn;
    x->ctx = ctx;
    int k = netns_hold(path, &x->fd, e);
    if (k < 0 || (k = netns_enter(x->fd, &back, e)) < 0) {
        return k;
    }
    k = prepare(x, e);
    netns_leave(back);
    if (k < 0) {
        return k;
    }
    x->watch = loop_fd_new(l, mnl_socket_get_fd(x->events), LOOP_READ, on_events, x);
    *ret = TAKE(x);
    return 0;
}

struct port_peers *port_peers_close(struct port_peers *x)
{
    if (x) {
        loop_fd_free(x->watch);
        if (x->events) {
            mnl_socket_close(x->events);
        }
        fd_close(x->fd);
        free(x);
    }
    return NULL;
}
