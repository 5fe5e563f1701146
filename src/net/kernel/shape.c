/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kernel/shape.h"

#include "base/str.h"
#include "net/kernel/rtnl_priv.h"

#include <inttypes.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#define KIND "tbf"
#define HANDLE TC_H_MAKE(1u << 16, 0)
#define BURST_MS 100
#define BURST_MIN 32768u     /* Bytes: some packets, even of a slow link. */
#define BURST_MAX (1u << 30) /* Bytes */
#define QUEUE_MS 50          /* Packets that would wait longer are dropped. */
#define QUEUE_MIN 65536u     /* The queue has at least so many bytes, whatever QUEUE_MS says. */

static struct nlmsghdr *request(struct rtnl *r, uint16_t type, uint16_t flags, int ifindex)
{
    struct nlmsghdr *h = rtnl_request(r, type, flags);
    struct tcmsg *t = mnl_nlmsg_put_extra_header(h, sizeof *t);
    t->tcm_family = AF_UNSPEC;
    t->tcm_ifindex = ifindex;
    t->tcm_parent = TC_H_ROOT;
    return h;
}

static uint32_t clamp(uint64_t v, uint32_t min, uint32_t max)
{
    return v < min ? min : v > max ? max : (uint32_t) v;
}

int shape_set(struct rtnl *r, int ifindex, const struct shape *s, struct err *e)
{
    uint64_t bytes = s->rate / 8;
    uint32_t burst = clamp(s->burst ? s->burst / 8 : bytes / 1000 * BURST_MS, BURST_MIN, BURST_MAX);
    uint32_t queue = burst + clamp(bytes / 1000 * QUEUE_MS, QUEUE_MIN, BURST_MAX);
    struct tc_tbf_qopt q = {
        .rate = {.linklayer = TC_LINKLAYER_ETHERNET, .rate = clamp(bytes, 1, UINT32_MAX)},
        .limit = queue,
    };
    struct nlmsghdr *h = request(r, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, ifindex);
    ((struct tcmsg *) mnl_nlmsg_get_payload(h))->tcm_handle = HANDLE;
    mnl_attr_put_strz(h, TCA_KIND, KIND);
    struct nlattr *options = mnl_attr_nest_start(h, TCA_OPTIONS);
    mnl_attr_put(h, TCA_TBF_PARMS, sizeof q, &q);
    mnl_attr_put_u32(h, TCA_TBF_BURST, burst);
    if (bytes > UINT32_MAX) {
        mnl_attr_put_u64(h, TCA_TBF_RATE64, bytes);
    }
    mnl_attr_nest_end(h, options);
    int k = rtnl_change(r, h);
    return k < 0 ? rtnl_fail(r, k, e, "limit link %d to %" PRIu64 " bit/s", ifindex, s->rate) : 0;
}

struct found {
    int ifindex;
    bool is_tbf;
    uint64_t bytes; /* Per second. */
};

static int look(void *ctx, const struct nlmsghdr *h)
{
    struct found *f = ctx;
    const struct tcmsg *t = mnl_nlmsg_get_payload(h);
    const struct nlattr *tb[TCA_OPTIONS + 1], *options[TCA_TBF_PBURST + 1];
    if (rtnl_attrs_parse(h, sizeof *t, tb, TCA_OPTIONS) < 0) {
        return -EBADMSG;
    }
    if (t->tcm_ifindex != f->ifindex || t->tcm_parent != TC_H_ROOT || !tb[TCA_KIND] ||
        mnl_attr_validate(tb[TCA_KIND], MNL_TYPE_NUL_STRING) < 0 ||
        !streq(mnl_attr_get_str(tb[TCA_KIND]), KIND)) {
        return 0;
    }
    if (rtnl_attrs_nested(tb[TCA_OPTIONS], options, TCA_TBF_PBURST) < 0) {
        return -EBADMSG;
    }
    const struct nlattr *parms = options[TCA_TBF_PARMS], *rate = options[TCA_TBF_RATE64];
    struct tc_tbf_qopt q;
    f->is_tbf = true;
    if (rate && mnl_attr_get_payload_len(rate) == sizeof f->bytes) {
        f->bytes = mnl_attr_get_u64(rate);
    } else if (parms && mnl_attr_get_payload_len(parms) == sizeof q) {
        memcpy(&q, mnl_attr_get_payload(parms), sizeof q);
        f->bytes = q.rate.rate;
    }
    return 0;
}

/* Not all kernels can return a single queue; all can list those of a link. */
static int find(struct rtnl *r, int ifindex, struct found *ret, struct err *e)
{
    *ret = (struct found){.ifindex = ifindex};
    int k = rtnl_get(r, request(r, RTM_GETQDISC, NLM_F_DUMP, ifindex), look, ret);
    return k < 0 ? rtnl_fail(r, k, e, "ask for the queue of link %d", ifindex) : 0;
}

int shape_clear(struct rtnl *r, int ifindex, struct err *e)
{
    struct found f;
    int k = find(r, ifindex, &f, e);
    if (k < 0 || !f.is_tbf) {
        return k;
    }
    struct nlmsghdr *h = request(r, RTM_DELQDISC, 0, ifindex);
    k = rtnl_change(r, h);
    return k < 0 && k != -ENOENT && k != -EINVAL && k != -ENODEV
               ? rtnl_fail(r, k, e, "take the limit off link %d", ifindex)
               : 0;
}

int shape_check(struct rtnl *r, int ifindex, const struct shape *s, struct err *e)
{
    struct found f;
    int k = find(r, ifindex, &f, e);
    if (k < 0) {
        return k;
    }
    return f.is_tbf && f.bytes == (s->rate / 8 ? s->rate / 8 : 1)
               ? 0
               : err_set(e, -ENOENT, "link %d is not limited to %" PRIu64 " bit/s", ifindex,
                         s->rate);
}
