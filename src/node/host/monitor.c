/* SPDX-License-Identifier: Apache-2.0 */
#include "node/host/monitor.h"

#include "base/mem.h"
#include "base/str.h"
#include "datapath/services/table.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/filter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#define BUFFER_SIZE 32768

struct monitor {
    char tun[IF_NAMESIZE];
    unsigned tun_index; /* The generation last seen; 0: none yet. */
    const struct monitor_ops *ops;
    void *ctx;
    struct mnl_socket *route, *nft;
    struct loop_fd *route_watch, *nft_watch;
    _Alignas(struct nlmsghdr) char buf[BUFFER_SIZE];
};

struct attr_query {
    uint16_t type;
    const struct nlattr *found;
};

static int match_attr(const struct nlattr *attr, void *data)
{
    struct attr_query *q = data;
    if (mnl_attr_get_type(attr) == q->type) {
        q->found = attr;
    }
    return MNL_CB_OK;
}

static const struct nlattr *find_attr(const struct nlmsghdr *h, unsigned header, uint16_t type)
{
    struct attr_query q = {.type = type};
    mnl_attr_parse(h, header, match_attr, &q);
    return q.found;
}

static bool is_about_tun(struct monitor *m, const struct nlmsghdr *h)
{
    const struct nlattr *a;
    switch (h->nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK: {
        const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(h);
        a = find_attr(h, sizeof *ifi, IFLA_IFNAME);
        if (!a) {
            return false;
        }
        if (h->nlmsg_type == RTM_DELLINK) {
            m->ops->link_gone(m->ctx, mnl_attr_get_str(a));
        }
        bool named = streq(mnl_attr_get_str(a), m->tun);
        if (named) {
            m->tun_index = (unsigned) ifi->ifi_index;
        }
        return named;
    }
    case RTM_NEWADDR:
    case RTM_DELADDR: {
        const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(h);
        return ifa->ifa_index == m->tun_index;
    }
    case RTM_NEWROUTE:
    case RTM_DELROUTE:
        a = find_attr(h, sizeof(struct rtmsg), RTA_OIF);
        return a && mnl_attr_get_u32(a) == m->tun_index;
    default:
        return false;
    }
}

struct drain {
    struct monitor *monitor;
    unsigned what;
};

static int on_route(const struct nlmsghdr *h, void *data)
{
    struct drain *d = data;
    bool address = h->nlmsg_type == RTM_NEWADDR || h->nlmsg_type == RTM_DELADDR;
    d->what |= is_about_tun(d->monitor, h) ? MONITOR_TUN : address ? MONITOR_ADDRESSES : 0;
    return MNL_CB_OK;
}

/* In every message about a table and its contents, the table's name has the same place. */
static_assert(NFTA_CHAIN_TABLE == 1 && NFTA_RULE_TABLE == 1 && NFTA_SET_TABLE == 1 &&
                  NFTA_SET_ELEM_LIST_TABLE == 1 && NFTA_OBJ_TABLE == 1 && NFTA_TABLE_NAME == 1,
              "the table's name is attribute 1");

static int on_nft(const struct nlmsghdr *h, void *data)
{
    struct drain *d = data;
    const struct nlattr *a = find_attr(h, sizeof(struct nfgenmsg), NFTA_TABLE_NAME);
    if ((h->nlmsg_type & 0xff) != NFT_MSG_NEWGEN && a &&
        mnl_attr_validate(a, MNL_TYPE_NUL_STRING) == 0) {
        const char *table = mnl_attr_get_str(a);
        d->what |= streq(table, "tenet")          ? MONITOR_NFT
                   : streq(table, SERVICES_TABLE) ? MONITOR_SERVICES
                                                  : 0;
    }
    return MNL_CB_OK;
}

/* Reads all pending messages of 's'; returns the bits of what changed, 'all' when some were
 * lost. */
static unsigned drain(struct monitor *m, struct mnl_socket *s, mnl_cb_t fn, unsigned all)
{
    struct drain d = {.monitor = m};
    for (;;) {
        ssize_t n = recv(mnl_socket_get_fd(s), m->buf, sizeof m->buf, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == ENOBUFS) {
            d.what |= all;
            continue;
        }
        if (n <= 0) {
            return d.what;
        }
        mnl_cb_run(m->buf, (size_t) n, 0, 0, fn, &d);
    }
}

static void tell(struct monitor *m, unsigned what)
{
    for (unsigned one = 1; one <= what; one <<= 1) {
        if (what & one) {
            m->ops->changed(m->ctx, one);
        }
    }
}

static void route_event(void *ctx, unsigned events)
{
    struct monitor *m = ctx;
    tell(m, drain(m, m->route, on_route, MONITOR_TUN | MONITOR_ADDRESSES));
}

static void nft_event(void *ctx, unsigned events)
{
    struct monitor *m = ctx;
    tell(m, drain(m, m->nft, on_nft, MONITOR_NFT | MONITOR_SERVICES));
}

/* The kernel filters messages whose header names 'port': a change may be very many of them. */
int monitor_ignore(struct monitor *m, uint32_t port, struct err *e)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct nlmsghdr, nlmsg_pid)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(port), 0,
                 1), /* Loads are in network byte order. */
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog program = {.len = ARRAY_SIZE(code), .filter = code};
    int fd = mnl_socket_get_fd(m->nft);
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) < 0
               ? err_sys(e, -errno, "filter nftables events")
               : 0;
}

static struct mnl_socket *subscribe(int bus, const int *groups, size_t n)
{
    struct mnl_socket *s = mnl_socket_open2(bus, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (!s) {
        return NULL;
    }
    int r = mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID);
    for (size_t i = 0; r == 0 && i < n; i++) {
        int group = groups[i];
        r = mnl_socket_setsockopt(s, NETLINK_ADD_MEMBERSHIP, &group, sizeof group);
    }
    if (r < 0) {
        int saved = errno;
        mnl_socket_close(s);
        errno = saved;
        return NULL;
    }
    return s;
}

int monitor_new(struct loop *l, const char *tun, const struct monitor_ops *ops, void *ctx,
                struct monitor **ret, struct err *e)
{
    static const int route_groups[] = {RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV4_ROUTE};
    static const int nft_groups[] = {NFNLGRP_NFTABLES};
    struct monitor *m = NEW(struct monitor);
    memcpy(m->tun, tun, strnlen(tun, sizeof m->tun - 1));
    m->ops = ops;
    m->ctx = ctx;
    m->route = subscribe(NETLINK_ROUTE, route_groups, ARRAY_SIZE(route_groups));
    if (m->route) {
        m->nft = subscribe(NETLINK_NETFILTER, nft_groups, ARRAY_SIZE(nft_groups));
    }
    if (!m->route || !m->nft) {
        int r = err_sys(e, -errno, "subscribe to %s events", m->route ? "nftables" : "link");
        monitor_free(m);
        return r;
    }
    m->tun_index = if_nametoindex(tun);
    m->route_watch = loop_fd_new(l, mnl_socket_get_fd(m->route), LOOP_READ, route_event, m);
    m->nft_watch = loop_fd_new(l, mnl_socket_get_fd(m->nft), LOOP_READ, nft_event, m);
    *ret = m;
    return 0;
}

struct monitor *monitor_free(struct monitor *m)
{
    if (m) {
        loop_fd_free(m->route_watch);
        loop_fd_free(m->nft_watch);
        if (m->route) {
            mnl_socket_close(m->route);
        }
        if (m->nft) {
            mnl_socket_close(m->nft);
        }
        free(m);
    }
    return NULL;
}
