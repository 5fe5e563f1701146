/* SPDX-License-Identifier: Apache-2.0 */
/* What the store's backends share: the base struct, the pending write, and the reports
 * to the watcher.
 *
 * A backend embeds 'struct store' first and fills in 'ops'.  The front (store.c) checks
 * arguments, refuses writes while the store is not available, and turns each accepted call
 * into a 'struct store_write', which the backend owns until it gives it to
 * store_write_finish.  All on the loop's thread. */
#pragma once

#include "base/list.h"
#include "store/store.h"

/* A value larger than this is refused with -E2BIG. */
#define STORE_MAX_VALUE ((size_t) 64 << 20)
#define STORE_DEFAULT_HISTORY 10000u
/* What all keys begin with. */
#define STORE_PREFIX "/registry/"

struct store_write_claim {
    char *key;
    struct blob *value; /* NULL: it goes. */
    /* For the backend: what came of it. */
    uint64_t revision; /* 0: nothing had to be done. */
    struct blob *prev;
};

struct store_write {
    struct list node;
    char *key;
    struct blob *value; /* NULL: deletion. */
    uint64_t expect;
    char *guard; /* NULL: none; else it must be at mod revision 'guard_at'. */
    uint64_t guard_at;
    unsigned ttl_s; /* Of a put; 0: it stays. */
    bool ending;    /* Of a put: a step of a deletion. */
    /* Changes nothing, but does all that a write does; 'key' is one that never exists. */
    bool probe;
    struct store_write_claim *claims;
    size_t n_claims;
    store_done_fn *done;
    void *ctx;
    /* For the backend: what came of it. */
    int error;
    uint64_t revision;
    struct blob *prev; /* Value that was replaced. */
};

struct store_ops {
    void (*start)(struct store *s);
    void (*write)(struct store *s, struct store_write *w); /* 'w' is the backend's now. */
    /* As store_sync, with 'w' to be finished; NULL: nobody else writes. */
    void (*sync)(struct store *s, struct store_write *w);
    /* Finishes every write that it owns and frees the store's own parts, but not 's'. */
    void (*close)(struct store *s);
};

struct store {
    const struct store_ops *ops;
    struct loop *loop;
    const struct store_watcher *watcher;
    void *watcher_ctx;
    bool available; /* The watcher has a snapshot and nothing was lost since. */
    bool closing;
    bool importing; /* As in the configuration. */
    bool blocked; /* An import into it began, or was broken off; lasts until it is opened again. */
    struct list refused; /* Calls that are settled in the front and wait for their callback. */
    struct loop_task refuse;
};

int store_open_memory(struct loop *l, const struct store_config *cfg, struct store **ret,
                      struct err *e);
int store_open_sqlite(struct loop *l, const struct store_config *cfg, struct store **ret,
                      struct err *e);
int store_open_etcd(struct loop *l, const struct store_config *cfg, struct store **ret,
                    struct err *e);

/* Sets up the base of a backend's struct. */
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
/* Reports the changes that 'w' made. */
void store_write_report(struct store *s, const struct store_write *w);
/* Calls back and frees 'w'.  Never from within store_put or store_delete. */
void store_write_finish(struct store_write *w, int error, uint64_t revision);
/* Fails every write of the list. */
void store_writes_fail(struct list *writes, int error);

/* That of 'key' among items in key order; NULL: none. */
const struct store_item *store_item_find(const struct store_item *items, size_t n, const char *key);

/* Reports to the watcher.  A snapshot or resuming makes the store available, a loss
 * makes it unavailable. */
void store_report_event(struct store *s, const struct store_event *ev);
void store_report_history(struct store *s, const struct store_event *ev);
/* Values may be NULL afterwards. */
void store_report_snapshot(struct store *s, struct store_item *items, size_t n, uint64_t revision);
void store_report_lost(struct store *s, const char *reason);
void store_report_resumed(struct store *s);
