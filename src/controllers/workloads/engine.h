/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out the plans of workloads (workload/plan.h): adoptions after a live read of the owner,
 * creations that begin slowly, deletions with the uid as precondition, then the status, and Events.
 *
 * What was written is never taken for absent.  The engine knows, for each key, the resourceVersion
 * of the last write of each kind; no further plan is made for the key until the copies of these
 * kinds have reached it.  A pod whose deletion was sent counts as going until the copy says so.
 * Neither depends on a time-out: if an event is late, the key waits; a new leader begins with lists
 * that were made after its election.
 *
 * The engine belongs to a controller's state.  One thread. */
#pragma once

#include "controller/controller.h"
#include "controllers/workloads/owned.h"

/* The copy of a kind that plans are made from. */
struct engine_copy {
    const struct workload_kind *kind;
    struct informer *const *informer;
};

#define ENGINE_COPIES 4
struct engine {
    struct controller_env env;
    const struct workload_kind *kind; /* That plans are made for. */
    struct engine_copy copies[ENGINE_COPIES];
    size_t n_copies;
    struct smap behind;  /* Key to 'struct behind': writes that the copies may lack. */
    struct smap refused; /* Keys with a write that a quota refused. */
    struct smap leaving; /* uids of objects whose deletion was sent, and is not seen yet. */
    struct list runs;
};

/* 'kind': that of the keys.  Copies are added by engine_watch. */
void engine_init(struct engine *g, const struct controller_env *env,
                 const struct workload_kind *kind);
/* Cancels what is under way. */
void engine_done(struct engine *g);
/* Plans depend on the objects of this informer, which is set later. */
void engine_watch(struct engine *g, const struct workload_kind *kind,
                  struct informer *const *informer);
/* Whether the copies have all that was written for the key of 'w'.  Otherwise the work is ended,
 * and begins again when they have it. */
bool engine_is_current(struct engine *g, struct work *w);
/* Marks the children whose deletion was sent as going. */
void engine_mark_leaving(const struct engine *g, struct owned_list *children);
/* The object was deleted, or its copy says that it is being deleted. */
void engine_is_gone(struct engine *g, const struct json *obj);
/* Carries the plan out and ends the work.  The plan is taken over; 'owner' is what it was made
 * from. */
void engine_run(struct engine *g, struct work *w, const struct json *owner,
                struct workload_plan *plan);
/* The owner with the key of the queue was deleted: no change of a quota concerns it any more. */
void engine_forget(struct engine *g, const char *key);
/* A ResourceQuota or ClusterResourceQuota has changed, or was deleted ('now' NULL): keys with a
 * write that a quota refused are reconciled at once when it gives room. */
void engine_quota_changed(struct engine *g, const struct json *old, const struct json *now);
