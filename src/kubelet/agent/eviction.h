/* SPDX-License-Identifier: Apache-2.0 */
/* Evicts pods when the node is short of memory, disk or processes, and those that use more local
 * storage than they may; what decides is pod/evict.h.
 *
 * The signals are read every 10 s, under pressure every second.  The pods' use is measured only when one of them has to go, or for
 * pods with limits of storage, and the next walk waits ten times as long as the last one took.  One
 * pod is evicted at a time: the next one when it has ended, or after 30 s.  Everything runs on the
 * loop's thread. */
#pragma once

#include "kubelet/agent/node_status.h"
#include "kubelet/pods/workers.h"

struct eviction;

struct eviction_config {
    struct loop *loop;
    struct workers *pods;
    const struct kubelet_config *cfg;
    const struct pod_node *node;
    struct node_status *status;
    /* The directory of the runtime's images; NULL: not known. */
    const char *(*image_dir)(void *ctx);
    /* Asks to free disk for the signal without ending a pod.  False: it cannot help, or was done lately
     * and did not. */
    bool (*reclaim)(void *ctx, enum evict_signal s);
    void *ctx;
};
struct eviction *eviction_new(const struct eviction_config *c);
struct eviction *eviction_free(struct eviction *v);
/* Whether a condition of pressure holds. */
bool eviction_has(const struct eviction *v, enum evict_condition c);
