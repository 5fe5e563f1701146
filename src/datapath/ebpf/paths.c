/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/paths.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "datapath/ebpf/devices.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <linux/xfrm.h>
#include <time.h>

LOG_MODULE("ebpf");

enum {
    LINKS_MAX = 16,
    SOON_MS = 10,   /* Changes that arrive together are handled together. */
    LATE_MS = 1000, /* Interval after which a better path is looked for. */
    BUFFER_SIZE = 32768,
};

struct uplink {
    int ifindex;
    char name[IF_NAMESIZE];
    uint32_t mtu; /* 0: not usable. */
    bool hooked;
};

/* The kernel's route to a node. */
struct answer {
    uint32_t host;
    struct path path;
};

struct paths {
    struct paths_config c;
    struct rtnl *rtnl;
    struct mnl_socket *routes, *xfrm; /* Netlink event sockets; 'xfrm' may be NULL. */
    struct loop_fd *routes_watch, *xfrm_watch;
    struct loop_timer *timer;
    bool soon;            /* The timer is armed with SOON_MS. */
    bool stale;           /* The known paths may be outdated. */
    struct answer *known; /* By host. */
    size_t n_known;
    struct path *found;
    struct uplink links[LINKS_MAX];
    size_t n_links;
    bool ipsec;
    _Alignas(struct nlmsghdr) char buf[BUFFER_SIZE];
};

/* ---- change events ---- */

static void on_timer(void *ctx)
{
    struct paths *p = ctx;
    p->soon = false;
    p->stale = true;
    p->c.changed(p->c.ctx);
}

static void note_change(struct paths *p, bool soon)
{
    if (p->soon || (!soon && loop_timer_armed(p->timer))) {
        return;
    }
    p->soon = soon;
    loop_timer_arm(p->timer, soon ? SOON_MS : LATE_MS);
}

static struct uplink *find_link(struct paths *p, int ifindex)
{
    for (size_t i = 0; i < p->n_links; i++) {
        if (p->links[i].ifindex == ifindex) {
            return &p->links[i];
        }
    }
    return NULL;
}

/* Pods' links are created and removed all the time; links without a path to a node matter only
 * by their routes, which are reported separately. */
static int on_message(const struct nlmsghdr *h, void *data)
{
    struct paths *p = data;
    if (h->nlmsg_type == RTM_NEWLINK || h->nlmsg_type == RTM_DELLINK) {
        const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(h);
        note_change(p, find_link(p, ifi->ifi_index) != NULL);
    } else {
        note_change(p, true);
    }
    return MNL_CB_OK;
}

static void drain(struct paths *p, struct mnl_socket *s, mnl_cb_t fn)
{
    for (;;) {
        ssize_t n = recv(mnl_socket_get_fd(s), p->buf, sizeof p->buf, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == ENOBUFS) {
            note_change(p, true);
            continue;
        }
        if (n <= 0) {
            return;
        }
        mnl_cb_run(p->buf, (size_t) n, 0, 0, fn, p);
    }
}

static void routes_event(void *ctx, unsigned events)
{
    struct paths *p = ctx;
    drain(p, p->routes, on_message);
}

static int on_policy(const struct nlmsghdr *h, void *data)
{
    note_change(data, true);
    return MNL_CB_OK;
}

static void xfrm_event(void *ctx, unsigned events)
{
    struct paths *p = ctx;
    drain(p, p->xfrm, on_policy);
}

/* ---- paths ---- */

/* The MTU is 0 unless the link carries Ethernet frames with ARP and is not one of our own. */
static struct uplink look_at(struct paths *p, int ifindex)
{
    struct rtnl_link l;
    struct uplink u = {.ifindex = ifindex};
    if (rtnl_link_get_index(p->rtnl, ifindex, &l, NULL) == 0) {
        bool ours =
            streq(l.name, DEVICE_TUN) || streq(l.name, DEVICE_HOST) || streq(l.name, DEVICE_VXLAN);
        snprintf(u.name, sizeof u.name, "%s", l.name);
        u.mtu = l.type == ARPHRD_ETHER && (l.flags & IFF_UP) && !(l.flags & IFF_NOARP) && !ours
                    ? l.mtu
                    : 0;
    }
    return u;
}

