/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kernel/redirect.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/kernel/rtnl_priv.h"

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HANDLE 1
#define NAME_SIZE 24
#define OWN_NAME "tenet-own"

/* ---- programs ---- */

static struct bpf_insn load(uint8_t size, unsigned to, unsigned from, int16_t offset)
{
    return (struct bpf_insn){
        .code = BPF_LDX | BPF_MEM | size, .dst_reg = to & 15, .src_reg = from & 15, .off = offset};
}

static struct bpf_insn set(unsigned to, int32_t value)
{
    return (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = to & 15, .imm = value};
}

/* Skips the next 'n' instructions unless the register has the value. */
static struct bpf_insn skip_unless(unsigned reg, int32_t value, size_t n)
{
    return (struct bpf_insn){
        .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = reg & 15, .off = (int16_t) n, .imm = value};
}

/* Drops the frame in all doubtful cases. */
static size_t make_program(const struct redirect *d, struct bpf_insn out[24])
{
    size_t n = 0;
    if (d->destination) {
        enum { TAIL = 5, COMPARE = 6 };
        out[n++] = load(BPF_W, BPF_REG_2, BPF_REG_1, offsetof(struct __sk_buff, data));
        out[n++] = load(BPF_W, BPF_REG_3, BPF_REG_1, offsetof(struct __sk_buff, data_end));
        out[n++] = (struct bpf_insn){
            .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_4, .src_reg = BPF_REG_2};
        out[n++] = (struct bpf_insn){
            .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_4, .imm = ETH_HLEN};
        out[n++] = (struct bpf_insn){.code = BPF_JMP | BPF_JGT | BPF_X,
                                     .dst_reg = BPF_REG_4,
                                     .src_reg = BPF_REG_3,
                                     .off = COMPARE + TAIL - 1};
        for (int i = 0; i < 3; i++) { /* In 16-bit halves, as some machines need aligned access. */
            uint16_t half;
            memcpy(&half, &d->destination->b[2 * i], 2);
            out[n++] = load(BPF_H, BPF_REG_4, BPF_REG_2, (int16_t) (2 * i));
            out[n++] = skip_unless(BPF_REG_4, half, (size_t) (COMPARE - 2 * (i + 1) + TAIL - 1));
        }
    }
    out[n++] = set(BPF_REG_1, d->to);
    out[n++] = set(BPF_REG_2, d->hook == REDIRECT_INGRESS && !d->send ? BPF_F_INGRESS : 0);
    out[n++] = (struct bpf_insn){.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect};
    out[n++] = (struct bpf_insn){.code = BPF_JMP | BPF_EXIT};
    if (d->destination) {
        out[n++] = set(BPF_REG_0, TC_ACT_SHOT);
        out[n++] = (struct bpf_insn){.code = BPF_JMP | BPF_EXIT};
    }
    return n;
}

/* A descriptor or a negative errno. */
static int load_into_kernel(const struct bpf_insn *code, size_t n)
{
    union bpf_attr a = {.prog_type = BPF_PROG_TYPE_SCHED_CLS,
                        .insns = (uintptr_t) code,
                        .insn_cnt = (uint32_t) n,
                        .license = (uintptr_t) "Apache-2.0",
                        .prog_name = "tenet_redirect"};
    int fd = (int) syscall(SYS_bpf, BPF_PROG_LOAD, &a, sizeof a);
    return fd < 0 ? -errno : fd;
}

static int load_program(const struct bpf_insn *code, size_t n, int *ret_fd, struct err *e)
{
    int fd = load_into_kernel(code, n);
    /* Before Linux 5.11 programs count as locked memory, of which a user may have little. */
    if (fd == -EPERM &&
        setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}) == 0) {
        fd = load_into_kernel(code, n);
    }
    if (fd < 0) {
        return err_sys(e, fd, "load an eBPF program into the kernel");
    }
    *ret_fd = fd;
    return 0;
}

/* ---- hooks ---- */

static struct nlmsghdr *tc_request(struct rtnl *r, uint16_t type, uint16_t flags, int ifindex,
                                   uint32_t parent, struct tcmsg **ret)
{
    struct nlmsghdr *h = rtnl_request(r, type, flags);
    struct tcmsg *t = mnl_nlmsg_put_extra_header(h, sizeof *t);
    t->tcm_family = AF_UNSPEC;
    t->tcm_ifindex = ifindex;
    t->tcm_parent = parent;
    *ret = t;
    return h;
}

