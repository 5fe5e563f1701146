/* SPDX-License-Identifier: Apache-2.0 */
#include "node/host/nat.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#define BUFFER 8192 /* The answer has seven counters in some 700 bytes. */

const char *nat_drop_name(enum nat_drop d)
{
    static const char *const names[] = {
        [NAT_DROP_TUNNEL] = "tunnel",          [NAT_DROP_LOOPBACK] = "loopback",
        [NAT_DROP_SPOOFED] = "spoofed",        [NAT_DROP_INVALID] = "invalid",
        [NAT_DROP_INBOUND] = "inbound",        [NAT_DROP_BYPASS] = "bypass",
        [NAT_DROP_FORGED_ICMP] = "forged-icmp"};
    return names[d];
}

struct counter {
    const char *name;
    const struct nlattr *data;
    uint64_t packets;
};

static int on_object(const struct nlattr *a, void *ctx)
{
    struct counter *c = ctx;
    if (mnl_attr_get_type(a) == NFTA_OBJ_NAME && mnl_attr_validate(a, MNL_TYPE_NUL_STRING) == 0) {
        c->name = mnl_attr_get_str(a);
    } else if (mnl_attr_get_type(a) == NFTA_OBJ_DATA) {
        c->data = a;
    }
    return MNL_CB_OK;
}

static int on_data(const struct nlattr *a, void *ctx)
{
    struct counter *c = ctx;
    if (mnl_attr_get_type(a) == NFTA_COUNTER_PACKETS &&
        mnl_attr_get_payload_len(a) == sizeof c->packets) {
        c->packets = be64toh(mnl_attr_get_u64(a));
    }
    return MNL_CB_OK;
}

static int on_message(const struct nlmsghdr *h, void *ctx)
{
    struct nat_drops *d = ctx;
    struct counter c = {0};
    mnl_attr_parse(h, sizeof(struct nfgenmsg), on_object, &c);
    if (!c.name || !c.data) {
        return MNL_CB_OK;
    }
    mnl_attr_parse_nested(c.data, on_data, &c);
    for (size_t i = 0; i < NAT_N_DROPS; i++) {
        if (streq(c.name, nat_drop_name((enum nat_drop) i))) {
            /* A smaller value than before: the table was made anew since. */
            d->total[i] += c.packets >= d->seen[i] ? c.packets - d->seen[i] : c.packets;
            d->seen[i] = c.packets;
        }
    }
    return MNL_CB_OK;
}

static int dump(struct mnl_socket *s, struct nat_drops *d)
{
    char buf[BUFFER];
    struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
    h->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETOBJ;
    h->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    h->nlmsg_seq = 1;
    struct nfgenmsg *g = mnl_nlmsg_put_extra_header(h, sizeof *g);
    g->nfgen_family = NFPROTO_IPV4;
    g->version = NFNETLINK_V0;
    mnl_attr_put_strz(h, NFTA_OBJ_TABLE, "tenet");
    mnl_attr_put_u32(h, NFTA_OBJ_TYPE, htonl(NFT_OBJECT_COUNTER));
    if (mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0 ||
        mnl_socket_sendto(s, h, h->nlmsg_len) < 0) {
        return -errno;
    }
    for (;;) {
        ssize_t n = mnl_socket_recvfrom(s, buf, sizeof buf);
        int r =
            n < 0 ? -1 : mnl_cb_run(buf, (size_t) n, 1, mnl_socket_get_portid(s), on_message, d);
        if (r <= 0) {
            return r < 0 && errno != ENOENT ? -errno : 0;
        }
    }
}

int nat_drops_update(struct nat_drops *d)
{
    struct mnl_socket *s = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
    if (!s) {
        return -errno;
    }
    struct nat_drops now = *d;
    int r = dump(s, &now);
    mnl_socket_close(s);
    if (r == 0) {
        *d = now;
    }
    return r;
}