/* NULL: no usable one. */
static const struct uplink *link_of(struct paths *p, int ifindex)
{
    struct uplink *u = find_link(p, ifindex);
    if (!u && p->n_links < LINKS_MAX) {
        u = &p->links[p->n_links++];
        *u = look_at(p, ifindex);
    }
    return u && u->mtu ? u : NULL;
}

static int by_host(const void *a, const void *b)
{
    uint32_t x = ((const struct answer *) a)->host, y = ((const struct answer *) b)->host;
    return (x > y) - (x < y);
}

static const struct answer *find_answer(const struct paths *p, uint32_t host)
{
    struct answer like = {.host = host};
    return p->n_known ? bsearch(&like, p->known, p->n_known, sizeof like, by_host) : NULL;
}

/* Asks the kernel about the nodes without a known path. */
static int ask(struct paths *p, const struct sdn_network *n, struct err *e)
{
    CLEANUP_FREE uint32_t *to = xcalloc(n->n_remotes + 1, sizeof *to);
    CLEANUP_FREE struct path *paths = xcalloc(n->n_remotes + 1, sizeof *paths);
    size_t k = 0;
    for (size_t i = 0; i < n->n_remotes; i++) {
        if (!find_answer(p, n->remotes[i].host_ip)) {
            to[k++] = n->remotes[i].host_ip;
        }
    }
    int r = k ? path_find(p->rtnl, n->host_ip, to, k, paths, e) : 0;
    if (r < 0 || !k) {
        return r;
    }
    struct answer *known = xcalloc(p->n_known + k, sizeof *known);
    memcpy(known, p->known ? p->known : known, p->n_known * sizeof *known);
    for (size_t i = 0; i < k; i++) {
        known[p->n_known++] = (struct answer){to[i], paths[i]};
    }
    qsort(known, p->n_known, sizeof *known, by_host);
    free(p->known);
    p->known = known;
    return 0;
}

static void forget_all(struct paths *p)
{
    p->stale = false;
    p->ipsec = path_has_ipsec();
    p->n_known = 0;
    p->n_links = 0;
}

/* The previous links either lead to a node still, or are none of ours any more. */
static void compare_links(struct paths *p, const struct uplink *before, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct uplink *u = find_link(p, before[i].ifindex);
        if (u && u->mtu && streq(u->name, before[i].name)) {
            u->hooked = before[i].hooked;
        } else if (before[i].hooked) {
            hook_detach(p->c.hooks, p->rtnl, before[i].name, before[i].ifindex);
            log_info("link leads to no other node any more", "link=%s", before[i].name);
        }
    }
}

const struct path *paths_find(struct paths *p, const struct sdn_network *n)
{
    static struct log_limit limit;
    struct uplink before[LINKS_MAX];
    struct err e = {0};
    if (!p) {
        return NULL;
    }
    size_t n_before = p->n_links;
    memcpy(before, p->links, sizeof before);
    if (p->stale) {
        forget_all(p);
    }
    if (!p->ipsec && ask(p, n, &e) < 0) {
        log_limited(&limit, LOG_ERROR, "packets to other nodes go by the VXLAN device",
                    "error=\"%s\"", e.text);
    }
    free(p->found);
    p->found = xcalloc(n->n_remotes + 1, sizeof *p->found);
    for (size_t i = 0; i < n->n_remotes; i++) {
        const struct answer *a = find_answer(p, n->remotes[i].host_ip);
        const struct uplink *u = a && a->path.ifindex ? link_of(p, a->path.ifindex) : NULL;
        if (u) {
            uint32_t mtu = a->path.mtu ? MIN(a->path.mtu, u->mtu) : u->mtu;
            p->found[i] = (struct path){u->ifindex, a->path.next, mtu};
        }
    }
    compare_links(p, before, n_before);
    return p->found;
}

