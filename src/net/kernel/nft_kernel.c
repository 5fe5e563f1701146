/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kernel/nft.h"

#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdio.h>
#include <sys/socket.h>

#define REPLY_SIZE 65536
#define ATTRS 32

struct nft {
    struct mnl_socket *nl;
    unsigned port;
    uint32_t seq;
    size_t send_buffer; /* The size as requested. */
    _Alignas(struct nlmsghdr) char reply[REPLY_SIZE];
};

int nft_open(struct nft **ret, struct err *e)
{
    struct mnl_socket *nl = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
    if (!nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0) {
        int r = err_sys(e, -errno, "open a netlink socket for nftables");
        if (nl) {
            mnl_socket_close(nl);
        }
        return r;
    }
    struct nft *n = NEW(struct nft);
    int one = 1;
    /* Errors without a copy of the message. */
    mnl_socket_setsockopt(nl, NETLINK_CAP_ACK, &one, sizeof one);
    n->nl = nl;
    n->port = mnl_socket_get_portid(nl);
    *ret = n;
    return 0;
}

struct nft *nft_close(struct nft *n)
{
    if (n) {
        mnl_socket_close(n->nl);
        free(n);
    }
    return NULL;
}

uint32_t nft_port(const struct nft *n)
{
    return n->port;
}

/* ---- attributes ---- */

/* Attributes by their type, ATTRS at most; higher types are skipped. */
static void split(const struct nlattr **tb, const void *from, size_t size)
{
    const char *p = from;
    memset(tb, 0, ATTRS * sizeof *tb);
    while (size >= sizeof(struct nlattr)) {
        const struct nlattr *a = (const void *) p;
        if (a->nla_len < sizeof *a || a->nla_len > size) {
            return;
        }
        if (mnl_attr_get_type(a) < ATTRS) {
            tb[mnl_attr_get_type(a)] = a;
        }
        size_t step = MIN((size_t) MNL_ALIGN(a->nla_len), size);
        p += step;
        size -= step;
    }
}

static void split_message(const struct nlattr **tb, const struct nlmsghdr *h)
{
    size_t size = mnl_nlmsg_get_payload_len(h), skip = MNL_ALIGN(sizeof(struct nfgenmsg));
    split(tb, mnl_nlmsg_get_payload_offset(h, skip), size > skip ? size - skip : 0);
}

static void split_nest(const struct nlattr **tb, const struct nlattr *nest)
{
    split(tb, nest ? mnl_attr_get_payload(nest) : NULL, nest ? mnl_attr_get_payload_len(nest) : 0);
}

static const char *get_text(const struct nlattr *a)
{
    return a && mnl_attr_validate(a, MNL_TYPE_NUL_STRING) == 0 ? mnl_attr_get_str(a) : NULL;
}

static uint32_t get_be32(const struct nlattr *a, uint32_t absent)
{
    return a && mnl_attr_get_payload_len(a) >= 4 ? ntohl(mnl_attr_get_u32(a)) : absent;
}

/* ---- batches ---- */

/* Reads the kernel's replies to a batch: the first error. */
static int read_errors(struct nft *n, const char **ret_what)
{
    int code = 0;
    for (;;) {
        ssize_t size = recv(mnl_socket_get_fd(n->nl), n->reply, sizeof n->reply, MSG_DONTWAIT);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size < 0) {
            /* More errors than fit: there were errors. */
            return code < 0 || errno == EAGAIN ? code : -errno;
        }
        int left = (int) size;
        for (const struct nlmsghdr *h = (const void *) n->reply; mnl_nlmsg_ok(h, left);
             h = mnl_nlmsg_next(h, &left)) {
            if (h->nlmsg_type != NLMSG_ERROR ||
                mnl_nlmsg_get_payload_len(h) < sizeof(struct nlmsgerr)) {
                continue;
            }
            static const char *const what[] = {
                [NFT_MSG_NEWTABLE] = "the table",      [NFT_MSG_DELTABLE] = "deleting the table",
                [NFT_MSG_NEWCHAIN] = "a chain",        [NFT_MSG_DELCHAIN] = "deleting a chain",
                [NFT_MSG_NEWRULE] = "a rule",          [NFT_MSG_NEWSET] = "a set",
                [NFT_MSG_NEWSETELEM] = "new elements", [NFT_MSG_DELSETELEM] = "deleting elements"};
            const struct nlmsgerr *ack = mnl_nlmsg_get_payload(h);
            if (ack->error && code == 0) {
                code = ack->error;
                size_t type = ack->msg.nlmsg_type & 0xff;
                *ret_what = ack->msg.nlmsg_type >> 8 == NFNL_SUBSYS_NFTABLES &&
                                    type < ARRAY_SIZE(what) && what[type]
                                ? what[type]
                                : "the batch";
            }
        }
    }
}

