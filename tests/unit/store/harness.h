/* SPDX-License-Identifier: Apache-2.0 */
/* What the store's tests share: a store with a watcher that records, calls that wait for their
 * result, and an etcd to talk to.  A failed expectation ends the test (cmocka). */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "store/store.h"

#include <stdio.h>
#include <sys/types.h>

#define WAIT_MS 60000

struct seen_event {
    char *key, *value, *prev; /* NULL as in struct store_event. */
    uint64_t revision;
    unsigned order; /* Among all callbacks of this harness. */
};
struct seen_item {
    char *key, *value;
    uint64_t revision;
};

struct harness {
    struct loop *loop;
    struct store *store;
    char dir[64]; /* Of this test alone. */
    struct store_config cfg;
    char path[128], endpoints[256];
    struct seen_event *events, *history;
    size_t n_events, events_cap, n_history, history_cap;
    struct seen_item *items; /* Of the last snapshot. */
    size_t n_items;
    uint64_t snapshot_revision;
    unsigned n_snapshots, n_lost;
    char lost[256];
    unsigned order;
    bool in_call; /* A callback now would break the contract. */
    bool wait_flag;
    bool (*wait_for)(struct harness *h);
    size_t wait_n;
};

/* Opens nothing yet. */
void harness_init(struct harness *h, const char *backend);
void harness_done(struct harness *h);
/* For cmocka: a harness of its own for each test, in '*state'. */
int harness_set_up_sqlite(void **state);
int harness_tear_down(void **state);
/* Opens and starts the store. */
void harness_begin(struct harness *h);
/* As above, and waits for its snapshot. */
void harness_open(struct harness *h);
void harness_close(struct harness *h);
/* Forgets the recorded events. */
void harness_forget(struct harness *h);
/* Runs the loop until 'fn', asked after each callback, is true. */
void harness_wait(struct harness *h, bool (*fn)(struct harness *h));
void harness_wait_events(struct harness *h, size_t n);
void harness_wait_snapshots(struct harness *h, unsigned n);
void harness_wait_lost(struct harness *h, unsigned n);
/* A store_watcher's 'lost' that counts, with the harness as context. */
void harness_lost(void *ctx, const char *reason);
const struct seen_item *harness_item(const struct harness *h, const char *key);

/* One write, begun and maybe finished. */
struct result {
    struct harness *h;
    unsigned calls; /* Of the callback; must end as 1. */
    int error;
    uint64_t revision;
    unsigned order;
};
/* Keeps a reference of 'b' until the write has ended. */
void begin_put_blob(struct harness *h, struct result *r, const char *key, struct blob *b,
                    uint64_t expect);
void begin_put(struct harness *h, struct result *r, const char *key, const char *value,
               uint64_t expect);
void begin_put_bytes(struct harness *h, struct result *r, const char *key, const void *p,
                     size_t size, uint64_t expect);
void begin_delete(struct harness *h, struct result *r, const char *key, uint64_t expect);
/* 'value' NULL: a deletion. */
void begin_guarded(struct harness *h, struct result *r, const char *key, const char *value,
                   uint64_t expect, const char *guard, uint64_t at);
void begin_with_terms(struct harness *h, struct result *r, const char *key, const char *value,
                      uint64_t expect, const struct store_terms *terms);
/* With claims: the keys of 'claims', which ends with NULL, are made, and those that
 * begin with '-' go. */
void begin_claiming(struct harness *h, struct result *r, const char *key, const char *value,
                    uint64_t expect, const char *const *claims);
/* Whatever is there; it need not stay longer than 'ttl_s' seconds. */
void begin_put_for(struct harness *h, struct result *r, const char *key, const char *value,
                   unsigned ttl_s);
void begin_sync(struct harness *h, struct result *r);
void begin_probe(struct harness *h, struct result *r);
void wait_results(struct harness *h, struct result *r, size_t n);
/* As above, waiting: the error, and the revision (NULL: not wanted). */
int put(struct harness *h, const char *key, const char *value, uint64_t expect, uint64_t *ret);
/* A step of the object's deletion. */
int put_ending(struct harness *h, const char *key, const char *value);
int del(struct harness *h, const char *key, uint64_t expect, uint64_t *ret);
int claiming(struct harness *h, const char *key, const char *value, uint64_t expect,
             const char *const *claims, uint64_t *ret);
int guarded(struct harness *h, const char *key, const char *value, uint64_t expect,
            const char *guard, uint64_t at, uint64_t *ret);

/* The number of open descriptors of the process. */
unsigned open_descriptors(void);

/* ---- etcd ---- */

struct etcd {
    char dir[64];
    int client_port, peer_port;
    pid_t pid; /* 0: not running. */
};
bool etcd_is_installed(void);
/* A new one-member cluster on loopback ports that were free. */
void etcd_start(struct etcd *d);
/* The process with its data again. */
void etcd_restart(struct etcd *d);
void etcd_kill(struct etcd *d); /* kill -9 */
void etcd_stop(struct etcd *d); /* Also removes its data. */
/* Runs etcdctl with 'arguments' (split at blanks). */
void etcd_ctl(const struct etcd *d, const char *arguments);
int etcd_ctl_status(const struct etcd *d, const char *arguments); /* As of waitpid(2). */
void kill_child(pid_t pid);

void remove_tree(const char *dir);
