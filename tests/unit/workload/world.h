/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster in memory and in virtual time, for histories of workloads: it keeps objects, carries
 * plans out as the engine does, with random failures, and plays kubelets that start and end pods.
 *
 * The copies that plans are made from are never late here; what the engine does about late copies
 * has tests of its own.  Random numbers come from rng.h. */
#pragma once

#include "base/map.h"
#include "rng.h"
#include "workload/pods.h"

struct world {
    struct smap objects; /* "PLURAL/NAME" to the object, in the order of creation; owned. */
    int64_t now_ms;
    uint64_t version, uids;
    unsigned failing;        /* Percentage of writes that fail. */
    const char *refusal;     /* Not NULL: pods are not created, and why. */
    size_t created, deleted; /* Pods, by plans. */
};

void world_init(struct world *w);
void world_done(struct world *w);
/* Adds an object, which is taken over; its uid, generation and times are filled. */
struct json *world_add(struct world *w, const struct workload_kind *kind, struct json *obj);
struct json *world_get(const struct world *w, const struct workload_kind *kind, const char *name);
void world_remove(struct world *w, const struct workload_kind *kind, const char *name);
/* The spec was changed in place: another generation. */
void world_touch(struct world *w, struct json *obj);
/* Objects of the kind that the owner controls or that nothing controls, in a new array. */
size_t world_children(const struct world *w, const struct workload_kind *kind,
                      const struct json *owner, struct workload_child **ret);
/* The number of objects of the kind that 'counts' (NULL: all) accepts. */
size_t world_count(const struct world *w, const struct workload_kind *kind,
                   bool (*counts)(const struct json *obj));
/* Carries out the plan for 'owner', an object of the world, and releases it. */
void world_run(struct world *w, const struct workload_kind *kind, struct json *owner,
               struct workload_plan *plan);
/* Marks the pod as being deleted; the kubelets remove it later. */
void world_end_pod(struct world *w, struct json *pod);
void world_set_ready(struct world *w, struct json *pod, bool ready);
void world_set_phase(struct world *w, struct json *pod, const char *phase);
/* The kubelets act on some pods; time passes.  'broken' NULL or the image that never is ready. */
void world_kubelets(struct world *w, const char *broken);
/* All pods become ready at once, and those in deletion are removed. */
void world_settle_pods(struct world *w, const char *broken);
/* Fails the test unless each object has at most one controller. */
void world_check_controllers(const struct world *w);
