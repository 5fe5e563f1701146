/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kernel/path.h"

#include "base/mem.h"
#include "net/kernel/rtnl_priv.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <linux/xfrm.h>
#include <string.h>

/* Questions per system call; their answers must fit into the socket's buffer. */
#define BATCH 12
#define QUESTION_SIZE 64

static size_t put_question(struct rtnl *r, char *buf, uint32_t src, uint32_t dst)
{
    struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
    h->nlmsg_type = RTM_GETROUTE;
    h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
    h->nlmsg_seq = ++r->seq;
    struct rtmsg *rtm = mnl_nlmsg_put_extra_header(h, sizeof *rtm);
    rtm->rtm_family = AF_INET;
    rtm->rtm_dst_len = rtm->rtm_src_len = 32;
    rtm->rtm_flags = RTM_F_FIB_MATCH; /* The route itself, with all of its next hops. */
    mnl_attr_put_u32(h, RTA_DST, htonl(dst));
    mnl_attr_put_u32(h, RTA_SRC, htonl(src));
    return h->nlmsg_len;
}

static uint32_t get_u32(const struct nlattr *a)
{
    return a && mnl_attr_get_payload_len(a) == sizeof(uint32_t) ? mnl_attr_get_u32(a) : 0;
}

static void read_answer(const struct nlmsghdr *h, uint32_t dst, struct path *ret)
{
    const struct nlattr *tb[RTA_MAX + 1], *metrics[RTAX_MAX + 1];
    if (h->nlmsg_type != RTM_NEWROUTE ||
        rtnl_attrs_parse(h, sizeof(struct rtmsg), tb, RTA_MAX) < 0 ||
        rtnl_attrs_nested(tb[RTA_METRICS], metrics, RTAX_MAX) < 0) {
        return;
    }
    const struct rtmsg *rtm = mnl_nlmsg_get_payload(h);
    int ifindex = (int) get_u32(tb[RTA_OIF]);
    uint32_t gateway = ntohl(get_u32(tb[RTA_GATEWAY]));
    if (rtm->rtm_family == AF_INET && rtm->rtm_type == RTN_UNICAST &&
        !(rtm->rtm_flags & (RTNH_F_DEAD | RTNH_F_LINKDOWN)) && !tb[RTA_MULTIPATH] && !tb[RTA_VIA] &&
        !tb[RTA_ENCAP] && ifindex > 0) {
        *ret = (struct path){ifindex, gateway ? gateway : dst, get_u32(metrics[RTAX_MTU])};
    }
}

/* Each question has an answer, or an acknowledgement with the error, or both. */
static int read_answers(struct rtnl *r, uint32_t first, size_t n, const uint32_t *dst,
                        struct path *ret)
{
    for (size_t done = 0; done < n;) {
        ssize_t size = mnl_socket_recvfrom(r->nl, r->reply, sizeof r->reply);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size < 0) {
            return -errno;
        }
        int left = (int) size;
        for (const struct nlmsghdr *h = (const void *) r->reply; mnl_nlmsg_ok(h, left);
             h = mnl_nlmsg_next(h, &left)) {
            uint32_t i = h->nlmsg_seq - first;
            if (h->nlmsg_pid != r->port || i >= n) {
                continue;
            }
            if (h->nlmsg_type == NLMSG_ERROR) {
                done++;
            } else {
                read_answer(h, dst[i], &ret[i]);
            }
        }
    }
    return 0;
}

int path_find(struct rtnl *r, uint32_t src, const uint32_t *dst, size_t n, struct path *ret,
              struct err *e)
{
    memset(ret, 0, n * sizeof *ret);
    for (size_t at = 0; at < n; at += BATCH) {
        _Alignas(struct nlmsghdr) char buf[BATCH * QUESTION_SIZE];
        size_t size = 0, count = MIN(n - at, (size_t) BATCH);
        uint32_t first = r->seq + 1;
        for (size_t i = 0; i < count; i++) {
            size += put_question(r, buf + size, src, dst[at + i]);
        }
        int code = mnl_socket_sendto(r->nl, buf, size) < 0 ? -errno : 0;
        code = code < 0 ? code : read_answers(r, first, count, dst + at, ret + at);
        if (code < 0) {
            return err_sys(e, code, "find the routes to other nodes");
        }
    }
    return 0;
}

/* ---- IPsec ---- */

/* The answer to a question without attributes; its size, or a negative errno. */
static int ask_xfrm(struct mnl_socket *s, uint16_t type, size_t header, char *buf, size_t size)
{
    struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
    h->nlmsg_type = type;
    h->nlmsg_flags = NLM_F_REQUEST;
    memset(mnl_nlmsg_put_extra_header(h, header), 0, header);
    if (mnl_socket_sendto(s, h, h->nlmsg_len) < 0) {
        return -errno;
    }
    ssize_t n = mnl_socket_recvfrom(s, buf, size);
    if (n < 0 || !mnl_nlmsg_ok(h, (int) n)) {
        return n < 0 ? -errno : -EBADMSG;
    }
    return h->nlmsg_type == NLMSG_ERROR ? -EOPNOTSUPP : (int) n;
}

static bool has_policies(const struct nlmsghdr *h)
{
    const struct nlattr *tb[XFRMA_SPD_INFO + 1];
    const struct xfrmu_spdinfo *info;
    if (rtnl_attrs_parse(h, sizeof(uint32_t), tb, XFRMA_SPD_INFO) < 0 || !tb[XFRMA_SPD_INFO] ||
        mnl_attr_get_payload_len(tb[XFRMA_SPD_INFO]) < sizeof *info) {
        return true;
    }
    info = mnl_attr_get_payload(tb[XFRMA_SPD_INFO]);
    return info->incnt || info->outcnt || info->fwdcnt;
}

static bool blocks_by_default(const struct nlmsghdr *h)
{
    const struct xfrm_userpolicy_default *d = mnl_nlmsg_get_payload(h);
    return mnl_nlmsg_get_payload_len(h) < sizeof *d || d->in == XFRM_USERPOLICY_BLOCK ||
           d->out == XFRM_USERPOLICY_BLOCK;
}

bool path_has_ipsec(void)
{
    _Alignas(struct nlmsghdr) char buf[1024];
    const struct nlmsghdr *h = (const void *) buf;
    struct mnl_socket *s = mnl_socket_open2(NETLINK_XFRM, SOCK_CLOEXEC);
    if (!s) {
        return errno != EPROTONOSUPPORT; /* This kernel has no IPsec. */
    }
    bool has = mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) < 0 ||
               ask_xfrm(s, XFRM_MSG_GETSPDINFO, sizeof(uint32_t), buf, sizeof buf) < 0 ||
               has_policies(h);
    /* Older kernels (before 5.14) always pass such packets by default. */
    has = has || (ask_xfrm(s, XFRM_MSG_GETDEFAULT, sizeof(struct xfrm_userpolicy_default), buf,
                           sizeof buf) > 0 &&
                  blocks_by_default(h));
    mnl_socket_close(s);
    return has;
}
