/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the store's backends: the base struct, the pending write, and the reports to the
 * watcher.
 *
 * A backend embeds 'struct store' first and fills in 'ops'.  The front (store.c) checks
 * arguments, refuses writes while the store is not available, and turns each accepted call
 * into a 'struct store_write', which the backend owns until it gives it to
 * store_write_finish.  All on the loop's thread. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "store/encryption.h"
#include "store/store.h"

/* A value larger than this is refused with -E2BIG. */
#define STORE_MAX_VALUE ((size_t) 64 << 20)
#define STORE_DEFAULT_HISTORY 10000u
/* Prefix of all keys. */
#define STORE_PREFIX "/registry/"

struct store_write_claim {
    char *key;
    struct blob *value; /* NULL: it goes. */
    uint64_t expect;    /* With a value: STORE_ABSENT, or the mod revision that it replaces. */
    /* Set by the backend: the results. */
    uint64_t revision; /* 0: no change was necessary. */
    struct blob *prev;
};

struct store_write {
    struct list node;
    char *key;
    struct blob *value; /* NULL: deletion. */
    uint64_t expect;
    char *guard; /* NULL: none; else the key must be at mod revision 'guard_at'. */
    uint64_t guard_at;
    unsigned ttl_s; /* For a put; 0: the key stays. */
    bool ending;    /* For a put: a step of a deletion. */
    /* Changes nothing, but otherwise works like a write; 'key' never exists. */
    bool probe;
    struct store_write_claim *claims;
    size_t n_claims;
    store_done_fn *done;
    void *ctx;
    /* Set by the backend: the results. */
    int error;
    uint64_t revision;
    struct blob *prev; /* The replaced value. */
};

struct store_ops {
    void (*start)(struct store *s);
    void (*write)(struct store *s, struct store_write *w); /* The backend owns 'w' from now on. */
    /* Like store_sync, and finishes 'w'; NULL: there are no other writers. */
    void (*sync)(struct store *s, struct store_write *w);
    /* Finishes every write that it owns and frees the store's own parts, but not 's'. */
    void (*close)(struct store *s);
};

struct store {
    const struct store_ops *ops;
    struct loop *loop;
    const struct store_watcher *watcher;
    void *watcher_ctx;
    bool available; /* The watcher has a snapshot and all changes since. */
    bool closing;
    bool importing; /* From the configuration. */
    /* An import into it began, or was interrupted; set until the store is opened again. */
    bool blocked;
    struct encryption *encryption; /* NULL: none. */
    struct smap stale;             /* Keys whose values are to be written again. */
    struct list refused; /* Calls that the front has decided and whose callbacks are due. */
    struct loop_task refuse;
};

int store_open_memory(struct loop *l, const struct store_config *cfg, struct store **ret,
                      struct err *e);
int store_open_sqlite(struct loop *l, const struct store_config *cfg, struct store **ret,
                      struct err *e);
int store_open_etcd(struct loop *l, const struct store_config *cfg, struct store **ret,
                    struct err *e);

/* Initializes the base of a backend's struct. */
void store_init(struct store *s, const struct store_ops *ops, struct loop *l);

/* Moves all members of 'from' to 'to', which is initialized here. */
static inline void store_list_take(struct list *to, struct list *from)
{
    list_init(to);
    if (!list_is_empty(from)) {
        list_insert_before(from, to);
        list_remove(from);
    }
}

/* Whether a key of mod revision 'current' (0: absent) may be changed: 0, -EEXIST,
 * -ENOENT, -ESTALE. */
int store_check(const struct store_write *w, uint64_t current);
/* The same for a claim: 0, -EADDRINUSE, -ESTALE. */
int store_check_claim(const struct store_write_claim *claim, uint64_t current);
/* Reports the changes that 'w' made. */
void store_write_report(struct store *s, const struct store_write *w);
/* Calls back and frees 'w'.  Never from within store_put or store_delete. */
void store_write_finish(struct store_write *w, int error, uint64_t revision);
/* Fails every write of the list. */
void store_writes_fail(struct list *writes, int error);

/* The item of 'key' among items in key order; NULL: none. */
const struct store_item *store_item_find(const struct store_item *items, size_t n, const char *key);

/* Reports to the watcher.  A snapshot or resuming makes the store available, a loss
 * makes it unavailable. */
void store_report_event(struct store *s, const struct store_event *ev);
void store_report_history(struct store *s, const struct store_event *ev);
/* Values may be NULL afterwards. */
void store_report_snapshot(struct store *s, struct store_item *items, size_t n, uint64_t revision);
void store_report_lost(struct store *s, const char *reason);
void store_report_resumed(struct store *s);
