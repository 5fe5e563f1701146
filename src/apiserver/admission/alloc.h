/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation for Services: cluster address, node ports and ingress address.
 *
 * Each address or port is claimed by a key of its own in the store, whose value names the
 * service.  Claims are made and removed in the transaction that writes or deletes the service: no
 * two services get the same number, whichever server writes, and no claim is left over or lost
 * after a failure.  A number is free if the cache has no claim of it; a newer claim of another
 * server makes the transaction fail, and the write is attempted again.  Claims that do not agree
 * with the services (written by other programs) are repaired in the background. Internal to
 * src/apiserver; everything runs on the loop's thread. */
#pragma once

#include "apiserver/admission/alloc_claims.h"
#include "apiserver/request/request.h"
#include "sdn/service_ranges.h"

struct alloc;

/* 'cfg' NULL: services get no addresses or ports. */
struct alloc *alloc_new(struct apiserver *a, const struct service_ranges *cfg);
struct alloc *alloc_free(struct alloc *l);

/* Whether 'ip' belongs to the pod network, the service network or a node. */
bool alloc_is_inside(const struct alloc *l, uint32_t ip);
/* Rebuilds its state from the cache, which was loaded anew. */
void alloc_reload(struct alloc *l);
/* A key that belongs to no kind was written to the store, or ('there'
 * false) deleted; 'l' may be NULL. */
void alloc_changed(struct alloc *l, const char *key, bool there);

/* The claims that one write of a Service makes and gives up; zeroed before use.  The allocation
 * keeps the numbers reserved until alloc_drop. */
struct alloc_write {
    struct list node;
    struct store_claim *claims; /* Keys and values are owned. */
    size_t n_claims, cap_claims;
};

/* Whether objects of the kind get addresses or ports; 'l' may be NULL. */
bool alloc_concerns(const struct alloc *l, const struct cache_kind *ck);
/* If 'obj', with the key 'key', is a Service, allocates the addresses and ports that it needs and
 * lacks, and records in 'w' the claims that the write makes and gives up.  'old' NULL: created.
 * -EINVAL, -ENOSPC: the outcome is filled. */
int alloc_settle(struct request *q, struct alloc_write *w, const char *key, struct json *obj,
                 const struct json *old, struct outcome *outcome);
/* Records that the deletion of 'base', of kind 'ck', gives up all its claims. */
void alloc_settle_deletion(struct alloc *l, struct alloc_write *w, const struct cache_kind *ck,
                           const struct object *base);
/* Discards the record: the write is over, or is attempted again. */
void alloc_drop(struct alloc *l, struct alloc_write *w);
