/* SPDX-License-Identifier: Apache-2.0 */
/* Which filters and scores a scheduler uses: Kubernetes' defaults, or the policy file of OpenShift
 * 3 (kind Policy: predicates and priorities with weights and arguments), which replaces the
 * defaults as a whole.
 *
 * Names of predicates and priorities are mapped to the filters and scores of today.  A name that is
 * known but has nothing to check here, such as the limits of cloud disks, is accepted; an unknown
 * name is refused.  A policy owns its texts.  Pure. */
#pragma once

#include "base/err.h"
#include "wire/json.h"

/* Filters that a policy may leave out, as bits.  That nodes run containers, are schedulable and
 * keep taints NoExecute is never left out. */
enum {
    SCHED_FILTER_NODE_NAME = 1 << 0,
    SCHED_FILTER_TAINTS = 1 << 1,
    SCHED_FILTER_NODE_AFFINITY = 1 << 2,
    SCHED_FILTER_PORTS = 1 << 3,
    SCHED_FILTER_RESOURCES = 1 << 4,
    SCHED_FILTER_VOLUMES = 1 << 5,
    SCHED_FILTER_SPREAD = 1 << 6,
    SCHED_FILTER_POD_AFFINITY = 1 << 7,
    SCHED_FILTERS_ALL = (1 << 8) - 1,
};

enum sched_score {
    SCORE_TAINTS,
    SCORE_NODE_AFFINITY,
    SCORE_SPREAD,
    SCORE_POD_AFFINITY,
    SCORE_LEAST_ALLOCATED,
    SCORE_MOST_ALLOCATED,
    SCORE_BALANCED,
    SCORE_IMAGES,
    SCORES
};

/* serviceAntiAffinity (pods of a service are spread over a label's values) or labelPreference. */
struct sched_label_score {
    char *label;
    int64_t weight;
    bool spread;   /* serviceAntiAffinity. */
    bool presence; /* labelPreference: nodes with the label are better. */
};

/* labelsPresence: nodes need to have, or not to have, the label. */
struct sched_label_filter {
    char *label;
    bool presence;
};

struct sched_policy {
    unsigned filters;
    int64_t weights[SCORES];
    struct sched_label_score *label_scores;
    size_t n_label_scores;
    struct sched_label_filter *label_filters;
    size_t n_label_filters;
    /* serviceAffinity: the pods of a service go to nodes with one value of each of these labels. */
    char **service_affinity;
    size_t n_service_affinity;
};

/* The defaults of Kubernetes. */
void sched_policy_default(struct sched_policy *ret);
/* Parses a policy file, JSON.  'ignored' (may be NULL) gets the names that have nothing to check
 * here, with blanks between. */
int sched_policy_parse(const char *text, size_t size, struct sched_policy *ret,
                       struct strbuf *ignored, struct err *e);
void sched_policy_copy(const struct sched_policy *p, struct sched_policy *ret);
void sched_policy_done(struct sched_policy *p);
#define CLEANUP_SCHED_POLICY __attribute__((cleanup(sched_policy_done)))
