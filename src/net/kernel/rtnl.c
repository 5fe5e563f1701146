/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kernel/rtnl.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/kernel/netns.h"
#include "net/kernel/rtnl_priv.h"

#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define DUMP_TRIES 16
#define LOOPBACK_IFINDEX 1 /* ifindex of "lo", in each namespace. */

/* ---- requests and replies ---- */

int rtnl_open(struct rtnl **ret, struct err *e)
{
    struct mnl_socket *nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
    if (!nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0) {
        int r = err_sys(e, -errno, "open a route netlink socket");
        if (nl) {
            mnl_socket_close(nl);
        }
        return r;
    }
    /* Older kernels lack some of these options: texts are shorter then, and dumps are filtered
     * here. */
    int one = 1;
    mnl_socket_setsockopt(nl, NETLINK_EXT_ACK, &one, sizeof one);
    mnl_socket_setsockopt(nl, NETLINK_CAP_ACK, &one, sizeof one);
    mnl_socket_setsockopt(nl, NETLINK_GET_STRICT_CHK, &one, sizeof one);
    struct rtnl *r = xmalloc(sizeof *r); /* Its buffers need not be cleared: they are large. */
    r->nl = nl;
    r->port = mnl_socket_get_portid(nl);
    r->seq = 0;
    r->queued = 0;
    r->why[0] = '\0';
    *ret = r;
    return 0;
}

int rtnl_open_at(int ns_fd, struct rtnl **ret, struct err *e)
{
    return rtnl_open_from(-1, ns_fd, ret, e);
}

int rtnl_open_from(int home, int ns_fd, struct rtnl **ret, struct err *e)
{
    int back;
    int r = netns_enter_from(home, ns_fd, &back, e);
    if (r < 0) {
        return r;
    }
    r = rtnl_open(ret, e);
    netns_leave(back);
    return r;
}

struct rtnl *rtnl_close(struct rtnl *r)
{
    if (r) {
        mnl_socket_close(r->nl);
        free(r);
    }
    return NULL;
}

int rtnl_fail(struct rtnl *r, int code, struct err *e, const char *fmt, ...)
{
    char what[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return r->why[0] ? err_set(e, code, "%s: %s (%s)", what, strerror(-code), r->why)
                     : err_sys(e, code, "%s", what);
}

struct nlmsghdr *rtnl_request(struct rtnl *r, uint16_t type, uint16_t flags)
{
    struct nlmsghdr *h = mnl_nlmsg_put_header(r->request + r->queued);
    h->nlmsg_type = type;
    h->nlmsg_flags = (uint16_t) (NLM_F_REQUEST | flags);
    return h;
}

static int attrs_split(const char *p, size_t size, const struct nlattr **tb, unsigned max)
{
    memset(tb, 0, (max + 1) * sizeof *tb);
    while (size >= sizeof(struct nlattr)) {
        const struct nlattr *a = (const void *) p;
        if (a->nla_len < sizeof *a || a->nla_len > size) {
            return -EBADMSG;
        }
        if (mnl_attr_get_type(a) <= max) {
            tb[mnl_attr_get_type(a)] = a;
        }
        size_t step = MIN((size_t) MNL_ALIGN(a->nla_len), size);
        p += step;
        size -= step;
    }
    return size ? -EBADMSG : 0;
}

int rtnl_attrs_parse(const struct nlmsghdr *h, size_t header, const struct nlattr **tb,
                     unsigned max)
{
    size_t size = mnl_nlmsg_get_payload_len(h), skip = MNL_ALIGN(header);
    if (size < header) {
        return -EBADMSG;
    }
    return size <= skip
               ? attrs_split(NULL, 0, tb, max)
               : attrs_split((const char *) mnl_nlmsg_get_payload(h) + skip, size - skip, tb, max);
}

int rtnl_attrs_nested(const struct nlattr *nest, const struct nlattr **tb, unsigned max)
{
    return nest ? attrs_split(mnl_attr_get_payload(nest), mnl_attr_get_payload_len(nest), tb, max)
                : attrs_split(NULL, 0, tb, max);
}

/* Keeps the kernel's message from an error or from the end of a dump. */
static void keep_why(struct rtnl *r, const struct nlmsghdr *h, size_t header)
{
    const struct nlattr *tb[NLMSGERR_ATTR_MAX + 1];
    if ((h->nlmsg_flags & NLM_F_ACK_TLVS) &&
        rtnl_attrs_parse(h, header, tb, NLMSGERR_ATTR_MAX) == 0 && tb[NLMSGERR_ATTR_MSG] &&
        mnl_attr_validate(tb[NLMSGERR_ATTR_MSG], MNL_TYPE_NUL_STRING) == 0) {
        snprintf(r->why, sizeof r->why, "%s", mnl_attr_get_str(tb[NLMSGERR_ATTR_MSG]));
    }
}

static int error_code(struct rtnl *r, const struct nlmsghdr *h)
{
    if (mnl_nlmsg_get_payload_len(h) < sizeof(struct nlmsgerr)) {
        return -EBADMSG;
    }
    const struct nlmsgerr *ack = mnl_nlmsg_get_payload(h);
    size_t offset = sizeof *ack;
    if (!(h->nlmsg_flags & NLM_F_CAPPED)) {
        offset += MNL_ALIGN(ack->msg.nlmsg_len) - sizeof ack->msg;
    }
    if (ack->error) {
        keep_why(r, h, offset);
    }
    return ack->error;
}

static int done_code(struct rtnl *r, const struct nlmsghdr *h)
{
    if (mnl_nlmsg_get_payload_len(h) < sizeof(int)) {
        return 0;
    }
    int code = *(const int *) mnl_nlmsg_get_payload(h);
    if (code) {
        keep_why(r, h, sizeof(int));
    }
    return code;
}

/* Passes the messages that answer request 'seq' to 'fn', up to the acknowledgement or the end of
 * the dump. -EINTR: the dump is inconsistent and has to be repeated. */
static int await(struct rtnl *r, uint32_t seq, rtnl_reply_fn *fn, void *ctx)
{
    bool interrupted = false;
    int failed = 0;
    for (;;) {
        ssize_t n = mnl_socket_recvfrom(r->nl, r->reply, sizeof r->reply);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return -errno;
        }
        int left = (int) n;
        for (const struct nlmsghdr *h = (const void *) r->reply; mnl_nlmsg_ok(h, left);
             h = mnl_nlmsg_next(h, &left)) {
            if (h->nlmsg_seq != seq || h->nlmsg_pid != r->port) {
                continue; /* The rest of the answer to a request that was given up. */
            }
            interrupted = interrupted || (h->nlmsg_flags & NLM_F_DUMP_INTR);
            if (h->nlmsg_type == NLMSG_ERROR || h->nlmsg_type == NLMSG_DONE) {
                int code = h->nlmsg_type == NLMSG_ERROR ? error_code(r, h) : done_code(r, h);
                return code ? code : interrupted ? -EINTR : failed;
            }
            if (h->nlmsg_type >= NLMSG_MIN_TYPE && fn && failed == 0) {
                failed = fn(ctx, h);
            }
        }
    }
}

