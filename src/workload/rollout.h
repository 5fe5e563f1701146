/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of a Deployment: how many pods its ReplicaSets have next.
 *
 * It is that of Kubernetes' deployment controller, on numbers alone: bounds during a rolling
 * update, removal of unhealthy old pods first, and a change of the desired number that is spread
 * over the sets in proportion.  Pure. */
#pragma once

#include "wire/json.h"

/* A ReplicaSet of the Deployment. */
struct rollout_set {
    int64_t replicas;  /* spec.replicas; the functions below change it. */
    int64_t available; /* status.availableReplicas */
    /* The bound of pods when it was last scaled (annotation max-replicas); 0: none. */
    int64_t max_replicas;
};

struct rollout {
    int64_t desired;              /* Of the Deployment. */
    int64_t surge, unavailable;   /* Resolved bounds; both 0 with the strategy Recreate. */
    int64_t status_replicas;      /* status.replicas of the Deployment. */
    struct rollout_set *new_set;  /* The set of the present template; NULL: none. */
    struct rollout_set **old_set; /* The others, the oldest first. */
    size_t n_old;
};

/* A number, or a percentage of 'total'.  Anything else is 0. */
int64_t rollout_share(const struct json *share, int64_t total, bool round_up);
/* maxSurge, rounded up, and maxUnavailable, rounded down and at most 'desired'; if both are 0, 1
 * pod may be unavailable: else nothing could ever change. */
void rollout_bounds(const struct json *surge, const struct json *unavailable, int64_t desired,
                    int64_t *ret_surge, int64_t *ret_unavailable);

/* The size of the new set in a rolling update.  'present': its size now. */
int64_t rollout_new_size(const struct rollout *r, int64_t present);
/* Makes old sets smaller in a rolling update, as the bounds allow: unhealthy pods first.  Returns
 * whether it changed any. */
bool rollout_shrink_old(struct rollout *r);
/* Whether there is only one set that matters: then it gets the whole desired number.  '*ret' NULL:
 * there is no set. */
bool rollout_single(const struct rollout *r, struct rollout_set **ret);
/* Spreads a change of the desired number over all sets that have pods, in proportion to their
 * size; sets of equal size in the order of age. */
void rollout_spread(struct rollout *r);
