/* SPDX-License-Identifier: Apache-2.0 */
/* The children of owners: the objects of one kind (Pods) by the uid of the object of another kind
 * that controls them (a ReplicaSet), and by namespace those that nothing controls.
 *
 * The index has the keys of the children only, in the order of nothing; the objects are those of
 * the informer.  So an owner's children are found without a look at all objects of its namespace.
 * One thread. */
#pragma once

#include "base/map.h"
#include "client/client.h"
#include "workload/pods.h"

struct owned {
    /* Children of other owners are not in the index; NULL: it is by namespace alone. */
    const struct workload_kind *owner;
    struct hmap children;
};

void owned_init(struct owned *o, const struct workload_kind *owner);
void owned_done(struct owned *o);
/* The object has changed; 'old' NULL: it is new; 'obj' NULL: it is gone. */
void owned_change(struct owned *o, const char *key, const struct json *old, const struct json *obj);
/* Children found: the array is the caller's, to be freed; the objects are the informer's. */
struct owned_list {
    struct workload_child *list;
    size_t n, cap;
};
/* Appends to 'ret' the children of the owner; with 'orphans' also the objects of its namespace that
 * nothing controls.  'going' is left false but for objects in deletion. */
void owned_find(const struct owned *o, const struct informer *informer, const struct json *owner,
                bool orphans, struct owned_list *ret);
/* Appends the objects of the namespace that nothing controls, or all of an index by namespace. */
void owned_find_in(const struct owned *o, const struct informer *informer, const char *ns,
                   struct owned_list *ret);
/* The key ("namespace/name") of the owner that the child names, if it is of the index's kind;
 * owned; NULL: it names none. */
char *owned_owner_key(const struct owned *o, const struct json *child);
