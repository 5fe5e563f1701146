/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of etcd's v3 API that the store uses
 * (etcd.io/docs/v3.4/dev-guide/api_reference_v3, with the field numbers of etcd's rpc.proto and
 * kv.proto): Range, Txn with one put or deletion, Watch, Compact, LeaseGrant.
 *
 * Requests are appended to a strbuf.  Responses are parsed into structs that point into the
 * message: nothing is allocated, and they live as long as its bytes.  A parse checks the whole
 * message, so that walking its keys and events afterwards cannot fail. */
#pragma once

#include "wire/protobuf.h"

#define ETCD_PATH_RANGE "/etcdserverpb.KV/Range"
#define ETCD_PATH_TXN "/etcdserverpb.KV/Txn"
#define ETCD_PATH_COMPACT "/etcdserverpb.KV/Compact"
#define ETCD_PATH_LEASE_GRANT "/etcdserverpb.Lease/LeaseGrant"
#define ETCD_PATH_WATCH "/etcdserverpb.Watch/Watch"

struct etcd_bytes {
    const char *p;
    size_t size;
};

struct etcd_kv {
    struct etcd_bytes key, value;
    uint64_t create_revision, mod_revision, version;
};

struct etcd_header {
    uint64_t cluster_id, member_id, revision;
};

/* ---- Range ---- */

struct etcd_range_request {
    struct etcd_bytes key, end; /* key <= x < end; 'end' empty: 'key' alone. */
    uint64_t limit;             /* 0: none */
    uint64_t revision;          /* 0: the newest */
    bool keys_only;
};
void etcd_range_format(struct strbuf *b, const struct etcd_range_request *q);

struct etcd_range_response {
    struct etcd_header header;
    bool more; /* There are more keys beyond the limit. */
    struct pb_reader walk;
};
int etcd_range_parse(const void *data, size_t size, struct etcd_range_response *ret);
/* The next key in order; false: no more. */
bool etcd_range_next(struct etcd_range_response *r, struct etcd_kv *ret);

/* ---- Txn ---- */

enum etcd_condition {
    ETCD_IF_TRUE,   /* No condition. */
    ETCD_IF_EXISTS, /* The key exists. */
    ETCD_IF_AT,     /* It is at mod revision 'revision'; 0: it does not exist. */
};
enum etcd_action { ETCD_PUT, ETCD_DELETE, ETCD_NOTHING };
/* A key that is put with the action and must be at mod revision 'revision' (0: absent) before, or
 * that is deleted with it. */
struct etcd_claim {
    struct etcd_bytes key, value;
    bool removed;
    uint64_t revision;
};
/* If the condition holds, the key 'guard' (size 0: none) is at 'guard_revision', and each claim to
 * be put is at its revision: does the action and then the claims. Otherwise reads these keys. */
struct etcd_txn_request {
    struct etcd_bytes key, value;
    enum etcd_condition condition;
    uint64_t revision;
    enum etcd_action action;
    struct etcd_bytes guard;
    uint64_t guard_revision;
    uint64_t lease; /* The key is deleted when this lease ends; 0: none. */
    const struct etcd_claim *claims;
    size_t n_claims;
};
void etcd_txn_format(struct strbuf *b, const struct etcd_txn_request *q);

struct etcd_txn_response {
    struct etcd_header header; /* Its revision is that of the change. */
    bool succeeded;            /* The condition held. */
    uint64_t mod_revision;     /* Revision of the key when the condition failed; 0: absent. */
    /* Revision of the guard when it failed; 0: absent, or there is none. */
    uint64_t guard_revision;
    uint64_t claim_revision; /* The newest revision of the existing claims; 0: none exists. */
    unsigned n_ranges;       /* Keys read. */
};
int etcd_txn_parse(const void *data, size_t size, struct etcd_txn_response *ret);

/* ---- LeaseGrant ---- */

/* A lease of 'ttl_s' seconds, whose id etcd chooses. */
void etcd_lease_grant_format(struct strbuf *b, uint64_t ttl_s);

struct etcd_lease_grant_response {
    struct etcd_header header;
    uint64_t id, ttl_s; /* Not 0; the granted values. */
};
/* -EBADMSG also when etcd granted none. */
int etcd_lease_grant_parse(const void *data, size_t size, struct etcd_lease_grant_response *ret);

/* ---- Compact ---- */

void etcd_compact_format(struct strbuf *b, uint64_t revision);

/* ---- Watch ---- */

struct etcd_watch_request {
    struct etcd_bytes key, end;
    uint64_t start_revision;
    uint64_t watch_id; /* Not 0. */
};
/* A watch with previous values, progress notices, and large answers in fragments. */
void etcd_watch_format(struct strbuf *b, const struct etcd_watch_request *q);
void etcd_watch_cancel_format(struct strbuf *b, uint64_t watch_id);

struct etcd_watch_response {
    struct etcd_header header;
    uint64_t watch_id;
    bool created, canceled;
    bool fragment;             /* More of the same revision may follow. */
    uint64_t compact_revision; /* Not 0: the watch began before the oldest revision in etcd. */
    struct etcd_bytes cancel_reason;
    struct pb_reader walk;
};
struct etcd_event {
    bool deleted;
    struct etcd_kv kv;   /* For a deletion: key and mod revision only. */
    struct etcd_kv prev; /* prev.mod_revision 0: unknown. */
};
int etcd_watch_parse(const void *data, size_t size, struct etcd_watch_response *ret);
bool etcd_watch_next(struct etcd_watch_response *r, struct etcd_event *ret);
