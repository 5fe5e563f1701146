/* SPDX-License-Identifier: Apache-2.0 */
/* nf_tables over netlink (linux/netfilter/nf_tables.h), of family ip: batches that change
 * tables, and dumps that read them.
 *
 * A batch is one transaction: the kernel takes all of it or nothing. It is built in memory
 * first, its messages in the order of the calls, then nft_send gives it to the kernel in one
 * piece and waits for the verdict. Names are at most NFT_NAME_MAXLEN - 1 characters. Registers
 * are numbers 0 to 15, of four bytes each; values that are longer take the next ones as well.
 * Keys and values of elements are as in registers: each part begins at a multiple of four bytes
 * and is in network byte order, unless said otherwise.
 *
 * A batch has one owner and no thread. A 'struct nft' is one socket in the network namespace it
 * was opened in, used by one thread at a time; its calls block, but only for the kernel's own
 * work. */
#pragma once

#include "base/err.h"
#include "base/macro.h"

#include <netinet/in.h> /* Before the headers of Linux, which check whether it was included. */

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#define NFT_NAME_MAX 64 /* Our limit, with the NUL. */

/* ---- batches ---- */

struct nft_batch {
    char *data;
    size_t size, cap;
    const char *table;        /* Not owned. */
    struct nlmsghdr *message; /* The message being built. */
    struct nlattr *nests[6];  /* Its open nested attributes. */
    size_t n_nests;
    const char *set; /* The set whose elements are being added (or removed). */
    bool add;
    uint32_t n_messages; /* Also the sequence number of the next message. */
    uint32_t n_sets;     /* Sets created by this batch. */
};
/* Begins a batch of changes of 'table', which must stay. */
void nft_batch_begin(struct nft_batch *b, const char *table);
void nft_batch_end(struct nft_batch *b);
void nft_batch_done(struct nft_batch *b); /* Frees; the struct may be begun again. */

void nft_add_table(struct nft_batch *b);
void nft_delete_table(struct nft_batch *b);

struct nft_base_chain {
    const char *type; /* "nat", "filter" */
    uint32_t hook;    /* NF_INET_... */
    int32_t priority;
};
/* 'base' NULL: a chain to jump to. */
void nft_add_chain(struct nft_batch *b, const char *name, const struct nft_base_chain *base);
/* Deletes it with its rules; nothing may refer to it after the batch. */
void nft_delete_chain(struct nft_batch *b, const char *name);

struct nft_set_def {
    const char *name;
    /* NFT_SET_MAP, NFT_SET_INTERVAL, NFT_SET_CONCAT, NFT_SET_EVAL, NFT_SET_TIMEOUT */
    uint32_t flags;
    uint32_t key_type;  /* NFT_TYPE() of the parts, for listing; the kernel only stores it. */
    uint32_t data_type; /* Likewise; NFT_DATA_VERDICT has a meaning for the kernel. */
    uint32_t key_size, data_size;
    uint32_t size;     /* Maximum number of elements; 0: unlimited. */
    uint8_t fields[4]; /* NFT_SET_CONCAT: bytes of each part. */
    size_t n_fields;
};
/* The types' numbers in nft(8), and its encoding of concatenated types. */
enum { NFT_TYPE_IP = 7, NFT_TYPE_PROTOCOL = 12, NFT_TYPE_PORT = 13, NFT_TYPE_MARK = 19 };
#define NFT_TYPE_AND(types, type) ((types) << 6 | (type))
void nft_add_set(struct nft_batch *b, const struct nft_set_def *def);

/* Elements of one set, between begin and end. */
void nft_elements_begin(struct nft_batch *b, const char *set, bool add);
struct nft_element {
    const void *key, *key_end; /* 'key_end' NULL: no interval. */
    size_t key_size;
    const void *data; /* NULL: no data, or a verdict. */
    size_t data_size;
    int verdict; /* NFT_GOTO, NFT_JUMP: to 'chain'; NF_DROP ...; 0: none. */
    const char *chain;
};
#define NFT_NO_VERDICT INT32_MAX
void nft_element(struct nft_batch *b, const struct nft_element *el);
void nft_elements_end(struct nft_batch *b);

/* A rule at the end of 'chain', whose expressions are put in between begin and end. */
void nft_rule_begin(struct nft_batch *b, const char *chain);
/* Returns a mark of the rule's content, which the kernel stores with it and dumps return. */
uint64_t nft_rule_end(struct nft_batch *b);
/* Stored as user data of the rule, in nft(8)'s form, with a type that it skips. */
enum { NFT_MARK_TYPE = 0xe7, NFT_MARK_SIZE = 2 + sizeof(uint64_t) };

