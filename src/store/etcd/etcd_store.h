/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the etcd backend, for etcd.c (the connection), etcd_sync.c (snapshot, history
 * and watch), etcd_read.c (which revision is the newest), etcd_write.c (writes),
 * etcd_lease.c and etcd_compact.c only.
 *
 * One connection at a time, to one of the endpoints.  What happens on it, in this order:
 *   CONNECTING -> READING (a snapshot in pages) [-> LOOKING_BACK (history)]
 *              -> OPENING (a watch) -> WATCHING
 * and when the connection broke while the watcher still has all changes up to some revision:
 *   CONNECTING -> CHECKING (that this etcd has that revision) -> OPENING -> WATCHING
 * Any trouble drops the connection and, after a moment, tries the next endpoint.  Only when that
 * has not led back to WATCHING within LOST_MS is the store reported as lost.  A new snapshot is
 * needed only when etcd does not have the changes any more that the watcher lacks, or when the
 * watcher cannot be told that they go on. */
#pragma once

#include "base/map.h"
#include "net/grpc/rpc.h"
#include "store/backend.h"
#include "wire/etcd.h"

#define ETCD_KEY ((struct etcd_bytes){STORE_PREFIX, sizeof STORE_PREFIX - 1})
#define ETCD_KEY_END ((struct etcd_bytes){"/registry0", 10}) /* '0' follows '/'. */
#define ETCD_ALL_KEYS ((struct etcd_bytes){"", 1})           /* As key and end: one NUL. */
/* A message from etcd: its own limit of a request is 1.5 MiB, and an event carries two values. */
#define ETCD_MAX_MESSAGE ((size_t) 32 << 20)
#define ETCD_CALL_MS 10000
#define ETCD_READ_MS 3000

struct etcd_endpoint {
    char *name;    /* As given: what the server's certificate must be for. */
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

/* The keys of a page are one allocation: the values lie side by side then, so that what takes their
 * place in memory one after the other may be a little larger. */
struct etcd_items {
    struct store_item *v;
    size_t n, cap;
    char **keys; /* Of each page. */
    size_t n_keys, cap_keys;
};
/* Oldest first; those before 'start' were given up. */
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
    struct loop_timer *lost;  /* Since the connection broke. */
    unsigned attempt;         /* Since the last WATCHING. */
    bool lost_reported;       /* And neither a snapshot nor resumed since. */
    bool needs_snapshot;      /* The watcher cannot go on from 'revision'. */
    char reason[256];         /* Of the last trouble. */

    /* etcd_sync.c */
    struct rpc_call *call;   /* A read, or a watch. */
    struct loop_timer *step; /* Limits LOOKING_BACK and OPENING. */
    uint64_t cluster_id;     /* 0: not known yet. */
    struct etcd_items items;
    uint64_t snapshot_revision;
    uint64_t page_limit;
    uint64_t history_start;
    uint64_t history_seen; /* The newest revision that the look back has shown. */
    struct etcd_events events;
    uint64_t revision; /* Newest that the watcher knows. */
    unsigned seen;     /* Events of it that it was given. */
    unsigned skip;     /* Events of it that a resumed watch will give again. */
    bool partial;      /* More of 'revision' may come. */

    /* etcd_compact.c */
    struct rpc_call *compaction; /* The claim, or the request. */
    uint64_t compact_at;         /* Revision at which to compact next. */
    uint64_t compact_to;         /* Of the compaction under way. */
    uint64_t compact_claim;      /* Mod revision of the claim's key, as far as known. */

    /* etcd_lease.c */
    struct rpc_call *lease_call;
    uint64_t lease;          /* 0: there is none. */
    unsigned lease_ttl_s;    /* What it is for. */
    uint64_t lease_until_ms; /* No key is put under it after that. */

    /* etcd_read.c; each a struct store_write that waits for its callback */
    struct rpc_call *read_call;
    struct list reads_queued;  /* Came after the read under way was sent. */
    struct list reads_asked;   /* Wait for its answer. */
    struct list reads_waiting; /* Wait for their revision on the watch. */

    /* etcd_write.c */
    struct list queue;    /* Not sent. */
    struct hmap inflight; /* struct pending, by key: one a key, so that their order is kept. */
    struct list answered; /* Waiting for their revision on the watch, in that order. */
};

/* Drops the connection for the reason given, and tries again. */
void etcd_fail(struct etcd_store *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The watcher knows all again, and the watch goes on. */
void etcd_recovered(struct etcd_store *s);
/* The watcher has to start over: reports it, and fails all writes. */
void etcd_lost(struct etcd_store *s, const char *reason);

void etcd_sync_init(struct etcd_store *s);
void etcd_sync_connected(struct etcd_store *s);
/* The watcher was told that all is lost: if a watch was being resumed, a snapshot is needed now. */
void etcd_sync_restart(struct etcd_store *s);
void etcd_sync_disconnected(struct etcd_store *s); /* The calls are gone. */
void etcd_sync_done(struct etcd_store *s);

/* Keeps etcd's history between one and two times what is wanted; to be called when
 * revisions have grown. */
void etcd_compact(struct etcd_store *s);

/* A lease for a key that may go 'ttl_s' seconds from now; 0: there is none yet, and the
 * key stays until somebody deletes it. */
uint64_t etcd_lease(struct etcd_store *s, unsigned ttl_s);
void etcd_lease_is_gone(struct etcd_store *s);      /* etcd does not know it. */
void etcd_lease_disconnected(struct etcd_store *s); /* The calls are gone. */

void etcd_reads_init(struct etcd_store *s);
void etcd_reads_add(struct etcd_store *s, struct store_write *w);
void etcd_reads_send(struct etcd_store *s);
void etcd_reads_seen(struct etcd_store *s); /* The watcher has been given all up to s->revision. */
void etcd_reads_disconnected(struct etcd_store *s); /* The calls are gone. */
void etcd_reads_fail(struct etcd_store *s, int error);

void etcd_writes_init(struct etcd_store *s);
void etcd_writes_add(struct etcd_store *s, struct store_write *w);
void etcd_writes_send(struct etcd_store *s); /* As many as may go. */
/* The watcher has been given all up to 'revision'. */
void etcd_writes_seen(struct etcd_store *s, uint64_t revision);
void etcd_writes_disconnected(struct etcd_store *s); /* The calls are gone. */
void etcd_writes_fail(struct etcd_store *s, int error);
void etcd_writes_done(struct etcd_store *s); /* After etcd_writes_disconnected. */
