/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kernel/conntrack.h"

#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>

#define MAX_TUPLE 256 /* Size of an IPv4 tuple: some 60 bytes. */

struct tuple {
    uint16_t size;
    uint8_t bytes[MAX_TUPLE]; /* The attribute CTA_TUPLE_ORIG's payload, as the kernel wrote it. */
};

struct search {
    conntrack_fn *fn;
    void *ctx;
    struct tuple *found;
    size_t n, cap;
};

/* The attribute 'type' among those from 'attr' on, in 'size' bytes; NULL: absent. */
static const struct nlattr *find(const struct nlattr *attr, size_t size, int type)
{
    for (; mnl_attr_ok(attr, (int) size);) {
        if (mnl_attr_get_type(attr) == type) {
            return attr;
        }
        size -= MIN(size, (size_t) MNL_ALIGN(attr->nla_len));
        attr = mnl_attr_next(attr);
    }
    return NULL;
}

static const struct nlattr *find_in(const struct nlattr *nest, int type)
{
    return nest ? find(mnl_attr_get_payload(nest), mnl_attr_get_payload_len(nest), type) : NULL;
}

static bool read_be16(const struct nlattr *attr, uint16_t *ret)
{
    bool there = attr && mnl_attr_get_payload_len(attr) >= sizeof *ret;
    *ret = there ? ntohs(mnl_attr_get_u16(attr)) : 0;
    return there;
}

static bool read_be32(const struct nlattr *attr, uint32_t *ret)
{
    bool there = attr && mnl_attr_get_payload_len(attr) >= sizeof *ret;
    *ret = there ? ntohl(mnl_attr_get_u32(attr)) : 0;
    return there;
}

static int look(const struct nlmsghdr *h, void *ctx)
{
    struct search *s = ctx;
    size_t header = MNL_ALIGN(sizeof(struct nfgenmsg));
    if (mnl_nlmsg_get_payload_len(h) < header) {
        return MNL_CB_OK;
    }
    const void *attrs = mnl_nlmsg_get_payload_offset(h, header);
    size_t size = mnl_nlmsg_get_payload_len(h) - header;
    const struct nlattr *tuple = find(attrs, size, CTA_TUPLE_ORIG);
    const struct nlattr *reply = find(attrs, size, CTA_TUPLE_REPLY);
    const struct nlattr *ip = find_in(tuple, CTA_TUPLE_IP);
    const struct nlattr *proto = find_in(tuple, CTA_TUPLE_PROTO);
    const struct nlattr *number = find_in(proto, CTA_PROTO_NUM);
    struct conntrack_flow f;
    if (find(attrs, size, CTA_ZONE) || !number || mnl_attr_get_payload_len(number) < 1 ||
        mnl_attr_get_u8(number) != IPPROTO_UDP || mnl_attr_get_payload_len(tuple) > MAX_TUPLE ||
        !read_be32(find_in(ip, CTA_IP_V4_SRC), &f.from) ||
        !read_be32(find_in(ip, CTA_IP_V4_DST), &f.to) ||
        !read_be16(find_in(proto, CTA_PROTO_SRC_PORT), &f.from_port) ||
        !read_be16(find_in(proto, CTA_PROTO_DST_PORT), &f.to_port) ||
        !read_be32(find_in(find_in(reply, CTA_TUPLE_IP), CTA_IP_V4_SRC), &f.answers) ||
        !read_be16(find_in(find_in(reply, CTA_TUPLE_PROTO), CTA_PROTO_SRC_PORT), &f.answers_port) ||
        !s->fn(s->ctx, &f)) {
        return MNL_CB_OK;
    }
    s->found = grow(s->found, &s->cap, s->n + 1, sizeof *s->found);
    struct tuple *t = &s->found[s->n++];
    t->size = mnl_attr_get_payload_len(tuple);
    memcpy(t->bytes, mnl_attr_get_payload(tuple), t->size);
    return MNL_CB_OK;
}

static struct nlmsghdr *request(char *buf, unsigned type, unsigned flags, unsigned seq)
{
    struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
    h->nlmsg_type = (uint16_t) (NFNL_SUBSYS_CTNETLINK << 8 | type);
    h->nlmsg_flags = (uint16_t) (NLM_F_REQUEST | flags);
    h->nlmsg_seq = seq;
    struct nfgenmsg *g = mnl_nlmsg_put_extra_header(h, sizeof *g);
    g->nfgen_family = AF_INET;
    g->version = NFNETLINK_V0;
    return h;
}

/* Sends 'h' and passes the messages of the answer to 'fn'. */
static int exchange(struct mnl_socket *s, struct nlmsghdr *h, mnl_cb_t fn, void *ctx)
{
    CLEANUP_FREE char *answer = xmalloc(32768);
    if (mnl_socket_sendto(s, h, h->nlmsg_len) < 0) {
        return -errno;
    }
    for (;;) {
        ssize_t n = mnl_socket_recvfrom(s, answer, 32768);
        int r =
            n < 0 ? -1
                  : mnl_cb_run(answer, (size_t) n, h->nlmsg_seq, mnl_socket_get_portid(s), fn, ctx);
        if (r <= 0) {
            return r < 0 ? -errno : 0;
        }
    }
}

int conntrack_forget_udp(conntrack_fn *fn, void *ctx, struct err *e)
{
    char buf[1024];
    struct search search = {.fn = fn, .ctx = ctx};
    struct mnl_socket *s = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
    if (!s) {
        return err_sys(e, -errno, "open a netlink socket for connection tracking");
    }
    int r = mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0 ? -errno : 0;
    r = r < 0 ? r : exchange(s, request(buf, IPCTNL_MSG_CT_GET, NLM_F_DUMP, 1), look, &search);
    for (size_t i = 0; r == 0 && i < search.n; i++) {
        const struct tuple *t = &search.found[i];
        struct nlmsghdr *h = request(buf, IPCTNL_MSG_CT_DELETE, NLM_F_ACK, (unsigned) i + 2);
        mnl_attr_put(h, CTA_TUPLE_ORIG | NLA_F_NESTED, t->size, t->bytes);
        r = exchange(s, h, NULL, NULL);
        r = r == -ENOENT ? 0 : r; /* It ended meanwhile. */
    }
    mnl_socket_close(s);
    free(search.found);
    return r < 0 ? err_sys(e, r, "forget UDP connections of the host") : 0;
}