int nft_send(struct nft *n, const struct nft_batch *b, struct err *e)
{
    /* A batch is one datagram, and must fit into the buffer. */
    if (b->size + 4096 > n->send_buffer) {
        int size = (int) MIN(b->size + 65536, (size_t) INT32_MAX / 2);
        if (setsockopt(mnl_socket_get_fd(n->nl), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) <
            0) {
            return err_sys(e, -errno, "nftables table %s: socket buffer for %zu bytes", b->table,
                           b->size);
        }
        n->send_buffer = (size_t) size;
    }
    const char *what = "";
    read_errors(n, &what); /* Replies to an earlier batch that was given up. */
    if (mnl_socket_sendto(n->nl, b->data, b->size) < 0) {
        return err_sys(e, -errno, "nftables table %s: send a batch", b->table);
    }
    int r = read_errors(n, &what); /* The kernel has processed it when sendto returns. */
    return r < 0 ? err_sys(e, r, "nftables table %s: %s", b->table, what) : 0;
}

/* ---- dumps ---- */

typedef void message_fn(void *ctx, const struct nlmsghdr *h);

static struct nlmsghdr *request(char *buf, enum nf_tables_msg_types type, uint16_t flags)
{
    struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
    h->nlmsg_type = (uint16_t) (NFNL_SUBSYS_NFTABLES << 8 | type);
    h->nlmsg_flags = NLM_F_REQUEST | flags;
    struct nfgenmsg *g = mnl_nlmsg_put_extra_header(h, sizeof *g);
    g->nfgen_family = NFPROTO_IPV4;
    g->version = NFNETLINK_V0;
    return h;
}

/* Sends 'req' and passes the answer's messages to 'fn', up to the end. */
static int exchange(struct nft *n, struct nlmsghdr *req, message_fn *fn, void *ctx)
{
    bool interrupted = false, dump = req->nlmsg_flags & NLM_F_DUMP;
    req->nlmsg_seq = ++n->seq;
    if (mnl_socket_sendto(n->nl, req, req->nlmsg_len) < 0) {
        return -errno;
    }
    for (;;) {
        ssize_t size = mnl_socket_recvfrom(n->nl, n->reply, sizeof n->reply);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size < 0) {
            return -errno;
        }
        int left = (int) size;
        for (const struct nlmsghdr *h = (const void *) n->reply; mnl_nlmsg_ok(h, left);
             h = mnl_nlmsg_next(h, &left)) {
            if (h->nlmsg_seq != req->nlmsg_seq) {
                continue;
            }
            interrupted = interrupted || (h->nlmsg_flags & NLM_F_DUMP_INTR);
            if (h->nlmsg_type == NLMSG_ERROR) {
                const struct nlmsgerr *ack = mnl_nlmsg_get_payload(h);
                return mnl_nlmsg_get_payload_len(h) < sizeof *ack ? -EBADMSG : ack->error;
            }
            if (h->nlmsg_type == NLMSG_DONE) {
                return interrupted ? -EINTR : 0;
            }
            if (h->nlmsg_type >= NLMSG_MIN_TYPE) {
                fn(ctx, h);
                if (!dump) {
                    return 0;
                }
            }
        }
    }
}

static void read_generation(void *ctx, const struct nlmsghdr *h)
{
    const struct nlattr *tb[ATTRS];
    split_message(tb, h);
    *(uint32_t *) ctx = get_be32(tb[NFTA_GEN_ID], 0);
}

int nft_generation(struct nft *n, uint32_t *ret, struct err *e)
{
    char buf[256];
    uint32_t generation = 0;
    int r = exchange(n, request(buf, NFT_MSG_GETGEN, 0), read_generation, &generation);
    if (r < 0) {
        return err_sys(e, r, "ask for the generation of nftables");
    }
    *ret = generation;
    return 0;
}

struct reader {
    const char *table;
    union {
        nft_element_fn *element;
        nft_rule_fn *rule;
        nft_chain_fn *chain;
    } fn;
    void *ctx;
};

static void read_element(const struct reader *rd, const struct nlattr *el)
{
    const struct nlattr *tb[ATTRS], *key[ATTRS], *end[ATTRS], *data[ATTRS], *verdict[ATTRS];
    split_nest(tb, el);
    split_nest(key, tb[NFTA_SET_ELEM_KEY]);
    split_nest(end, tb[NFTA_SET_ELEM_KEY_END]);
    split_nest(data, tb[NFTA_SET_ELEM_DATA]);
    split_nest(verdict, data[NFTA_DATA_VERDICT]);
    struct nft_read_element out = {.verdict = data[NFTA_DATA_VERDICT]
                                                  ? (int) get_be32(verdict[NFTA_VERDICT_CODE], 0)
                                                  : NFT_NO_VERDICT,
                                   .chain = get_text(verdict[NFTA_VERDICT_CHAIN])};
    const struct {
        const struct nlattr *from;
        const uint8_t **to;
        size_t *size;
    } parts[] = {{key[NFTA_DATA_VALUE], &out.key, &out.key_size},
                 {end[NFTA_DATA_VALUE], &out.key_end, &out.key_end_size},
                 {data[NFTA_DATA_VALUE], &out.data, &out.data_size}};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (parts[i].from) {
            *parts[i].to = mnl_attr_get_payload(parts[i].from);
            *parts[i].size = mnl_attr_get_payload_len(parts[i].from);
        }
    }
    rd->fn.element(rd->ctx, &out);
}

