/* SPDX-License-Identifier: Apache-2.0 */
/* A scheduler's filters written as plainly as possible, from the rules of Kubernetes, over lists of
 * objects: what src/sched has to agree with.  It shares no code with src/sched. */
#pragma once

#include "wire/json.h"

/* The objects of a cluster; borrowed lists. */
struct naive_cluster {
    struct json **nodes, **pods; /* Pods have spec.nodeName. */
    size_t n_nodes, n_pods;
    struct json **namespaces;
    size_t n_namespaces;
};

/* Whether 'pod' may go to the node. */
bool naive_fits(const struct naive_cluster *c, const struct json *pod, const struct json *node);