uint32_t paths_lend(const struct paths *p)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return p && !p->ipsec ? (uint32_t) now.tv_sec + PATHS_LENT_S : 0;
}

void paths_hook(struct paths *p, int from_wire)
{
    static struct log_limit limit;
    for (size_t i = 0; p && i < p->n_links; i++) {
        struct uplink *u = &p->links[i];
        struct err e = {0};
        if (!u->mtu) {
            continue;
        }
        if (hook_attach(p->c.hooks, p->rtnl, HOOK_SHARED, u->name, u->ifindex, from_wire, &e) < 0) {
            log_limited(&limit, LOG_ERROR, "packets from other nodes pass the VXLAN device",
                        "link=%s error=\"%s\"", u->name, e.text);
            continue;
        }
        if (!u->hooked) {
            log_info("link leads to other nodes", "link=%s", u->name);
        }
        u->hooked = true;
    }
}

size_t paths_places(const struct paths *p, struct hook_place *ret, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; p && i < p->n_links && n < max; i++) {
        if (p->links[i].mtu) {
            memcpy(ret[n].ifname, p->links[i].name, sizeof ret[n].ifname);
            ret[n++].ifindex = p->links[i].ifindex;
        }
    }
    return n;
}

bool paths_has_link(const struct paths *p, const char *ifname)
{
    for (size_t i = 0; p && i < p->n_links; i++) {
        if (p->links[i].mtu && streq(p->links[i].name, ifname)) {
            return true;
        }
    }
    return false;
}

/* ---- making ---- */

static struct mnl_socket *subscribe(int bus, const int *groups, size_t n)
{
    struct mnl_socket *s = mnl_socket_open2(bus, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int r = s ? mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) : -1;
    for (size_t i = 0; r == 0 && i < n; i++) {
        int group = groups[i];
        r = mnl_socket_setsockopt(s, NETLINK_ADD_MEMBERSHIP, &group, sizeof group);
    }
    if (r < 0 && s) {
        int saved = errno;
        mnl_socket_close(s);
        errno = saved;
        s = NULL;
    }
    return s;
}

int paths_new(const struct paths_config *c, struct paths **ret, struct err *e)
{
    static const int route_groups[] = {RTNLGRP_LINK, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV4_RULE,
                                       RTNLGRP_NEXTHOP};
    static const int xfrm_groups[] = {XFRMNLGRP_POLICY};
    struct paths *p = NEW(struct paths);
    p->c = *c;
    p->stale = true;
    p->timer = loop_timer_new(c->loop, on_timer, p);
    int r = rtnl_open(&p->rtnl, e);
    if (r == 0) {
        p->routes = subscribe(NETLINK_ROUTE, route_groups, ARRAY_SIZE(route_groups));
        r = p->routes ? 0 : err_sys(e, -errno, "subscribe to route events");
    }
    if (r == 0) {
        p->xfrm = subscribe(NETLINK_XFRM, xfrm_groups, ARRAY_SIZE(xfrm_groups));
        r = p->xfrm || errno == EPROTONOSUPPORT ? 0
                                                : err_sys(e, -errno, "subscribe to IPsec events");
    }
    if (r < 0) {
        paths_free(p);
        return r;
    }
    p->routes_watch =
        loop_fd_new(c->loop, mnl_socket_get_fd(p->routes), LOOP_READ, routes_event, p);
    if (p->xfrm) {
        p->xfrm_watch = loop_fd_new(c->loop, mnl_socket_get_fd(p->xfrm), LOOP_READ, xfrm_event, p);
    }
    *ret = p;
    return 0;
}

struct paths *paths_free(struct paths *p)
{
    if (p) {
        loop_fd_free(p->routes_watch);
        loop_fd_free(p->xfrm_watch);
        loop_timer_free(p->timer);
        if (p->routes) {
            mnl_socket_close(p->routes);
        }
        if (p->xfrm) {
            mnl_socket_close(p->xfrm);
        }
        rtnl_close(p->rtnl);
        free(p->known);
        free(p->found);
        free(p);
    }
    return NULL;
}
