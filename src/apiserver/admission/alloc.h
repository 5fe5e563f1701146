/* SPDX-License-Identifier: Apache-2.0 */
/* What a Service is given: its cluster address, node ports and ingress address.
 *
 * Each is a key of its own in the store, a claim, which names the service that has it.  Claims are
 * made and removed in the transaction that writes or deletes the service: nobody gets what is
 * another's, whichever server writes, and nothing is left behind or lost whatever fails in
 * between.  What is free is told by the claims of the cache; another server's newer claim makes the
 * transaction fail, and the write is attempted again. Claims that do not agree with the services
 * (written by others than this server) are put right by and by. Internal to src/apiserver;
 * everything runs on the loop's thread. */
#pragma once

#include "apiserver/admission/alloc_claims.h"
#include "apiserver/request/request.h"
#include "sdn/service_ranges.h"

struct alloc;

/* 'cfg' NULL: services are given nothing. */
struct alloc *alloc_new(struct apiserver *a, const struct service_ranges *cfg);
struct alloc *alloc_free(struct alloc *l);

/* Whether 'ip' is a pod's, a service's or a node's. */
bool alloc_is_inside(const struct alloc *l, uint32_t ip);
/* Takes the state of the cache, which was loaded anew. */
void alloc_reload(struct alloc *l);
/* The store has a key that belongs to no kind, or ('there' false) has it no more; 'l' may be
 * NULL. */
void alloc_changed(struct alloc *l, const char *key, bool there);

/* What one write of a Service claims and gives up; zeroed at first.  The allocation follows it
 * until alloc_drop. */
struct alloc_write {
    struct list node;
    struct store_claim *claims; /* Keys and values are owned. */
    size_t n_claims, cap_claims;
};

/* Whether objects of the kind are given something; 'l' may be NULL. */
bool alloc_concerns(const struct alloc *l, const struct cache_kind *ck);
/* Gives 'obj' with the key 'key', if it is a Service, what it needs and does not have, and notes in
 * 'w' the claims that the write makes and gives up.  'old' NULL: created.  -EINVAL, -ENOSPC: the
 * outcome is filled. */
int alloc_settle(struct request *q, struct alloc_write *w, const char *key, struct json *obj,
                 const struct json *old, struct outcome *outcome);
/* Notes that the deletion of 'base', of kind 'ck', gives up all that it has. */
void alloc_settle_deletion(struct alloc *l, struct alloc_write *w, const struct cache_kind *ck,
                           const struct object *base);
/* Forgets what was noted: the write is over, or attempted anew. */
void alloc_drop(struct alloc *l, struct alloc_write *w);
