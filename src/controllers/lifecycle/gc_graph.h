/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of owners and dependents that the garbage collector keeps of all objects.  Pure.
 *
 * For an object that neither has owners nor waits for its dependents the graph has
 * only its uid, so that the graph of a large cluster stays small.  A node belongs to
 * the graph and lives until it is removed. */
#pragma once

#include "base/map.h"
#include "wire/json.h"

#define GC_FOREGROUND "foregroundDeletion"
#define GC_ORPHAN "orphan"

/* One of the ownerReferences of 'dependent'. */
struct gc_ref {
    struct hmap_node node; /* In the graph's index by the owner's uid. */
    struct gc_node *dependent;
    char *api_version, *kind, *name, *uid;
    bool blocks; /* blockOwnerDeletion */
};

/* Details of an object of which more than the uid matters. */
struct gc_details {
    char *ns, *name; /* 'ns' NULL: none. */
    struct gc_ref *refs;
    size_t n_refs;
    bool deleting; /* Has a deletionTimestamp. */
    /* It has the finalizer foregroundDeletion: it is removed after its dependents. */
    bool foreground;
    /* It has the finalizer orphan: it is removed after its dependents have lost their reference. */
    bool orphan;
};

struct gc_node {
    struct hmap_node node;
    void *kind;              /* Set by the caller: the monitor that reported the object. */
    uint32_t generation;     /* Set by the caller; 0 for a new node. */
    uint32_t place;          /* gc_place of its namespace and name. */
    struct gc_details *more; /* NULL: nothing but the uid matters. */
    char uid[];
};

struct gc_graph {
    struct hmap nodes; /* Indexed by uid. */
    struct hmap refs;
};

void gc_graph_init(struct gc_graph *g);
void gc_graph_done(struct gc_graph *g);
/* A hash of namespace and name; 'ns' NULL or "": none. */
uint32_t gc_place(const char *ns, const char *name);
struct gc_node *gc_graph_find(const struct gc_graph *g, const char *uid);
/* Updates the graph from the metadata of 'obj'; NULL: it has no uid. */
struct gc_node *gc_graph_set(struct gc_graph *g, void *kind, const struct json *obj);
void gc_graph_remove(struct gc_graph *g, struct gc_node *n);
/* Calls 'fn' for each reference to 'uid'; 'fn' must not change the graph. */
void gc_graph_dependents(const struct gc_graph *g, const char *uid,
                         void (*fn)(void *ctx, const struct gc_ref *ref), void *ctx);

/* Whether 'owner' has the name in 'ref', in the dependent's namespace or in none: an
 * object of another namespace cannot own it. */
bool gc_ref_is_of(const struct gc_ref *ref, const struct gc_node *owner);
/* Whether a dependent other than 'except' (may be NULL) blocks the deletion of 'uid'. */
bool gc_graph_is_blocked(const struct gc_graph *g, const char *uid, const struct gc_node *except);

/* ---- the decision about one object ---- */

enum gc_owner { GC_OWNER_SOLID, GC_OWNER_ABSENT, GC_OWNER_WAITING };
/* The state of 'owner', the live object that a reference with 'uid' names
 * (NULL: there is none), as seen by a dependent. */
enum gc_owner gc_owner_state(const struct json *owner, const char *uid);

bool gc_has_finalizer(const struct json *obj, const char *name);
/* A merge patch that removes the finalizer from the current state of 'obj'. */
struct json *gc_patch_finalizer(const struct json *obj, const char *name);
/* Merge patches of the current state of 'obj': one removes the references to the owners 'uids', the
 * other makes no reference block its owner's deletion any more. */
struct json *gc_patch_owners(const struct json *obj, const char *const *uids, size_t n);
struct json *gc_patch_unblock(const struct json *obj);
/* DeleteOptions for the current state of 'obj'; 'policy' NULL: the one that its finalizers
 * imply. */
struct json *gc_delete_options(const struct json *obj, const char *policy);
