/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the etcd backend, for etcd.c (the connection), etcd_sync.c (snapshot, history
 * and watch), etcd_read.c (the newest revision), etcd_write.c (writes), etcd_lease.c and
 * etcd_compact.c only.
 *
 * One connection at a time, to one of the endpoints.  Its states, in this order:
 *   CONNECTING -> READING (a snapshot in pages) [-> LOOKING_BACK (history)]
 *              -> OPENING (a watch) -> WATCHING
 * and when the connection broke while the watcher still has all changes up to some revision:
 *   CONNECTING -> CHECKING (that this etcd has that revision) -> OPENING -> WATCHING
 * Any failure drops the connection and, after a delay, tries the next endpoint. The store is
 * reported as lost only when WATCHING is not reached again within LOST_MS. A new snapshot is
 * needed only when etcd no longer has the changes that the watcher lacks, or when the watcher
 * does not support resuming. */
#pragma once

#include "base/map.h"
#include "net/grpc/rpc.h"
#include "store/backend.h"
#include "wire/etcd.h"

#define ETCD_KEY ((struct etcd_bytes){STORE_PREFIX, sizeof STORE_PREFIX - 1})
#define ETCD_KEY_END ((struct etcd_bytes){"/registry0", 10}) /* '0' follows '/'. */
/* The range of all keys as key and end: one NUL. */
#define ETCD_ALL_KEYS ((struct etcd_bytes){"", 1})
/* A message from etcd: its own limit of a request is 1.5 MiB, and an event carries two values. */
#define ETCD_MAX_MESSAGE ((size_t) 32 << 20)
#define ETCD_CALL_MS 10000
#define ETCD_READ_MS 3000

struct etcd_endpoint {
    char *name;    /* As configured: the name required in the server's certificate. */
    char *address; /* IPv4 */
    uint16_t port;
};

enum etcd_state {
    ETCD_DOWN,
    ETCD_CONNECTING,
    ETCD_CHECKING,
    ETCD_READING,
    ETCD_LOOKING_BACK,
    ETCD_OPENING,
    ETCD_WATCHING,
};

/* The keys of a page are one allocation: the values are then adjacent in memory, so that the
 * watcher's copies, made one after the other, can reuse their memory even if slightly larger. */
struct etcd_items {
    struct store_item *v;
    size_t n, cap;
    char **keys; /* Keys of each page. */
    size_t n_keys, cap_keys;
};
/* Oldest first; those before 'start' were dropped. */
struct etcd_events {
    struct store_event *v;
    size_t start, n, cap;
    size_t bytes;
};

struct etcd_store {
    struct store base;
    unsigned history;

    /* etcd.c */
    struct etcd_endpoint *endpoints;
    size_t n_endpoints, endpoint;
    struct tls_context *tls; /* NULL: cleartext. */
    enum etcd_state state;
    struct rpc *rpc;
    struct loop_timer *retry; /* In DOWN. */
    struct loop_timer *lost;  /* Armed since the connection broke. */
    unsigned attempt;         /* Attempts since the last WATCHING. */
    bool lost_reported;       /* Set until a snapshot or resuming. */
    bool needs_snapshot;      /* The watcher cannot continue from 'revision'. */
    char reason[256];         /* The reason of the last failure. */

    /* etcd_sync.c */
    struct rpc_call *call;   /* A read, or a watch. */
    struct loop_timer *step; /* Timeout of LOOKING_BACK and OPENING. */
    uint64_t cluster_id;     /* 0: not known yet. */
    struct etcd_items items;
    uint64_t snapshot_revision;
    uint64_t page_limit;
    uint64_t history_start;
    uint64_t history_seen; /* The newest revision seen in the history. */
    struct etcd_events events;
    uint64_t revision; /* The newest revision that the watcher has. */
    unsigned seen;     /* Number of its events that the watcher has. */
    unsigned skip;     /* Number of its events that a resumed watch will repeat. */
    bool partial;      /* More events of 'revision' may follow. */

    /* etcd_compact.c */
    struct rpc_call *compaction; /* The claim, or the compaction request. */
    uint64_t compact_at;         /* Revision of the next compaction. */
    uint64_t compact_to;         /* Revision of the compaction in progress. */
    uint64_t compact_claim;      /* Mod revision of the claim's key, as far as known. */

    /* etcd_lease.c */
    struct rpc_call *lease_call;
    uint64_t lease;          /* 0: there is none. */
    unsigned lease_ttl_s;    /* The lifetime that keys get with it. */
    uint64_t lease_until_ms; /* No key is put under it after that. */

    /* etcd_read.c; each list has struct store_write that wait for their callback */
    struct rpc_call *read_call;
    struct list reads_queued;  /* Added after the read in progress was sent. */
    struct list reads_asked;   /* Wait for its answer. */
    struct list reads_waiting; /* Wait until the watch reaches their revision. */

    /* etcd_write.c */
    struct list queue;    /* Not sent. */
    struct hmap inflight; /* struct pending, by key: one per key, so that their order is kept. */
    struct list answered; /* Wait until the watch reaches their revision, in that order. */
};

/* Drops the connection for that reason, and tries again. */
void etcd_fail(struct etcd_store *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The watcher is up to date again, and the watch continues. */
void etcd_recovered(struct etcd_store *s);
/* The watcher has to start over: reports it, and fails all writes. */
void etcd_lost(struct etcd_store *s, const char *reason);

void etcd_sync_init(struct etcd_store *s);
void etcd_sync_connected(struct etcd_store *s);
/* After the watcher was notified of the loss: a watch being resumed needs a snapshot now. */
void etcd_sync_restart(struct etcd_store *s);
void etcd_sync_disconnected(struct etcd_store *s); /* The calls were freed. */
void etcd_sync_done(struct etcd_store *s);

/* Keeps etcd's history between one and two times the configured size; called when revisions have
 * grown. */
void etcd_compact(struct etcd_store *s);

/* A lease for a key that may be deleted 'ttl_s' seconds from now; 0: there is none yet, and the
 * key stays until it is deleted explicitly. */
uint64_t etcd_lease(struct etcd_store *s, unsigned ttl_s);
void etcd_lease_is_gone(struct etcd_store *s);      /* etcd does not know the lease. */
void etcd_lease_disconnected(struct etcd_store *s); /* The calls were freed. */

void etcd_reads_init(struct etcd_store *s);
void etcd_reads_add(struct etcd_store *s, struct store_write *w);
void etcd_reads_send(struct etcd_store *s);
/* The watcher has received all changes up to s->revision. */
void etcd_reads_seen(struct etcd_store *s);
void etcd_reads_disconnected(struct etcd_store *s); /* The calls were freed. */
void etcd_reads_fail(struct etcd_store *s, int error);

void etcd_writes_init(struct etcd_store *s);
void etcd_writes_add(struct etcd_store *s, struct store_write *w);
void etcd_writes_send(struct etcd_store *s); /* Sends as many as the limit allows. */
/* The watcher has received all changes up to 'revision'. */
void etcd_writes_seen(struct etcd_store *s, uint64_t revision);
void etcd_writes_disconnected(struct etcd_store *s); /* The calls were freed. */
void etcd_writes_fail(struct etcd_store *s, int error);
void etcd_writes_done(struct etcd_store *s); /* After etcd_writes_disconnected. */