static void read_elements(void *ctx, const struct nlmsghdr *h)
{
    const struct nlattr *tb[ATTRS];
    split_message(tb, h);
    const struct nlattr *list = tb[NFTA_SET_ELEM_LIST_ELEMENTS];
    size_t size = list ? mnl_attr_get_payload_len(list) : 0;
    const char *p = list ? mnl_attr_get_payload(list) : NULL;
    while (size >= sizeof(struct nlattr)) {
        const struct nlattr *el = (const void *) p;
        size_t step = MNL_ALIGN(el->nla_len);
        if (el->nla_len < sizeof *el || step > size) {
            return;
        }
        read_element(ctx, el);
        p += step;
        size -= step;
    }
}

/* Objects of one table only; older kernels dump all. */
static bool of_table(const struct reader *rd, const struct nlattr *name)
{
    const char *s = get_text(name);
    return s && streq(s, rd->table);
}

static void read_rule(void *ctx, const struct nlmsghdr *h)
{
    const struct reader *rd = ctx;
    const struct nlattr *tb[ATTRS];
    split_message(tb, h);
    const char *chain = get_text(tb[NFTA_RULE_CHAIN]);
    const struct nlattr *user = tb[NFTA_RULE_USERDATA];
    uint64_t mark = 0;
    if (!of_table(rd, tb[NFTA_RULE_TABLE]) || !chain) {
        return;
    }
    const uint8_t *p = user ? mnl_attr_get_payload(user) : NULL;
    if (user && mnl_attr_get_payload_len(user) == NFT_MARK_SIZE && p[0] == NFT_MARK_TYPE) {
        memcpy(&mark, p + 2, sizeof mark);
    }
    rd->fn.rule(rd->ctx, chain, mark);
}

static void read_chain(void *ctx, const struct nlmsghdr *h)
{
    const struct reader *rd = ctx;
    const struct nlattr *tb[ATTRS];
    split_message(tb, h);
    const char *name = get_text(tb[NFTA_CHAIN_NAME]);
    if (of_table(rd, tb[NFTA_CHAIN_TABLE]) && name) {
        rd->fn.chain(rd->ctx, name, get_be32(tb[NFTA_CHAIN_POLICY], NF_ACCEPT) != NF_ACCEPT);
    }
}

static int dump(struct nft *n, struct nlmsghdr *req, message_fn *fn, struct reader *rd,
                struct err *e)
{
    int r = exchange(n, req, fn, rd);
    return r < 0 ? err_sys(e, r, "read nftables table %s", rd->table) : 0;
}

int nft_list_elements(struct nft *n, const char *table, const char *set, nft_element_fn *fn,
                      void *ctx, struct err *e)
{
    char buf[512];
    struct reader rd = {table, {.element = fn}, ctx};
    struct nlmsghdr *h = request(buf, NFT_MSG_GETSETELEM, NLM_F_DUMP);
    mnl_attr_put_strz(h, NFTA_SET_ELEM_LIST_TABLE, table);
    mnl_attr_put_strz(h, NFTA_SET_ELEM_LIST_SET, set);
    return dump(n, h, read_elements, &rd, e);
}

int nft_list_rules(struct nft *n, const char *table, nft_rule_fn *fn, void *ctx, struct err *e)
{
    char buf[512];
    struct reader rd = {table, {.rule = fn}, ctx};
    struct nlmsghdr *h = request(buf, NFT_MSG_GETRULE, NLM_F_DUMP);
    mnl_attr_put_strz(h, NFTA_RULE_TABLE, table);
    return dump(n, h, read_rule, &rd, e);
}

int nft_list_chains(struct nft *n, const char *table, nft_chain_fn *fn, void *ctx, struct err *e)
{
    char buf[512];
    struct reader rd = {table, {.chain = fn}, ctx};
    return dump(n, request(buf, NFT_MSG_GETCHAIN, NLM_F_DUMP), read_chain, &rd, e);
}

static void read_table(void *ctx, const struct nlmsghdr *h)
{
    const struct nlattr *tb[ATTRS];
    split_message(tb, h);
    *(uint32_t *) ctx = get_be32(tb[NFTA_TABLE_FLAGS], 0);
}

int nft_table_flags(struct nft *n, const char *table, uint32_t *ret, struct err *e)
{
    char buf[512];
    uint32_t flags = 0;
    struct nlmsghdr *h = request(buf, NFT_MSG_GETTABLE, 0);
    mnl_attr_put_strz(h, NFTA_TABLE_NAME, table);
    int r = exchange(n, h, read_table, &flags);
    if (r < 0) {
        return err_sys(e, r, "read nftables table %s", table);
    }
    *ret = flags;
    return 0;
}
