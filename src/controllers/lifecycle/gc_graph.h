/* SPDX-License-Identifier: Apache-2.0 */
/* Who owns whom: what the garbage collector remembers of all objects.  Pure.
 *
 * Of an object that neither has owners nor is waiting for its dependents there is only its uid, so that the
 * graph of a large cluster stays small.  A node belongs to the graph and lives until it is removed. */
#pragma once

#include "base/map.h"
#include "wire/json.h"

#define GC_FOREGROUND "foregroundDeletion"
#define GC_ORPHAN "orphan"

/* One of the ownerReferences of 'dependent'. */
struct gc_ref {
    struct hmap_node node; /* Of the graph, by the owner's uid. */
    struct gc_node *dependent;
    char *api_version, *kind, *name, *uid;
    bool blocks; /* blockOwnerDeletion */
};

/* Of an object of which more than the uid matters. */
struct gc_details {
    char *ns, *name; /* 'ns' NULL: none. */
    struct gc_ref *refs;
    size_t n_refs;
    bool deleting;   /* Has a deletionTimestamp. */
    bool foreground; /* Is deleted when its dependents are gone, */
    bool orphan;     /* or have been left alone. */
};

struct gc_node {
    struct hmap_node node;
    void *kind;              /* The caller's; whom the object was told by. */
    uint32_t generation;     /* The caller's; 0 for a new node. */
    uint32_t place;          /* gc_place of its namespace and name. */
    struct gc_details *more; /* NULL: nothing else matters. */
    char uid[];
};

struct gc_graph {
    struct hmap nodes; /* By uid. */
    struct hmap refs;
};

void gc_graph_init(struct gc_graph *g);
void gc_graph_done(struct gc_graph *g);
/* A number that tells places apart; 'ns' NULL or "": none. */
uint32_t gc_place(const char *ns, const char *name);
struct gc_node *gc_graph_find(const struct gc_graph *g, const char *uid);
/* Brings what the metadata of 'obj' says into the graph; NULL: it has no uid. */
struct gc_node *gc_graph_set(struct gc_graph *g, void *kind, const struct json *obj);
void gc_graph_remove(struct gc_graph *g, struct gc_node *n);
/* Calls 'fn' for each reference to 'uid'; 'fn' must not change the graph. */
void gc_graph_dependents(const struct gc_graph *g, const char *uid,
                         void (*fn)(void *ctx, const struct gc_ref *ref), void *ctx);

/* Whether 'owner' has the name that 'ref' says, in the dependent's namespace or in none: an object cannot be owned by
 * another namespace's. */
bool gc_ref_is_of(const struct gc_ref *ref, const struct gc_node *owner);
/* Whether another dependent than 'except' (may be NULL) blocks the deletion of 'uid'. */
bool gc_graph_is_blocked(const struct gc_graph *g, const char *uid, const struct gc_node *except);

/* ---- the decision about one object ---- */

enum gc_owner { GC_OWNER_SOLID, GC_OWNER_ABSENT, GC_OWNER_WAITING };
/* What 'owner', the live object that a reference with 'uid' names (NULL: there is none), is for a dependent. */
enum gc_owner gc_owner_state(const struct json *owner, const char *uid);

bool gc_has_finalizer(const struct json *obj, const char *name);
/* Merge patch that takes the finalizer away from 'obj' as it is now. */
struct json *gc_patch_finalizer(const struct json *obj, const char *name);
/* Merge patch that takes the references to the owners 'uids' away from 'obj' as it is now; and one that makes
 * no reference block its owner's deletion any more. */
struct json *gc_patch_owners(const struct json *obj, const char *const *uids, size_t n);
struct json *gc_patch_unblock(const struct json *obj);
/* The options of the deletion of 'obj' as it is now; 'policy' NULL: as its finalizers say. */
struct json *gc_delete_options(const struct json *obj, const char *policy);