static int exchange(struct rtnl *r, struct nlmsghdr *req, rtnl_reply_fn *fn, void *ctx)
{
    req->nlmsg_seq = ++r->seq;
    r->why[0] = '\0';
    return mnl_socket_sendto(r->nl, req, req->nlmsg_len) < 0 ? -errno
                                                             : await(r, req->nlmsg_seq, fn, ctx);
}

void rtnl_enqueue(struct rtnl *r, struct nlmsghdr *req)
{
    req->nlmsg_flags |= NLM_F_ACK;
    req->nlmsg_seq = ++r->seq;
    r->queued += MNL_ALIGN(req->nlmsg_len);
    assert(r->queued <= sizeof r->request);
}

int rtnl_flush(struct rtnl *r, unsigned n, int ignored, unsigned *ret_which, rtnl_reply_fn *fn,
               void *ctx)
{
    size_t size = r->queued;
    uint32_t seq = r->seq - n;
    r->queued = 0;
    *ret_which = 0;
    if (mnl_socket_sendto(r->nl, r->request, size) < 0) {
        r->why[0] = '\0';
        return -errno;
    }
    for (unsigned i = 0; i < n; i++) {
        r->why[0] = '\0';
        int code = await(r, ++seq, fn, ctx);
        if (code < 0 && (code != ignored || i > 0)) {
            *ret_which = i; /* The next request skips the answers to the following ones. */
            return code;
        }
    }
    return 0;
}

int rtnl_get(struct rtnl *r, struct nlmsghdr *req, rtnl_reply_fn *fn, void *ctx)
{
    req->nlmsg_flags |= NLM_F_ACK;
    return exchange(r, req, fn, ctx);
}

int rtnl_change(struct rtnl *r, struct nlmsghdr *req)
{
    return rtnl_get(r, req, NULL, NULL);
}

/* Result of a dump; 'n' returns to 0 when it is repeated. */
struct collected {
    void *items;
    size_t n, cap, item_size;
    int ifindex; /* Wanted, or 0. */
};

static void *collected_add(struct collected *c)
{
    c->items = grow(c->items, &c->cap, c->n + 1, c->item_size);
    void *item = (char *) c->items + c->n++ * c->item_size;
    memset(item, 0, c->item_size);
    return item;
}

static int dump(struct rtnl *r, struct nlmsghdr *req, rtnl_reply_fn *fn, struct collected *c)
{
    int code = -EINTR;
    req->nlmsg_flags |= NLM_F_DUMP;
    for (int i = 0; i < DUMP_TRIES && code == -EINTR; i++) {
        c->n = 0;
        code = exchange(r, req, fn, c);
    }
    if (code < 0) {
        free(c->items);
        c->items = NULL;
    }
    return code;
}

/* ---- attributes: each getter accepts an absent one, and refuses one of the wrong size ---- */

struct attrs {
    const struct nlattr *const *tb;
    bool bad;
};

static void attr_get(struct attrs *s, unsigned type, void *ret, size_t size)
{
    const struct nlattr *a = s->tb[type];
    if (a && mnl_attr_get_payload_len(a) != size) {
        s->bad = true;
    } else if (a) {
        memcpy(ret, mnl_attr_get_payload(a), size);
    }
}

static uint32_t attr_get_u32(struct attrs *s, unsigned type)
{
    uint32_t v = 0;
    attr_get(s, type, &v, sizeof v);
    return v;
}

static uint32_t attr_get_ip4(struct attrs *s, unsigned type)
{
    return ntohl(attr_get_u32(s, type));
}

