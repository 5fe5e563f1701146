/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation for namespaces: a block of user IDs, groups and an SELinux level (pod/scc_block.h), in
 * the request that creates the namespace, so that a pod can follow at once.
 *
 * The annotations of the namespaces are the record.  In addition each new block is claimed by a key
 * of its own in the store, in the transaction that writes the namespace, so that servers that
 * choose at the same time cannot choose the same block; the claim is removed with the namespace.
 * Annotations that an administrator sets are kept, also when two namespaces then share a block.
 * After a start, namespaces without annotations get them, and claims without a namespace are
 * removed.
 *
 * Internal to src/apiserver; everything runs on the loop's thread. */
#pragma once

#include "apiserver/request/request.h"
#include "pod/scc_block.h"

struct uids;
/* NULL when 'a' has no authorization: then no pod is judged, and nothing needs the values. */
struct uids *uids_new(struct apiserver *a, const struct scc_blocks *blocks);
struct uids *uids_free(struct uids *u);

/* The claims that one write of a namespace makes and gives up; zeroed before use. */
struct uids_write {
    struct store_claim claims[2]; /* Keys and values are owned. */
    size_t n_claims;
    bool reserves;
    uint32_t block; /* The one that is reserved until uids_drop. */
};

/* Whether objects of the kind get values; 'u' may be NULL. */
bool uids_concerns(const struct uids *u, const struct cache_kind *ck);
/* If 'obj' is a namespace, sets the annotations that it lacks, and records in 'w' the claims that
 * the write makes and gives up.  'old' NULL: created.  'attempts': how often the write was tried;
 * another server may have claimed as many blocks that are free here.  -EACCES: the user sets
 * annotations and may not; -ENOSPC: there is no block left; the outcome is filled. */
int uids_settle(struct request *q, struct uids_write *w, unsigned attempts, struct json *obj,
                const struct json *old, struct outcome *outcome);
/* Records that the deletion of 'base', of kind 'ck', gives up its claim. */
void uids_settle_deletion(struct uids *u, struct uids_write *w, const struct cache_kind *ck,
                          const struct object *base);
/* Discards the record: the write is over, or is attempted again. */
void uids_drop(struct uids *u, struct uids_write *w);
