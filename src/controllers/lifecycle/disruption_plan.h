/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a PodDisruptionBudget: how many of its pods there should be, are healthy and may be
 * evicted.  Pure.
 *
 * The rules are those of Kubernetes' disruption controller (policy/v1).  Percentages and
 * maxUnavailable count from the replicas that the pods' owners want, not from the pods that happen
 * to exist: otherwise a rollout would change what a budget allows. */
#pragma once

#include "wire/json.h"

/* A pod that was evicted and does not begin to go within this time was not disrupted. */
#define DISRUPTION_EXPIRY_MS 120000

/* Access to the owners of pods. */
struct disruption_owners {
    /* The object of this kind; NULL: there is none.  'group' and 'kind' are of a row of
     * disruption_kinds. */
    const struct json *(*find)(void *ctx, size_t kind, const char *ns, const char *name);
    /* The replicas of an object of another kind that the ownerReference 'ref' names: 0; -ENOENT:
     * there is no such object, or it has no number of replicas; -EAGAIN: not known yet. */
    int (*scale)(void *ctx, const char *ns, const struct json *ref, int64_t *ret);
    void *ctx;
};

/* The kinds that 'find' serves. */
enum {
    DISRUPTION_REPLICATION_CONTROLLER,
    DISRUPTION_REPLICA_SET,
    DISRUPTION_STATEFUL_SET,
    DISRUPTION_DEPLOYMENT,
    DISRUPTION_KINDS
};

struct disruption {
    int64_t expected, healthy, desired, allowed;
    struct json *disrupted; /* Name of a pod to the time of its eviction; owned. */
    /* The earliest end of such an entry (wall clock); 0: none. */
    int64_t recheck_ms;
    /* Pods without an owner do not count for a percentage or maxUnavailable, and there were such
     * pods. */
    bool unmanaged;
};
void disruption_done(struct disruption *d);

/* Whether the budget is for the pod.  An absent selector is for no pod. */
bool disruption_selects(const struct json *budget, const struct json *pod);
/* Computes the status of 'budget' for the pods that it selects.  -ENOENT: a pod's owner is unknown,
 * so that nothing may be evicted; -EAGAIN: of 'owners'.  'ret' is filled on success; free it with
 * disruption_done. */
int disruption_plan(const struct json *budget, const struct json *const *pods, size_t n,
                    const struct disruption_owners *owners, int64_t now_ms, struct disruption *ret,
                    struct err *e);
/* Writes the result into the status of 'budget'; returns whether that changed it. */
bool disruption_write(const struct disruption *d, struct json *budget, int64_t now_ms);
/* Writes that the status could not be computed: nothing may be evicted.  The same. */
bool disruption_write_failure(const char *why, struct json *budget, int64_t now_ms);
