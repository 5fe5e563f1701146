/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kernel/nft.h"

#include "base/mem.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nfnetlink.h>

/* More than the largest message: attributes are at most 64 KiB. */
#define MESSAGE_ROOM ((size_t) 72 << 10)
#define ELEMENTS_FULL 60000 /* Bytes of elements in one message. */
#define REGISTER(n) (NFT_REG32_00 + (n))

/* ---- messages ---- */

static void room(struct nft_batch *b)
{
    if (b->cap - b->size < MESSAGE_ROOM) {
        b->cap = MAX(b->cap * 2, b->size + MESSAGE_ROOM);
        b->data = xreallocarray(b->data, b->cap, 1);
    }
}

static void begin_message(struct nft_batch *b, uint16_t type, uint16_t flags, uint8_t family,
                          uint16_t resource)
{
    room(b);
    struct nlmsghdr *h = mnl_nlmsg_put_header(b->data + b->size);
    h->nlmsg_type = type;
    h->nlmsg_flags = NLM_F_REQUEST | flags;
    h->nlmsg_seq = b->n_messages++;
    struct nfgenmsg *g = mnl_nlmsg_put_extra_header(h, sizeof *g);
    g->nfgen_family = family;
    g->version = NFNETLINK_V0;
    g->res_id = htons(resource);
    b->message = h;
}

static void begin(struct nft_batch *b, enum nf_tables_msg_types type, uint16_t flags)
{
    begin_message(b, (uint16_t) (NFNL_SUBSYS_NFTABLES << 8 | type), flags, NFPROTO_IPV4, 0);
}

static void end(struct nft_batch *b)
{
    assert(b->message && b->n_nests == 0);
    b->size += mnl_nlmsg_size(mnl_nlmsg_get_payload_len(b->message));
    b->message = NULL;
}

static void open_nest(struct nft_batch *b, uint16_t type)
{
    assert(b->n_nests < ARRAY_SIZE(b->nests));
    b->nests[b->n_nests++] = mnl_attr_nest_start(b->message, type);
}

static void close_nest(struct nft_batch *b)
{
    mnl_attr_nest_end(b->message, b->nests[--b->n_nests]);
}

/* Like mnl_attr_put, with zeros in the padding: rules are compared by their bytes. */
static void put(struct nft_batch *b, uint16_t type, const void *p, size_t size)
{
    size_t pad = MNL_ALIGN(size) - size;
    mnl_attr_put(b->message, type, size, p);
    memset((char *) mnl_nlmsg_get_payload_tail(b->message) - pad, 0, pad);
}

static void put_be32(struct nft_batch *b, uint16_t type, uint32_t v)
{
    mnl_attr_put_u32(b->message, type, htonl(v));
}

static void put_be64(struct nft_batch *b, uint16_t type, uint64_t v)
{
    mnl_attr_put_u64(b->message, type, htobe64(v));
}

static void put_text(struct nft_batch *b, uint16_t type, const char *s)
{
    put(b, type, s, strlen(s) + 1);
}

static void put_register(struct nft_batch *b, uint16_t type, uint32_t reg)
{
    put_be32(b, type, REGISTER(reg));
}

/* A value in its nested attribute. */
static void put_data(struct nft_batch *b, uint16_t type, const void *p, size_t size)
{
    open_nest(b, type);
    put(b, NFTA_DATA_VALUE, p, size);
    close_nest(b);
}

static void put_verdict(struct nft_batch *b, uint16_t type, int verdict, const char *chain)
{
    open_nest(b, type);
    open_nest(b, NFTA_DATA_VERDICT);
    put_be32(b, NFTA_VERDICT_CODE, (uint32_t) verdict);
    if (chain) {
        put_text(b, NFTA_VERDICT_CHAIN, chain);
    }
    close_nest(b);
    close_nest(b);
}

/* ---- batches ---- */