static void attr_get_text(struct attrs *s, unsigned type, char *ret, size_t size)
{
    const struct nlattr *a = s->tb[type];
    if (a &&
        (mnl_attr_validate(a, MNL_TYPE_NUL_STRING) < 0 || mnl_attr_get_payload_len(a) > size)) {
        s->bad = true;
    } else if (a) {
        snprintf(ret, size, "%s", mnl_attr_get_str(a));
    }
}

static void put_ip4(struct nlmsghdr *h, uint16_t type, uint32_t addr)
{
    mnl_attr_put_u32(h, type, htonl(addr));
}

static void put_mac(struct nlmsghdr *h, uint16_t type, const struct mac *mac)
{
    if (mac) {
        mnl_attr_put(h, type, sizeof mac->b, mac->b);
    }
}

/* ---- links ---- */

static int check_ifname(const char *name, struct err *e)
{
    size_t n = strlen(name);
    if (n == 0 || n >= IF_NAMESIZE) {
        return err_set(e, -EINVAL, "link name \"%s\": not 1 to %d bytes long", name,
                       IF_NAMESIZE - 1);
    }
    return 0;
}

static struct nlmsghdr *link_request(struct rtnl *r, uint16_t type, uint16_t flags,
                                     const char *name, int ifindex, struct ifinfomsg **ret_ifi)
{
    struct nlmsghdr *h = rtnl_request(r, type, flags);
    struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(h, sizeof *ifi);
    ifi->ifi_family = AF_UNSPEC;
    if (name) {
        mnl_attr_put_strz(h, IFLA_IFNAME, name);
    } else {
        ifi->ifi_index = ifindex;
    }
    if (ret_ifi) {
        *ret_ifi = ifi;
    }
    return h;
}

static int link_parse(const struct nlmsghdr *h, struct rtnl_link *l)
{
    const struct nlattr *tb[IFLA_MAX + 1], *info[IFLA_INFO_MAX + 1], *data[IFLA_VXLAN_MAX + 1];
    if (h->nlmsg_type != RTM_NEWLINK ||
        rtnl_attrs_parse(h, sizeof(struct ifinfomsg), tb, IFLA_MAX)) {
        return -EBADMSG;
    }
    const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(h);
    struct attrs a = {.tb = tb}, ai = {.tb = info}, ad = {.tb = data};
    *l = (struct rtnl_link){
        .ifindex = ifi->ifi_index, .type = ifi->ifi_type, .flags = ifi->ifi_flags};
    attr_get_text(&a, IFLA_IFNAME, l->name, sizeof l->name);
    l->mtu = attr_get_u32(&a, IFLA_MTU);
    l->master = (int) attr_get_u32(&a, IFLA_MASTER);
    l->peer = (int) attr_get_u32(&a, IFLA_LINK);
    if (tb[IFLA_ADDRESS] && mnl_attr_get_payload_len(tb[IFLA_ADDRESS]) == sizeof l->mac.b) {
        attr_get(&a, IFLA_ADDRESS, l->mac.b, sizeof l->mac.b); /* Tunnels have other lengths. */
    }
    a.bad |= rtnl_attrs_nested(tb[IFLA_LINKINFO], info, IFLA_INFO_MAX) < 0;
    attr_get_text(&ai, IFLA_INFO_KIND, l->kind, sizeof l->kind);
    if (streq(l->kind, "vxlan")) {
        uint16_t port = 0;
        ai.bad |= rtnl_attrs_nested(info[IFLA_INFO_DATA], data, IFLA_VXLAN_MAX) < 0;
        attr_get(&ad, IFLA_VXLAN_PORT, &port, sizeof port);
        l->vxlan_port = ntohs(port);
    }
    return a.bad || ai.bad || ad.bad ? -EBADMSG : 0;
}

static int link_one(void *ctx, const struct nlmsghdr *h)
{
    return link_parse(h, ctx);
}