static uint32_t parent_of(enum redirect_hook hook)
{
    return TC_H_MAKE(TC_H_CLSACT, hook == REDIRECT_INGRESS ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS);
}

static struct nlmsghdr *qdisc_new(struct rtnl *r, int ifindex, const char *kind)
{
    struct tcmsg *t;
    struct nlmsghdr *h =
        tc_request(r, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, ifindex, TC_H_CLSACT, &t);
    t->tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
    mnl_attr_put_strz(h, TCA_KIND, kind);
    return h;
}

static void name_filter(struct nlmsghdr *h, struct tcmsg *t, enum redirect_place place)
{
    t->tcm_info = TC_H_MAKE((uint32_t) place << 16, htons(ETH_P_ALL));
    t->tcm_handle = HANDLE;
    mnl_attr_put_strz(h, TCA_KIND, "bpf");
}

/* The qdisc may exist already. */
static int attach(struct rtnl *r, int ifindex, const char *qdisc, enum redirect_hook hook,
                  enum redirect_place place, const char *name, int fd, struct err *e)
{
    unsigned which;
    struct tcmsg *t;
    rtnl_enqueue(r, qdisc_new(r, ifindex, qdisc));
    struct nlmsghdr *h =
        tc_request(r, RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_REPLACE, ifindex, parent_of(hook), &t);
    name_filter(h, t, place);
    struct nlattr *options = mnl_attr_nest_start(h, TCA_OPTIONS);
    mnl_attr_put_u32(h, TCA_BPF_FD, (uint32_t) fd);
    mnl_attr_put_strz(h, TCA_BPF_NAME, name);
    mnl_attr_put_u32(h, TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
    mnl_attr_nest_end(h, options);
    rtnl_enqueue(r, h);
    int k = rtnl_flush(r, 2, -EEXIST, &which, NULL, NULL);
    return k < 0 ? rtnl_fail(r, k, e, "add %s to link %d", which ? "a program" : qdisc, ifindex)
                 : 0;
}

int redirect_attach(struct rtnl *r, int ifindex, enum redirect_hook hook, enum redirect_place place,
                    const char *name, int fd, struct err *e)
{
    return attach(r, ifindex, "clsact", hook, place, name, fd, e);
}

int redirect_attach_received(struct rtnl *r, int ifindex, const char *name, int fd, struct err *e)
{
    return attach(r, ifindex, "ingress", REDIRECT_INGRESS, REDIRECT_ALONE, name, fd, e);
}

void redirect_detach(struct rtnl *r, int ifindex, enum redirect_hook hook,
                     enum redirect_place place)
{
    struct tcmsg *t;
    struct nlmsghdr *h = tc_request(r, RTM_DELTFILTER, 0, ifindex, parent_of(hook), &t);
    name_filter(h, t, place);
    rtnl_change(r, h);
}

static int set_program(struct rtnl *r, int ifindex, enum redirect_hook hook, const char *name,
                       const struct bpf_insn *code, size_t n, struct err *e)
{
    CLEANUP(fd_close) int fd = -1;
    int k = load_program(code, n, &fd, e);
    return k < 0 ? k : redirect_attach(r, ifindex, hook, REDIRECT_ALONE, name, fd, e);
}

static void name_of(const struct redirect *d, char ret[NAME_SIZE])
{
    snprintf(ret, NAME_SIZE, "tenet-to-%d", d->to);
}

int redirect_set(struct rtnl *r, const struct redirect *d, struct err *e)
{
    struct bpf_insn code[24];
    char name[NAME_SIZE];
    size_t n = make_program(d, code);
    name_of(d, name);
    return set_program(r, d->ifindex, d->hook, name, code, n, e);
}

int redirect_drop_received(struct rtnl *r, int ifindex, struct err *e)
{
    const struct bpf_insn code[] = {set(BPF_REG_0, TC_ACT_SHOT), {.code = BPF_JMP | BPF_EXIT}};
    return set_program(r, ifindex, REDIRECT_INGRESS, "tenet-drop", code, ARRAY_SIZE(code), e);
}

int redirect_accept_own(struct rtnl *r, int ifindex, struct err *e)
{
    const struct bpf_insn code[] = {
        load(BPF_W, BPF_REG_2, BPF_REG_1, offsetof(struct __sk_buff, pkt_type)),
        set(BPF_REG_0, TC_ACT_SHOT),
        skip_unless(BPF_REG_2, PACKET_HOST, 1),
        set(BPF_REG_0, TC_ACT_OK),
        {.code = BPF_JMP | BPF_EXIT},
    };
    return set_program(r, ifindex, REDIRECT_INGRESS, OWN_NAME, code, ARRAY_SIZE(code), e);
}

int redirect_clear(struct rtnl *r, int ifindex, struct err *e)
{
    struct tcmsg *t;
    struct nlmsghdr *h = tc_request(r, RTM_DELQDISC, 0, ifindex, TC_H_CLSACT, &t);
    int code = rtnl_change(r, h);
    return code < 0 && code != -ENOENT && code != -EINVAL
               ? rtnl_fail(r, code, e, "take clsact off link %d", ifindex)
               : 0;
}

/* ---- looking ---- */

struct search {
    const char *name;
    bool found;
};

static int search_one(void *ctx, const struct nlmsghdr *h)
{
    struct search *s = ctx;
    const struct nlattr *tb[TCA_OPTIONS + 1], *options[TCA_BPF_NAME + 1];
    if (rtnl_attrs_parse(h, sizeof(struct tcmsg), tb, TCA_OPTIONS) < 0 ||
        rtnl_attrs_nested(tb[TCA_OPTIONS], options, TCA_BPF_NAME) < 0) {
        return -EBADMSG;
    }
    const struct nlattr *name = options[TCA_BPF_NAME];
    s->found = s->found || (name && mnl_attr_validate(name, MNL_TYPE_NUL_STRING) == 0 &&
                            streq(mnl_attr_get_str(name), s->name));
    return 0;
}

static bool has_program(struct rtnl *r, int ifindex, enum redirect_hook hook,
                        enum redirect_place place, const char *name)
{
    struct search s = {.name = name};
    struct tcmsg *t;
    struct nlmsghdr *h = tc_request(r, RTM_GETTFILTER, 0, ifindex, parent_of(hook), &t);
    name_filter(h, t, place);
    return rtnl_get(r, h, search_one, &s) == 0 && s.found;
}

int redirect_check(struct rtnl *r, const struct redirect *d, struct err *e)
{
    char name[NAME_SIZE];
    name_of(d, name);
    return has_program(r, d->ifindex, d->hook, REDIRECT_ALONE, name)
               ? 0
               : err_set(e, -ENOENT, "link %d does not hand its frames to link %d", d->ifindex,
                         d->to);
}

int redirect_check_attached(struct rtnl *r, int ifindex, enum redirect_hook hook, const char *name,
                            struct err *e)
{
    return has_program(r, ifindex, hook, REDIRECT_ALONE, name)
               ? 0
               : err_set(e, -ENOENT, "link %d has not the program %s", ifindex, name);
}

int redirect_check_own(struct rtnl *r, int ifindex, struct err *e)
{
    return redirect_check_attached(r, ifindex, REDIRECT_INGRESS, OWN_NAME, e);
}

struct hooked {
    int *links;
    size_t n, cap;
};

static int note_clsact(void *ctx, const struct nlmsghdr *h)
{
    struct hooked *all = ctx;
    const struct tcmsg *t = mnl_nlmsg_get_payload(h);
    const struct nlattr *tb[TCA_KIND + 1];
    if (rtnl_attrs_parse(h, sizeof *t, tb, TCA_KIND) < 0) {
        return -EBADMSG;
    }
    if (tb[TCA_KIND] && mnl_attr_validate(tb[TCA_KIND], MNL_TYPE_NUL_STRING) == 0 &&
        streq(mnl_attr_get_str(tb[TCA_KIND]), "clsact")) {
        all->links = grow(all->links, &all->cap, all->n + 1, sizeof *all->links);
        all->links[all->n++] = t->tcm_ifindex;
    }
    return 0;
}

int redirect_sweep(struct rtnl *r, enum redirect_place place, const char *name,
                   bool (*keep)(void *ctx, const char *ifname), void *ctx, struct err *e)
{
    struct tcmsg *t;
    struct hooked all = {0};
    int k = rtnl_get(r, tc_request(r, RTM_GETQDISC, NLM_F_DUMP, 0, 0, &t), note_clsact, &all);
    CLEANUP_FREE int *links = all.links;
    for (size_t i = 0; k == 0 && i < all.n; i++) {
        struct rtnl_link l;
        if (has_program(r, links[i], REDIRECT_INGRESS, place, name) &&
            rtnl_link_get_index(r, links[i], &l, NULL) == 0 && !keep(ctx, l.name)) {
            redirect_detach(r, links[i], REDIRECT_INGRESS, place);
        }
    }
    return k < 0 ? rtnl_fail(r, k, e, "look for programs at links") : 0;
}