/* Expressions.  Loads: */
void nft_load_payload(struct nft_batch *b, uint32_t base, uint32_t offset, uint32_t size,
                      uint32_t reg);
void nft_load_saddr(struct nft_batch *b, uint32_t reg);
void nft_load_daddr(struct nft_batch *b, uint32_t reg);
void nft_load_dport(struct nft_batch *b, uint32_t reg);
void nft_load_meta(struct nft_batch *b, enum nft_meta_keys key, uint32_t reg);
/* Field of the connection; 'original': of its first packet before translation. */
void nft_load_ct(struct nft_batch *b, enum nft_ct_keys key, bool original, uint32_t reg);
void nft_load_value(struct nft_batch *b, uint32_t reg, const void *p, size_t size);
void nft_load_random(struct nft_batch *b, uint32_t modulus, uint32_t reg); /* Host byte order. */
void nft_load_daddr_type(struct nft_batch *b, uint32_t reg); /* RTN_..., host byte order. */
/* ---- tests, which end the rule when they fail ---- */
void nft_compare(struct nft_batch *b, uint32_t reg, enum nft_cmp_ops op, const void *p,
                 size_t size);
/* ---- calculations: reg = (reg & mask) ^ flip, of 'size' bytes ---- */
void nft_bitwise(struct nft_batch *b, uint32_t reg, const void *mask, const void *flip,
                 size_t size);
/* ---- sets: the key is in 'reg' and following; 'invert': continue when it is absent ---- */
void nft_lookup(struct nft_batch *b, const char *set, uint32_t reg, bool invert);
void nft_lookup_value(struct nft_batch *b, const char *map, uint32_t reg, uint32_t to);
void nft_lookup_verdict(struct nft_batch *b, const char *map, uint32_t reg);
/* For a map: with the data in 'data_reg', also to delete; 'timeout_ms' 0: none. */
void nft_update_element(struct nft_batch *b, const char *set, enum nft_dynset_ops op,
                        uint32_t key_reg, uint32_t data_reg, uint64_t timeout_ms);
/* ---- actions ---- */
void nft_store_meta(struct nft_batch *b, enum nft_meta_keys key, uint32_t reg);
void nft_verdict(struct nft_batch *b, int verdict, const char *chain);
void nft_dnat(struct nft_batch *b, uint32_t addr_reg, uint32_t port_reg);
/* With a random source port in the range of the ports in these registers, both included. */
void nft_masquerade(struct nft_batch *b, uint32_t first_port_reg, uint32_t last_port_reg);
/* To a port of the host, in 'port_reg'. */
void nft_redirect(struct nft_batch *b, uint32_t port_reg);
void nft_reject(struct nft_batch *b, enum nft_reject_types type, uint8_t icmp_code);

/* ---- the kernel ---- */

struct nft;
int nft_open(struct nft **ret, struct err *e);
struct nft *nft_close(struct nft *n);
DEFINE_CLEANUP(struct nft *, nft_close)
/* The socket's netlink port: the originator in the kernel's events. */
uint32_t nft_port(const struct nft *n);
/* Applies a complete batch; the error has the kernel's code (-ENOENT, -EEXIST ...). */
int nft_send(struct nft *n, const struct nft_batch *b, struct err *e);
/* Number of the rule set's last change in the socket's namespace. */
int nft_generation(struct nft *n, uint32_t *ret, struct err *e);

/* Dumps. -ENOENT: no such table (or set). -EINTR: it changed during the dump, which has to be
 * repeated. */
struct nft_read_element {
    const uint8_t *key, *key_end, *data;
    size_t key_size, key_end_size, data_size; /* 0: absent. */
    int verdict;                              /* NFT_NO_VERDICT: none. */
    const char *chain;                        /* NULL: none. */
};
typedef void nft_element_fn(void *ctx, const struct nft_read_element *el);
int nft_list_elements(struct nft *n, const char *table, const char *set, nft_element_fn *fn,
                      void *ctx, struct err *e);
/* One call per rule, in their order within a chain; 'mark' 0: the rule has none of ours. */
typedef void nft_rule_fn(void *ctx, const char *chain, uint64_t mark);
int nft_list_rules(struct nft *n, const char *table, nft_rule_fn *fn, void *ctx, struct err *e);
/* One call per chain; 'drops': its policy is to drop. */
typedef void nft_chain_fn(void *ctx, const char *name, bool drops);
int nft_list_chains(struct nft *n, const char *table, nft_chain_fn *fn, void *ctx, struct err *e);
int nft_table_flags(struct nft *n, const char *table, uint32_t *ret, struct err *e);
