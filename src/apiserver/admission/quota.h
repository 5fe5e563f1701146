/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas: the plug-ins ResourceQuota and ClusterResourceQuota, and the counters that they decide
 * by.
 *
 * The counters are in memory.  They are the sums over the objects in the watch cache, which each
 * change of the cache moves, and beside them what the writes under way will add.  A write is
 * decided and its amounts are reserved in one step, after all other checks; the reservation ends
 * when the cache has the change, or when the write has failed.  So nothing is lost by a refused,
 * failed or conflicting write, a dry run, or a restart, and a deletion frees its amounts at once.
 * A write for which there is room, but for what other writes under way have reserved, waits until
 * one of them is over: what is refused would be refused without them, too.
 *
 * A quota is counted when it is first needed after a start, from the objects in the cache, before
 * the write that needs it is decided.  Where several servers share a store, each of them decides by
 * counters of its own.  There a write that adds to a quota also replaces the quota's fence, a key
 * in the store, at the revision that this server has seen: if another server has admitted a write
 * in between, the transaction fails, and the write is decided again from the newer counters.
 *
 * The status of each quota is written at most every 100 ms, by each server whose counters differ
 * from it; docs/quotas.md has the figures.
 *
 * Internal to src/apiserver; everything runs on the loop's thread. */
#pragma once

#include "apiserver/request/request.h"

struct quotas;
struct quotas *quotas_new(struct apiserver *a);
struct quotas *quotas_free(struct quotas *s);

struct quota;
struct quota_charge;

/* The part of a write that quotas need; zeroed before use. */
struct quota_write {
    struct list flight; /* In the list of writes that were sent, when 'sent'. */
    struct list turn;   /* In the queue of a fence, when 'waits'. */
    bool sent, waits;
    const struct cache_kind *ck;
    const char *key;           /* Borrowed from the write. */
    const struct blob *value;  /* The new value, borrowed; NULL: a deletion. */
    const struct object *base; /* The object that it replaces, borrowed; NULL: creation. */
    struct quota_charge *charges;
    size_t n_charges, cap_charges;
    struct store_claim *fences; /* Keys and values are owned. */
    size_t n_fences, cap_fences;
    struct quota *awaited;    /* The quota that it waits for, a reference. */
    void (*again)(void *ctx); /* Makes the attempt again, while it waits. */
    void *ctx;
};

/* The write of 'obj' in place of 'old' (NULL: created), which has passed all other checks. */
struct quota_attempt {
    struct request *q;
    const struct cache_kind *ck;
    const char *key; /* Key of the object within its kind. */
    const struct json *obj, *old;
    /* Makes the attempt again, when another write of this server is over. */
    void (*again)(void *ctx);
    void *ctx;
};
/* Reserves what the write adds to the quotas of its namespace, after discarding what 'w' had
 * reserved before.  -EACCES: a quota would be exceeded, nothing is reserved, and the outcome is
 * filled.  -EINPROGRESS: the write has to wait for another one, and the outcome is taken over. */
int quota_settle(struct quotas *s, struct quota_write *w, const struct quota_attempt *attempt,
                 struct outcome *outcome);
/* If the object to be stored, of kind 'ck', is a quota, sets its status: clients see the usage in
 * the answer, and what they write into the status counts for nothing. */
void quota_fill_status(struct quotas *s, const struct cache_kind *ck, const char *key,
                       struct json *obj);
/* The write was sent to the store; 'value' NULL: a deletion. */
void quota_sent(struct quotas *s, struct quota_write *w, const struct cache_kind *ck,
                const char *key, const struct blob *value, const struct object *base);
/* Discards the reservation: the write is over, or is attempted again. */
void quota_drop(struct quotas *s, struct quota_write *w);

/* The names of the ClusterResourceQuotas that select the namespace, in order; the array is owned,
 * its texts are borrowed until the cache changes; it ends with NULL. */
const char **quotas_of_namespace(const struct quotas *s, const char *namespace);