void nft_batch_begin(struct nft_batch *b, const char *table)
{
    *b = (struct nft_batch){.data = b->data, .cap = b->cap, .table = table};
    begin_message(b, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
    end(b);
}

void nft_batch_end(struct nft_batch *b)
{
    begin_message(b, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
    end(b);
}

void nft_batch_done(struct nft_batch *b)
{
    free(b->data);
    *b = (struct nft_batch){0};
}

void nft_add_table(struct nft_batch *b)
{
    begin(b, NFT_MSG_NEWTABLE, NLM_F_CREATE);
    put_text(b, NFTA_TABLE_NAME, b->table);
    put_be32(b, NFTA_TABLE_FLAGS, 0);
    end(b);
}

void nft_delete_table(struct nft_batch *b)
{
    begin(b, NFT_MSG_DELTABLE, 0);
    put_text(b, NFTA_TABLE_NAME, b->table);
    end(b);
}

void nft_add_chain(struct nft_batch *b, const char *name, const struct nft_base_chain *base)
{
    begin(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
    put_text(b, NFTA_CHAIN_TABLE, b->table);
    put_text(b, NFTA_CHAIN_NAME, name);
    if (base) {
        open_nest(b, NFTA_CHAIN_HOOK);
        put_be32(b, NFTA_HOOK_HOOKNUM, base->hook);
        put_be32(b, NFTA_HOOK_PRIORITY, (uint32_t) base->priority);
        close_nest(b);
        put_be32(b, NFTA_CHAIN_POLICY, NF_ACCEPT);
        put_text(b, NFTA_CHAIN_TYPE, base->type);
    }
    end(b);
}

void nft_delete_chain(struct nft_batch *b, const char *name)
{
    begin(b, NFT_MSG_DELCHAIN, 0);
    put_text(b, NFTA_CHAIN_TABLE, b->table);
    put_text(b, NFTA_CHAIN_NAME, name);
    end(b);
}

void nft_add_set(struct nft_batch *b, const struct nft_set_def *def)
{
    begin(b, NFT_MSG_NEWSET, NLM_F_CREATE);
    put_text(b, NFTA_SET_TABLE, b->table);
    put_text(b, NFTA_SET_NAME, def->name);
    put_be32(b, NFTA_SET_FLAGS, def->flags);
    put_be32(b, NFTA_SET_KEY_TYPE, def->key_type);
    put_be32(b, NFTA_SET_KEY_LEN, def->key_size);
    if (def->flags & NFT_SET_MAP) {
        put_be32(b, NFTA_SET_DATA_TYPE, def->data_type);
        put_be32(b, NFTA_SET_DATA_LEN, def->data_size);
    }
    put_be32(b, NFTA_SET_ID, ++b->n_sets);
    open_nest(b, NFTA_SET_DESC);
    if (def->size) {
        put_be32(b, NFTA_SET_DESC_SIZE, def->size);
    }
    if (def->n_fields) {
        open_nest(b, NFTA_SET_DESC_CONCAT);
        for (size_t i = 0; i < def->n_fields; i++) {
            open_nest(b, NFTA_LIST_ELEM);
            put_be32(b, NFTA_SET_FIELD_LEN, def->fields[i]);
            close_nest(b);
        }
        close_nest(b);
    }
    close_nest(b);
    end(b);
}

/* ---- elements ---- */

static void begin_elements(struct nft_batch *b)
{
    begin(b, b->add ? NFT_MSG_NEWSETELEM : NFT_MSG_DELSETELEM,
          b->add ? NLM_F_CREATE | NLM_F_EXCL : 0);
    put_text(b, NFTA_SET_ELEM_LIST_TABLE, b->table);
    put_text(b, NFTA_SET_ELEM_LIST_SET, b->set);
    open_nest(b, NFTA_SET_ELEM_LIST_ELEMENTS);
}

static void end_elements(struct nft_batch *b)
{
    close_nest(b);
    end(b);
}

void nft_elements_begin(struct nft_batch *b, const char *set, bool add)
{
    b->set = set;
    b->add = add;
}

void nft_element(struct nft_batch *b, const struct nft_element *el)
{
    if (b->message && mnl_nlmsg_get_payload_len(b->message) > ELEMENTS_FULL) {
        end_elements(b);
    }
    if (!b->message) {
        begin_elements(b);
    }
    open_nest(b, NFTA_LIST_ELEM);
    put_data(b, NFTA_SET_ELEM_KEY, el->key, el->key_size);
    if (el->key_end) {
        put_data(b, NFTA_SET_ELEM_KEY_END, el->key_end, el->key_size);
    }
    if (el->data) {
        put_data(b, NFTA_SET_ELEM_DATA, el->data, el->data_size);
    } else if (el->chain) {
        put_verdict(b, NFTA_SET_ELEM_DATA, el->verdict, el->chain);
    }
    close_nest(b);
}

void nft_elements_end(struct nft_batch *b)
{
    if (b->message) {
        end_elements(b);
    }
    b->set = NULL;
}

/* ---- rules ---- */

void nft_rule_begin(struct nft_batch *b, const char *chain)
{
    begin(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
    put_text(b, NFTA_RULE_TABLE, b->table);
    put_text(b, NFTA_RULE_CHAIN, chain);
    open_nest(b, NFTA_RULE_EXPRESSIONS);
}

uint64_t nft_rule_end(struct nft_batch *b)
{
    const struct nlattr *expressions = b->nests[0];
    close_nest(b);
    uint64_t mark =
        hash_bytes(mnl_attr_get_payload(expressions), mnl_attr_get_payload_len(expressions));
    uint8_t user[NFT_MARK_SIZE] = {NFT_MARK_TYPE, sizeof mark};
    memcpy(user + 2, &mark, sizeof mark);
    put(b, NFTA_RULE_USERDATA, user, sizeof user);
    end(b);
    return mark;
}

static void begin_expr(struct nft_batch *b, const char *name)
{
    open_nest(b, NFTA_LIST_ELEM);
    put_text(b, NFTA_EXPR_NAME, name);
    open_nest(b, NFTA_EXPR_DATA);
}

static void end_expr(struct nft_batch *b)
{
    close_nest(b);
    close_nest(b);
}

void nft_load_payload(struct nft_batch *b, uint32_t base, uint32_t offset, uint32_t size,
                      uint32_t reg)
{
    begin_expr(b, "payload");
    put_register(b, NFTA_PAYLOAD_DREG, reg);
    put_be32(b, NFTA_PAYLOAD_BASE, base);
    put_be32(b, NFTA_PAYLOAD_OFFSET, offset);
    put_be32(b, NFTA_PAYLOAD_LEN, size);
    end_expr(b);
}

void nft_load_saddr(struct nft_batch *b, uint32_t reg)
{
    nft_load_payload(b, NFT_PAYLOAD_NETWORK_HEADER, 12, 4, reg);
}

void nft_load_daddr(struct nft_batch *b, uint32_t reg)
{
    nft_load_payload(b, NFT_PAYLOAD_NETWORK_HEADER, 16, 4, reg);
}

void nft_load_dport(struct nft_batch *b, uint32_t reg)
{
    nft_load_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, reg);
}

static void meta(struct nft_batch *b, enum nft_meta_keys key, uint16_t which, uint32_t reg)
{
    begin_expr(b, "meta");
    put_be32(b, NFTA_META_KEY, key);
    put_register(b, which, reg);
    end_expr(b);
}

void nft_load_meta(struct nft_batch *b, enum nft_meta_keys key, uint32_t reg)
{
    meta(b, key, NFTA_META_DREG, reg);
}

void nft_store_meta(struct nft_batch *b, enum nft_meta_keys key, uint32_t reg)
{
    meta(b, key, NFTA_META_SREG, reg);
}

void nft_load_ct(struct nft_batch *b, enum nft_ct_keys key, bool original, uint32_t reg)
{
    begin_expr(b, "ct");
    put_be32(b, NFTA_CT_KEY, key);
    if (original) {
        put(b, NFTA_CT_DIRECTION, &(uint8_t){IP_CT_DIR_ORIGINAL}, 1);
    }
    put_register(b, NFTA_CT_DREG, reg);
    end_expr(b);
}

void nft_load_value(struct nft_batch *b, uint32_t reg, const void *p, size_t size)
{
    begin_expr(b, "immediate");
    put_register(b, NFTA_IMMEDIATE_DREG, reg);
    put_data(b, NFTA_IMMEDIATE_DATA, p, size);
    end_expr(b);
}

void nft_load_random(struct nft_batch *b, uint32_t modulus, uint32_t reg)
{
    begin_expr(b, "numgen");
    put_register(b, NFTA_NG_DREG, reg);
    put_be32(b, NFTA_NG_MODULUS, modulus);
    put_be32(b, NFTA_NG_TYPE, NFT_NG_RANDOM);
    end_expr(b);
}

void nft_load_daddr_type(struct nft_batch *b, uint32_t reg)
{
    begin_expr(b, "fib");
    put_register(b, NFTA_FIB_DREG, reg);
    put_be32(b, NFTA_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
    put_be32(b, NFTA_FIB_FLAGS, NFTA_FIB_F_DADDR);
    end_expr(b);
}

void nft_compare(struct nft_batch *b, uint32_t reg, enum nft_cmp_ops op, const void *p, size_t size)
{
    begin_expr(b, "cmp");
    put_register(b, NFTA_CMP_SREG, reg);
    put_be32(b, NFTA_CMP_OP, op);
    put_data(b, NFTA_CMP_DATA, p, size);
    end_expr(b);
}

void nft_bitwise(struct nft_batch *b, uint32_t reg, const void *mask, const void *flip, size_t size)
{
    begin_expr(b, "bitwise");
    put_register(b, NFTA_BITWISE_SREG, reg);
    put_register(b, NFTA_BITWISE_DREG, reg);
    put_be32(b, NFTA_BITWISE_LEN, (uint32_t) size);
    put_data(b, NFTA_BITWISE_MASK, mask, size);
    put_data(b, NFTA_BITWISE_XOR, flip, size);
    end_expr(b);
}

static void begin_lookup(struct nft_batch *b, const char *set, uint32_t reg)
{
    begin_expr(b, "lookup");
    put_text(b, NFTA_LOOKUP_SET, set);
    put_register(b, NFTA_LOOKUP_SREG, reg);
}

void nft_lookup(struct nft_batch *b, const char *set, uint32_t reg, bool invert)
{
    begin_lookup(b, set, reg);
    put_be32(b, NFTA_LOOKUP_FLAGS, invert ? NFT_LOOKUP_F_INV : 0);
    end_expr(b);
}

void nft_lookup_value(struct nft_batch *b, const char *map, uint32_t reg, uint32_t to)
{
    begin_lookup(b, map, reg);
    put_register(b, NFTA_LOOKUP_DREG, to);
    end_expr(b);
}

void nft_lookup_verdict(struct nft_batch *b, const char *map, uint32_t reg)
{
    begin_lookup(b, map, reg);
    put_be32(b, NFTA_LOOKUP_DREG, NFT_REG_VERDICT);
    end_expr(b);
}

void nft_update_element(struct nft_batch *b, const char *set, enum nft_dynset_ops op,
                        uint32_t key_reg, uint32_t data_reg, uint64_t timeout_ms)
{
    begin_expr(b, "dynset");
    put_text(b, NFTA_DYNSET_SET_NAME, set);
    put_be32(b, NFTA_DYNSET_OP, op);
    put_register(b, NFTA_DYNSET_SREG_KEY, key_reg);
    put_register(b, NFTA_DYNSET_SREG_DATA, data_reg);
    if (timeout_ms) {
        put_be64(b, NFTA_DYNSET_TIMEOUT, timeout_ms);
    }
    end_expr(b);
}

void nft_verdict(struct nft_batch *b, int verdict, const char *chain)
{
    begin_expr(b, "immediate");
    put_be32(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    put_verdict(b, NFTA_IMMEDIATE_DATA, verdict, chain);
    end_expr(b);
}

void nft_dnat(struct nft_batch *b, uint32_t addr_reg, uint32_t port_reg)
{
    begin_expr(b, "nat");
    put_be32(b, NFTA_NAT_TYPE, NFT_NAT_DNAT);
    put_be32(b, NFTA_NAT_FAMILY, NFPROTO_IPV4);
    put_register(b, NFTA_NAT_REG_ADDR_MIN, addr_reg);
    put_register(b, NFTA_NAT_REG_PROTO_MIN, port_reg);
    end_expr(b);
}

void nft_masquerade(struct nft_batch *b, uint32_t first_port_reg, uint32_t last_port_reg)
{
    begin_expr(b, "masq");
    put_be32(b, NFTA_MASQ_FLAGS, NF_NAT_RANGE_PROTO_RANDOM_FULLY | NF_NAT_RANGE_PROTO_SPECIFIED);
    put_register(b, NFTA_MASQ_REG_PROTO_MIN, first_port_reg);
    put_register(b, NFTA_MASQ_REG_PROTO_MAX, last_port_reg);
    end_expr(b);
}

void nft_redirect(struct nft_batch *b, uint32_t port_reg)
{
    begin_expr(b, "redir");
    put_register(b, NFTA_REDIR_REG_PROTO_MIN, port_reg);
    end_expr(b);
}

void nft_reject(struct nft_batch *b, enum nft_reject_types type, uint8_t icmp_code)
{
    begin_expr(b, "reject");
    put_be32(b, NFTA_REJECT_TYPE, type);
    if (type == NFT_REJECT_ICMP_UNREACH) {
        put(b, NFTA_REJECT_ICMP_CODE, &icmp_code, 1);
    }
    end_expr(b);
}
