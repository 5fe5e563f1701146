/* SPDX-License-Identifier: Apache-2.0 */
/* Which PersistentVolume a claim gets.
 *
 * The order is that of Kubernetes' binder and of OpenShift 3's documents: a volume reserved for the
 * claim comes first.  Else volumes are grouped by their exact set of access modes; sets that
 * contain all modes of the claim are tried, those with the fewest modes first; within a group the
 * smallest volume that is large enough is taken.  Among equal ones the oldest, then the first by
 * name: the same objects always give the same volume.
 *
 * Volumes and claims stay the caller's.  Pure. */
#pragma once

#include "base/str.h"
#include "storage/fields.h"

/* Why a volume does not suit a claim; the order is that in which they are looked at. */
enum storage_misfit {
    STORAGE_FITS,
    STORAGE_TAKEN,    /* It is bound to, reserved for or released by another claim. */
    STORAGE_LEAVING,  /* It is being deleted, or has failed. */
    STORAGE_CLASS,    /* It has another class. */
    STORAGE_MODE,     /* Filesystem and Block differ. */
    STORAGE_ACCESS,   /* It lacks an access mode. */
    STORAGE_SELECTOR, /* Its labels do not match the claim's selector. */
    STORAGE_NODE,     /* It cannot be reached from the node. */
    STORAGE_SMALL,    /* It is too small. */
    STORAGE_MISFITS
};

/* A node for which a volume is looked for. */
struct storage_node {
    const char *name;
    const struct json *labels;
};

/* What the search excludes or prefers beside the claim's own fields. */
struct storage_search {
    const struct storage_node *node; /* NULL: any node. */
    bool
        reserved_only; /* Only volumes that are reserved for the claim; see WaitForFirstConsumer. */
    /* Whether another claim is about to get the volume; NULL: no. */
    bool (*is_taken)(void *ctx, const struct json *volume);
    void *ctx;
};

/* How many volumes do not suit, by reason. */
struct storage_misses {
    size_t n[STORAGE_MISFITS];
};

/* Whether the volume suits the claim, which is not bound. */
enum storage_misfit storage_check(const struct json *claim, const struct json *volume,
                                  const struct storage_node *node);
/* Whether a volume that the claim names, or that is reserved for it, can be bound to it: class (if
 * 'named'), mode, access modes (if 'named') and size. */
enum storage_misfit storage_check_pair(const struct json *claim, const struct json *volume,
                                       bool named);
/* The best of 'n' volumes for the claim; NULL: none.  'ret_misses' may be NULL. */
const struct json *storage_match(const struct json *claim, const struct json *const *volumes,
                                 size_t n, const struct storage_search *search,
                                 struct storage_misses *ret_misses);
/* Appends what keeps the claim from its nearest volumes, such as "2 volumes are too small, 1 has
 * another class"; nothing when there is no volume. */
void storage_misses_write(const struct storage_misses *m, struct strbuf *out);
