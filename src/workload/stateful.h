/* SPDX-License-Identifier: Apache-2.0 */
/* StatefulSet: pods with numbers, names and claims that stay.
 *
 * The order of creation, deletion and replacement is that of Kubernetes' statefulset controller,
 * with one difference: a pod of an outdated template that never came up is replaced at once, where
 * the original waits for it for ever (a broken first template could not be repaired).  Pure. */
#pragma once

#include "workload/pods.h"

/* Objects that a plan for a StatefulSet looks at; the lists are reordered. */
struct stateful_objects {
    struct workload_child *pods, *revisions;
    size_t n_pods, n_revisions;
    /* The claim of this name in the set's namespace; NULL: there is none. */
    const struct json *(*claim)(void *ctx, const char *name);
    void *ctx;
};

void stateful_plan(const struct json *set, struct stateful_objects *objects, int64_t now_ms,
                   struct workload_plan *ret);
/* The number in the name of a pod of the set; -1: the name is another. */
int64_t stateful_ordinal(const char *set, const char *pod);
