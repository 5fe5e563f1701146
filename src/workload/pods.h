/* SPDX-License-Identifier: Apache-2.0 */
/* Pods and other children of workloads: which belong to an owner, what state they are in, which go
 * first, and new ones from a template.  The rules are those of Kubernetes' controllers.
 *
 * Objects belong to the caller.  Pure. */
#pragma once

#include "workload/plan.h"

/* A candidate: an object that names the owner as its controller, or that has no controller. */
struct workload_child {
    const struct json *obj;
    /* It is being deleted, or its deletion was sent and is not visible in 'obj' yet. */
    bool going;
};

/* Keeps in 'list' the children of the owner and returns their number; the order stays.  A child
 * that the selector no longer matches is released, one without a controller that it matches is
 * adopted: both are added to the plan.  'selector' is a LabelSelector; NULL: no labels are asked
 * for, and nothing is adopted or released. */
size_t workload_claim(struct workload_plan *p, const struct workload_kind *owner_kind,
                      const struct json *owner, const struct json *selector,
                      const struct workload_kind *kind, struct workload_child *list, size_t n);
/* The ownerReference of what the owner controls; owned. */
struct json *workload_owner_ref(const struct workload_kind *owner_kind, const struct json *owner);

/* ---- pods ---- */

bool workload_pod_is_active(
    const struct workload_child *pod); /* Neither ended nor on its way out. */
bool workload_pod_has_phase(const struct json *pod, const char *phase);
bool workload_pod_is_ready(const struct json *pod);
/* Whether the pod has been ready for 'min_ready_s' seconds.  If only time is lacking, '*ret_at_ms'
 * (may be NULL) is the time at which it will have been. */
bool workload_pod_is_available(const struct json *pod, int64_t min_ready_s, int64_t now_ms,
                               int64_t *ret_at_ms);
/* The restarts of its containers, the largest number of one container. */
int64_t workload_pod_restarts(const struct json *pod);
const char *workload_pod_node(const struct json *pod); /* "" while it has none. */

/* Sorts the pods so that those to delete first come first (ActivePodsWithRanks of Kubernetes):
 * without a node, pending, not ready, of low deletion cost, with many of 'related' on their node,
 * ready for a short time, often restarted, young.  'related': the active pods of all owners that
 * share a controller with this one, these pods included. */
void workload_pod_sort_victims(struct workload_child *pods, size_t n,
                               const struct json *const *related, size_t n_related, int64_t now_ms);

/* A new pod of the owner, from its template; owned.  'name' NULL: the server makes the name. */
struct json *workload_pod_from_template(const struct workload_kind *owner_kind,
                                        const struct json *owner, const struct json *template,
                                        const char *name);
/* Whether the pod has all labels of the template. */
bool workload_pod_is_fully_labeled(const struct json *pod, const struct json *template);