static struct nlmsghdr *link_question(struct rtnl *r, const char *name, int ifindex)
{
    struct nlmsghdr *h = link_request(r, RTM_GETLINK, 0, name, ifindex, NULL);
    mnl_attr_put_u32(h, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
    return h;
}

static int link_get(struct rtnl *r, const char *name, int ifindex, struct rtnl_link *ret)
{
    struct rtnl_link l = {0};
    int code = rtnl_get(r, link_question(r, name, ifindex), link_one, &l);
    if (code == 0 && !l.ifindex) {
        code = -EBADMSG;
    }
    if (code == 0) {
        *ret = l;
    }
    return code;
}

int rtnl_link_get(struct rtnl *r, const char *name, struct rtnl_link *ret, struct err *e)
{
    int code = check_ifname(name, e);
    if (code < 0) {
        return code;
    }
    code = link_get(r, name, 0, ret);
    return code < 0 ? rtnl_fail(r, code, e, "look up link %s", name) : 0;
}

int rtnl_link_get_index(struct rtnl *r, int ifindex, struct rtnl_link *ret, struct err *e)
{
    int code = link_get(r, NULL, ifindex, ret);
    return code < 0 ? rtnl_fail(r, code, e, "look up link number %d", ifindex) : 0;
}

static int link_collect(void *ctx, const struct nlmsghdr *h)
{
    return link_parse(h, collected_add(ctx));
}

int rtnl_link_list(struct rtnl *r, struct rtnl_link **ret, size_t *ret_n, struct err *e)
{
    struct collected c = {.item_size = sizeof(struct rtnl_link)};
    struct nlmsghdr *h = link_request(r, RTM_GETLINK, 0, NULL, 0, NULL);
    mnl_attr_put_u32(h, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
    int code = dump(r, h, link_collect, &c);
    if (code < 0) {
        return rtnl_fail(r, code, e, "list links");
    }
    *ret = c.items;
    *ret_n = c.n;
    return 0;
}

/* Queues of each end: one, as the kernel's default of one per processor is slow to create. */
static void put_one_queue(struct nlmsghdr *h)
{
    mnl_attr_put_u32(h, IFLA_NUM_TX_QUEUES, 1);
    mnl_attr_put_u32(h, IFLA_NUM_RX_QUEUES, 1);
}

static struct nlmsghdr *veth_new(struct rtnl *r, const struct rtnl_veth *v)
{
    struct ifinfomsg *ifi;
    struct nlmsghdr *h = link_request(r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, v->name, 0, &ifi);
    if (v->up) {
        ifi->ifi_flags = ifi->ifi_change = IFF_UP;
    }
    if (v->mtu) {
        mnl_attr_put_u32(h, IFLA_MTU, v->mtu);
    }
    put_mac(h, IFLA_ADDRESS, v->mac);
    put_one_queue(h);
    struct nlattr *info = mnl_attr_nest_start(h, IFLA_LINKINFO);
    mnl_attr_put_strz(h, IFLA_INFO_KIND, "veth");
    struct nlattr *data = mnl_attr_nest_start(h, IFLA_INFO_DATA);
    struct nlattr *peer = mnl_attr_nest_start(h, VETH_INFO_PEER);
    mnl_nlmsg_put_extra_header(h, sizeof(struct ifinfomsg));
    mnl_attr_put_strz(h, IFLA_IFNAME, v->peer_name);
    if (v->mtu) {
        mnl_attr_put_u32(h, IFLA_MTU, v->mtu);
    }
    put_mac(h, IFLA_ADDRESS, v->peer_mac);
    put_one_queue(h);
    if (v->peer_ns_fd >= 0) {
        mnl_attr_put_u32(h, IFLA_NET_NS_FD, (uint32_t) v->peer_ns_fd);
    }
    mnl_attr_nest_end(h, peer);
    mnl_attr_nest_end(h, data);
    mnl_attr_nest_end(h, info);
    return h;
}

int rtnl_veth_add(struct rtnl *r, const struct rtnl_veth *v, struct err *e)
{
    struct rtnl_link l;
    return rtnl_veth_add_get(r, v, &l, e);
}

int rtnl_veth_add_get(struct rtnl *r, const struct rtnl_veth *v, struct rtnl_link *ret,
                      struct err *e)
{
    struct rtnl_link l = {0};
    unsigned which;
    int code = check_ifname(v->name, e);
    if (code < 0 || (code = check_ifname(v->peer_name, e)) < 0) {
        return code;
    }
    rtnl_enqueue(r, veth_new(r, v));
    rtnl_enqueue(r, link_question(r, v->name, 0));
    code = rtnl_flush(r, 2, 0, &which, link_one, &l);
    if (code < 0) {
        return rtnl_fail(r, code, e, "add veth %s with peer %s", v->name, v->peer_name);
    }
    *ret = l;
    return 0;
}

static struct nlmsghdr *macvlan_new(struct rtnl *r, const struct rtnl_macvlan *m)
{
    struct nlmsghdr *h = link_request(r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, m->name, 0, NULL);
    if (m->lower) {
        mnl_attr_put_u32(h, IFLA_LINK, (uint32_t) m->lower);
        mnl_attr_put_u32(h, IFLA_NET_NS_FD, (uint32_t) m->ns_fd);
        mnl_attr_put_u32(h, IFLA_MTU, m->mtu);
    }
    struct nlattr *info = mnl_attr_nest_start(h, IFLA_LINKINFO);
    mnl_attr_put_strz(h, IFLA_INFO_KIND, "macvlan");
    struct nlattr *data = mnl_attr_nest_start(h, IFLA_INFO_DATA);
    mnl_attr_put_u32(h, IFLA_MACVLAN_MODE, MACVLAN_MODE_PASSTHRU);
    mnl_attr_put_u16(h, IFLA_MACVLAN_FLAGS, MACVLAN_FLAG_NOPROMISC);
    mnl_attr_nest_end(h, data);
    mnl_attr_nest_end(h, info);
    return h;
}

int rtnl_macvlan_add(struct rtnl *r, const struct rtnl_macvlan *m, struct err *e)
{
    int code = check_ifname(m->name, e);
    if (code < 0) {
        return code;
    }
    code = rtnl_change(r, macvlan_new(r, m));
    return code < 0 ? rtnl_fail(r, code, e, "add macvlan %s", m->name) : 0;
}

/* The kernel checks the kind before it finds an argument missing. */
bool rtnl_has_macvlan(struct rtnl *r)
{
    struct rtnl_macvlan m = {.name = "tenet-probe"};
    int code = rtnl_change(r, macvlan_new(r, &m));
    return code != -EOPNOTSUPP && code != -EPERM;
}

int rtnl_bridge_add(struct rtnl *r, const char *name, struct err *e)
{
    int code = check_ifname(name, e);
    if (code < 0) {
        return code;
    }
    struct nlmsghdr *h = link_request(r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, name, 0, NULL);
    struct nlattr *info = mnl_attr_nest_start(h, IFLA_LINKINFO);
    mnl_attr_put_strz(h, IFLA_INFO_KIND, "bridge");
    mnl_attr_nest_end(h, info);
    code = rtnl_change(r, h);
    struct rtnl_link there;
    if (code == -EEXIST && link_get(r, name, 0, &there) == 0 && streq(there.kind, "bridge")) {
        return 0;
    }
    return code < 0 ? rtnl_fail(r, code, e, "add bridge %s", name) : 0;
}

int rtnl_vxlan_add(struct rtnl *r, const struct rtnl_vxlan *v, struct err *e)
{
    int code = check_ifname(v->name, e);
    if (code < 0) {
        return code;
    }
    struct nlmsghdr *h = link_request(r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, v->name, 0, NULL);
    mnl_attr_put_u32(h, IFLA_MTU, v->mtu);
    put_mac(h, IFLA_ADDRESS, &v->mac);
    struct nlattr *info = mnl_attr_nest_start(h, IFLA_LINKINFO);
    mnl_attr_put_strz(h, IFLA_INFO_KIND, "vxlan");
    struct nlattr *data = mnl_attr_nest_start(h, IFLA_INFO_DATA);
    mnl_attr_put_u8(h, IFLA_VXLAN_COLLECT_METADATA, 1);
    mnl_attr_put_u8(h, IFLA_VXLAN_LEARNING, 0);
    mnl_attr_put_u16(h, IFLA_VXLAN_PORT, htons(v->port));
    mnl_attr_nest_end(h, data);
    mnl_attr_nest_end(h, info);
    code = rtnl_change(r, h);
    return code < 0 ? rtnl_fail(r, code, e, "add VXLAN device %s on port %u", v->name, v->port) : 0;
}

int rtnl_link_del(struct rtnl *r, const char *name, struct err *e)
{
    int code = check_ifname(name, e);
    if (code < 0) {
        return code;
    }
    code = rtnl_change(r, link_request(r, RTM_DELLINK, 0, name, 0, NULL));
    return code < 0 && code != -ENODEV ? rtnl_fail(r, code, e, "delete link %s", name) : 0;
}

int rtnl_link_set(struct rtnl *r, const struct rtnl_link_set *s, struct err *e)
{
    int code = s->name ? check_ifname(s->name, e) : 0;
    if (code < 0 || (s->new_name && (code = check_ifname(s->new_name, e)) < 0)) {
        return code;
    }
    char number[32];
    snprintf(number, sizeof number, "number %d", s->ifindex);
    const char *which = s->name ? s->name : number, *name = s->name;
    int ifindex = s->ifindex;
    if (name && s->new_name) {
        /* The request has one place for a name, and the new name needs it. */
        struct rtnl_link l;
        if ((code = link_get(r, name, 0, &l)) < 0) {
            return rtnl_fail(r, code, e, "change link %s", which);
        }
        ifindex = l.ifindex;
        name = NULL;
    }
    struct ifinfomsg *ifi;
    struct nlmsghdr *h = link_request(r, RTM_NEWLINK, 0, name, ifindex, &ifi);
    if (s->up >= 0) {
        ifi->ifi_flags = s->up ? IFF_UP : 0;
        ifi->ifi_change = IFF_UP;
    }
    if (s->promisc) {
        ifi->ifi_flags |= IFF_PROMISC;
        ifi->ifi_change |= IFF_PROMISC;
    }
    if (s->new_name) {
        mnl_attr_put_strz(h, IFLA_IFNAME, s->new_name);
    }
    put_mac(h, IFLA_ADDRESS, s->mac);
    if (s->mtu) {
        mnl_attr_put_u32(h, IFLA_MTU, s->mtu);
    }
    if (s->master) {
        mnl_attr_put_u32(h, IFLA_MASTER, s->master > 0 ? (uint32_t) s->master : 0);
    }
    if (s->ns_fd >= 0) {
        mnl_attr_put_u32(h, IFLA_NET_NS_FD, (uint32_t) s->ns_fd);
    }
    code = rtnl_change(r, h);
    return code < 0 ? rtnl_fail(r, code, e, "change link %s", which) : 0;
}

int rtnl_bridge_set_hairpin(struct rtnl *r, int ifindex, struct err *e)
{
    struct ifinfomsg *ifi;
    struct nlmsghdr *h = link_request(r, RTM_NEWLINK, 0, NULL, ifindex, &ifi);
    struct nlattr *info = mnl_attr_nest_start(h, IFLA_LINKINFO);
    mnl_attr_put_strz(h, IFLA_INFO_SLAVE_KIND, "bridge");
    struct nlattr *data = mnl_attr_nest_start(h, IFLA_INFO_SLAVE_DATA);
    mnl_attr_put_u8(h, IFLA_BRPORT_MODE, 1);
    mnl_attr_nest_end(h, data);
    mnl_attr_nest_end(h, info);
    int code = rtnl_change(r, h);
    return code < 0 ? rtnl_fail(r, code, e, "set hairpin mode of link number %d", ifindex) : 0;
}

/* ---- addresses ---- */

static struct nlmsghdr *addr_request(struct rtnl *r, uint16_t type, uint16_t flags, int ifindex,
                                     struct ip4_prefix addr)
{
    struct nlmsghdr *h = rtnl_request(r, type, flags);
    struct ifaddrmsg *ifa = mnl_nlmsg_put_extra_header(h, sizeof *ifa);
    ifa->ifa_family = AF_INET;
    ifa->ifa_prefixlen = addr.len;
    ifa->ifa_index = (uint32_t) ifindex;
    put_ip4(h, IFA_LOCAL, addr.addr);
    put_ip4(h, IFA_ADDRESS, addr.addr);
    return h;
}

int rtnl_addr_add(struct rtnl *r, int ifindex, struct ip4_prefix addr, bool noprefixroute,
                  struct err *e)
{
    struct nlmsghdr *h = addr_request(r, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, ifindex, addr);
    if (noprefixroute) {
        mnl_attr_put_u32(h, IFA_FLAGS, IFA_F_NOPREFIXROUTE);
    }
    int code = rtnl_change(r, h);
    return code < 0 ? rtnl_fail(r, code, e, "add address %s to link number %d", PREFIX_TEXT(addr),
                                ifindex)
                    : 0;
}

int rtnl_addr_del(struct rtnl *r, int ifindex, struct ip4_prefix addr, struct err *e)
{
    int code = rtnl_change(r, addr_request(r, RTM_DELADDR, 0, ifindex, addr));
    return code < 0 && code != -EADDRNOTAVAIL && code != -ENODEV
               ? rtnl_fail(r, code, e, "delete address %s from link number %d", PREFIX_TEXT(addr),
                           ifindex)
               : 0;
}

static int addr_collect(void *ctx, const struct nlmsghdr *h)
{
    struct collected *c = ctx;
    const struct nlattr *tb[IFA_MAX + 1];
    if (h->nlmsg_type != RTM_NEWADDR ||
        rtnl_attrs_parse(h, sizeof(struct ifaddrmsg), tb, IFA_MAX)) {
        return -EBADMSG;
    }
    const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(h);
    if (ifa->ifa_family != AF_INET || (c->ifindex && (int) ifa->ifa_index != c->ifindex)) {
        return 0;
    }
    struct attrs a = {.tb = tb};
    uint32_t addr = attr_get_ip4(&a, tb[IFA_LOCAL] ? IFA_LOCAL : IFA_ADDRESS);
    if (a.bad || ifa->ifa_prefixlen > 32) {
        return -EBADMSG;
    }
    *(struct rtnl_addr *) collected_add(c) = (struct rtnl_addr){
        .ifindex = (int) ifa->ifa_index, .addr = {.addr = addr, .len = ifa->ifa_prefixlen}};
    return 0;
}

int rtnl_addr_list(struct rtnl *r, int ifindex, struct rtnl_addr **ret, size_t *ret_n,
                   struct err *e)
{
    struct collected c = {.item_size = sizeof(struct rtnl_addr), .ifindex = ifindex};
    struct nlmsghdr *h = rtnl_request(r, RTM_GETADDR, 0);
    struct ifaddrmsg *ifa = mnl_nlmsg_put_extra_header(h, sizeof *ifa);
    ifa->ifa_family = AF_INET;
    ifa->ifa_index = (uint32_t) ifindex;
    int code = dump(r, h, addr_collect, &c);
    if (code < 0) {
        return rtnl_fail(r, code, e, "list addresses");
    }
    *ret = c.items;
    *ret_n = c.n;
    return 0;
}

/* ---- routes ---- */

static struct nlmsghdr *route_request(struct rtnl *r, uint16_t type, uint16_t flags,
                                      const struct rtnl_route *rt, struct rtmsg **ret_rtm)
{
    struct nlmsghdr *h = rtnl_request(r, type, flags);
    struct rtmsg *rtm = mnl_nlmsg_put_extra_header(h, sizeof *rtm);
    rtm->rtm_family = AF_INET;
    rtm->rtm_dst_len = rt->dst.len;
    rtm->rtm_table = RT_TABLE_MAIN;
    if (rt->dst.len) {
        put_ip4(h, RTA_DST, rt->dst.addr);
    }
    if (rt->gateway) {
        put_ip4(h, RTA_GATEWAY, rt->gateway);
    }
    if (rt->ifindex) {
        mnl_attr_put_u32(h, RTA_OIF, (uint32_t) rt->ifindex);
    }
    *ret_rtm = rtm;
    return h;
}

/* 'flag': NLM_F_REPLACE, or NLM_F_APPEND: after other routes to the same prefix. */
static struct nlmsghdr *route_new(struct rtnl *r, uint16_t flag, const struct rtnl_route *rt)
{
    struct rtmsg *rtm;
    struct nlmsghdr *h = route_request(r, RTM_NEWROUTE, NLM_F_CREATE | flag, rt, &rtm);
    rtm->rtm_protocol = rt->protocol ? rt->protocol : RTPROT_STATIC;
    rtm->rtm_scope = rt->gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
    rtm->rtm_type = RTN_UNICAST;
    if (rt->src) {
        put_ip4(h, RTA_PREFSRC, rt->src);
    }
    if (rt->mtu) {
        struct nlattr *metrics = mnl_attr_nest_start(h, RTA_METRICS);
        mnl_attr_put_u32(h, RTAX_MTU, rt->mtu);
        mnl_attr_nest_end(h, metrics);
    }
    return h;
}

int rtnl_route_add(struct rtnl *r, const struct rtnl_route *rt, struct err *e)
{
    int code = rtnl_change(r, route_new(r, NLM_F_REPLACE, rt));
    return code < 0 ? rtnl_fail(r, code, e, "add route to %s", PREFIX_TEXT(rt->dst)) : 0;
}

static struct nlmsghdr *link_up(struct rtnl *r, int ifindex)
{
    struct ifinfomsg *ifi;
    struct nlmsghdr *h = link_request(r, RTM_NEWLINK, 0, NULL, ifindex, &ifi);
    ifi->ifi_flags = ifi->ifi_change = IFF_UP;
    return h;
}

int rtnl_endpoint_set(struct rtnl *r, const struct rtnl_endpoint *p, struct err *e)
{
    static const char *const steps[] = {"bring up lo", "bring it up", "add its address",
                                        "add the default route"};
    struct rtnl_route dflt = {.gateway = p->gateway, .ifindex = p->ifindex};
    unsigned which;
    rtnl_enqueue(r, link_up(r, LOOPBACK_IFINDEX));
    struct nlmsghdr *h = link_up(r, p->ifindex);
    put_mac(h, IFLA_ADDRESS, p->mac);
    rtnl_enqueue(r, h);
    rtnl_enqueue(
        r, addr_request(r, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, p->ifindex, p->address));
    /* With NLM_F_REPLACE it would replace another interface's route, which then would be lost
     * with the link. */
    rtnl_enqueue(r, route_new(r, NLM_F_APPEND, &dflt));
    int code = rtnl_flush(r, ARRAY_SIZE(steps), 0, &which, NULL, NULL);
    return code < 0 ? rtnl_fail(r, code, e, "link number %d: %s", p->ifindex, steps[which]) : 0;
}

int rtnl_route_del(struct rtnl *r, const struct rtnl_route *rt, struct err *e)
{
    struct rtmsg *rtm;
    struct nlmsghdr *h = route_request(r, RTM_DELROUTE, 0, rt, &rtm);
    rtm->rtm_scope = RT_SCOPE_NOWHERE; /* Any scope. */
    int code = rtnl_change(r, h);
    return code < 0 && code != -ESRCH && code != -ENODEV
               ? rtnl_fail(r, code, e, "delete route to %s", PREFIX_TEXT(rt->dst))
               : 0;
}

static int route_parse(const struct nlmsghdr *h, struct rtnl_route *rt, const struct rtmsg **ret)
{
    const struct nlattr *tb[RTA_MAX + 1], *metrics[RTAX_MAX + 1];
    if (h->nlmsg_type != RTM_NEWROUTE || rtnl_attrs_parse(h, sizeof(struct rtmsg), tb, RTA_MAX)) {
        return -EBADMSG;
    }
    const struct rtmsg *rtm = mnl_nlmsg_get_payload(h);
    struct attrs a = {.tb = tb}, am = {.tb = metrics};
    *rt = (struct rtnl_route){0};
    *ret = rtm;
    if (rtm->rtm_family != AF_INET) {
        return 0;
    }
    rt->dst = (struct ip4_prefix){.addr = attr_get_ip4(&a, RTA_DST), .len = rtm->rtm_dst_len};
    rt->gateway = attr_get_ip4(&a, RTA_GATEWAY);
    rt->ifindex = (int) attr_get_u32(&a, RTA_OIF);
    rt->src = attr_get_ip4(&a, RTA_PREFSRC);
    a.bad |= rtnl_attrs_nested(tb[RTA_METRICS], metrics, RTAX_MAX) < 0;
    rt->mtu = attr_get_u32(&am, RTAX_MTU);
    const struct nlattr *hops = tb[RTA_MULTIPATH];
    if (hops && mnl_attr_get_payload_len(hops) >= sizeof(struct rtnexthop)) {
        /* The first of several next hops represents all. */
        rt->ifindex = ((const struct rtnexthop *) mnl_attr_get_payload(hops))->rtnh_ifindex;
    }
    return a.bad || am.bad || rt->dst.len > 32 ? -EBADMSG : 0;
}

static int route_collect(void *ctx, const struct nlmsghdr *h)
{
    struct collected *c = ctx;
    struct rtnl_route rt;
    const struct rtmsg *rtm;
    int r = route_parse(h, &rt, &rtm);
    if (r == 0 && rtm->rtm_family == AF_INET && rtm->rtm_table == RT_TABLE_MAIN &&
        rtm->rtm_type == RTN_UNICAST && !(rtm->rtm_flags & RTM_F_CLONED) &&
        (!c->ifindex || c->ifindex == rt.ifindex)) {
        *(struct rtnl_route *) collected_add(c) = rt;
    }
    return r;
}

int rtnl_route_list(struct rtnl *r, int ifindex, struct rtnl_route **ret, size_t *ret_n,
                    struct err *e)
{
    struct collected c = {.item_size = sizeof(struct rtnl_route), .ifindex = ifindex};
    struct rtmsg *rtm;
    struct nlmsghdr *h =
        route_request(r, RTM_GETROUTE, 0, &(struct rtnl_route){.ifindex = ifindex}, &rtm);
    int code = dump(r, h, route_collect, &c);
    if (code < 0 &&
        code != -ENOENT) { /* A namespace that never had a route has no table for them. */
        return rtnl_fail(r, code, e, "list routes");
    }
    *ret = c.items;
    *ret_n = c.n;
    return 0;
}

static int route_one(void *ctx, const struct nlmsghdr *h)
{
    const struct rtmsg *rtm;
    return route_parse(h, ctx, &rtm);
}

int rtnl_route_get(struct rtnl *r, uint32_t dst, struct rtnl_route *ret, struct err *e)
{
    struct rtmsg *rtm;
    struct rtnl_route rt = {0};
    struct nlmsghdr *h = route_request(r, RTM_GETROUTE, 0,
                                       &(struct rtnl_route){.dst = {.addr = dst, .len = 32}}, &rtm);
    rtm->rtm_table = 0;
    int code = rtnl_get(r, h, route_one, &rt);
    if (code < 0) {
        return rtnl_fail(r, code, e, "find the route to %s", IP4_TEXT(dst));
    }
    *ret = rt;
    return 0;
}

/* ---- neighbours ---- */

static struct nlmsghdr *neigh_request(struct rtnl *r, int ifindex, uint32_t addr,
                                      struct ndmsg **ret)
{
    struct nlmsghdr *h = rtnl_request(r, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
    struct ndmsg *ndm = mnl_nlmsg_put_extra_header(h, sizeof *ndm);
    ndm->ndm_family = AF_INET;
    ndm->ndm_ifindex = ifindex;
    put_ip4(h, NDA_DST, addr);
    *ret = ndm;
    return h;
}

int rtnl_neigh_probe(struct rtnl *r, int ifindex, uint32_t addr, struct err *e)
{
    struct ndmsg *ndm;
    struct nlmsghdr *h = neigh_request(r, ifindex, addr, &ndm);
    ndm->ndm_flags = NTF_USE;
    int code = rtnl_change(r, h);
    return code < 0 ? rtnl_fail(r, code, e, "resolve %s on link number %d", IP4_TEXT(addr), ifindex)
                    : 0;
}

int rtnl_neigh_add(struct rtnl *r, int ifindex, uint32_t addr, struct mac mac, struct err *e)
{
    struct ndmsg *ndm;
    struct nlmsghdr *h = neigh_request(r, ifindex, addr, &ndm);
    ndm->ndm_state = NUD_PERMANENT;
    put_mac(h, NDA_LLADDR, &mac);
    int code = rtnl_change(r, h);
    return code < 0 ? rtnl_fail(r, code, e, "add neighbour %s at %s to link number %d",
                                IP4_TEXT(addr), MAC_TEXT(mac), ifindex)
                    : 0;
}

static int neigh_collect(void *ctx, const struct nlmsghdr *h)
{
    const struct nlattr *tb[NDA_MAX + 1] = {NULL};
    if (h->nlmsg_len < NLMSG_HDRLEN + sizeof(struct ndmsg) ||
        rtnl_attrs_parse(h, sizeof(struct ndmsg), tb, NDA_MAX)) {
        return -EBADMSG;
    }
    const struct ndmsg *ndm = mnl_nlmsg_get_payload(h);
    const struct nlattr *mac = tb[NDA_LLADDR];
    const uint16_t resolved = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT;
    if (ndm->ndm_family != AF_INET || !(ndm->ndm_state & resolved) || !mac ||
        mnl_attr_get_payload_len(mac) != sizeof(struct mac)) {
        return 0;
    }
    struct attrs a = {.tb = tb};
    struct rtnl_neigh n = {.ifindex = ndm->ndm_ifindex, .addr = attr_get_ip4(&a, NDA_DST)};
    memcpy(&n.mac, mnl_attr_get_payload(mac), sizeof n.mac);
    if (a.bad) {
        return -EBADMSG;
    }
    *(struct rtnl_neigh *) collected_add(ctx) = n;
    return 0;
}

int rtnl_neigh_list(struct rtnl *r, struct rtnl_neigh **ret, size_t *ret_n, struct err *e)
{
    struct collected c = {.item_size = sizeof(struct rtnl_neigh)};
    struct nlmsghdr *h = rtnl_request(r, RTM_GETNEIGH, 0);
    struct ndmsg *ndm = mnl_nlmsg_put_extra_header(h, sizeof *ndm);
    ndm->ndm_family = AF_INET;
    int code = dump(r, h, neigh_collect, &c);
    if (code < 0) {
        return rtnl_fail(r, code, e, "list neighbours");
    }
    *ret = c.items;
    *ret_n = c.n;
    return 0;
}

/* ---- ethtool ---- */

int ethtool_tx_checksum(const char *ifname, bool on, struct err *e)
{
    int r = check_ifname(ifname, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ethtool_value value = {.cmd = ETHTOOL_STXCSUM, .data = on};
    struct ifreq req = {.ifr_data = (char *) &value};
    snprintf(req.ifr_name, sizeof req.ifr_name, "%s", ifname);
    if (fd < 0 || ioctl(fd, SIOCETHTOOL, &req) < 0) {
        return err_sys(e, -errno, "turn transmit checksum offload of %s %s", ifname,
                       on ? "on" : "off");
    }
    return 0;
}
