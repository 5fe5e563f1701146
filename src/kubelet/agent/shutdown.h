/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the node's pods before the host shuts down, as Kubernetes' graceful node shutdown does
 * (pkg/kubelet/nodeshutdown).
 *
 * When logind announces a shutdown, all pods but critical ones are ended, with their own grace but
 * within shutdownGracePeriod less shutdownGracePeriodCriticalPods; then critical ones, within the
 * latter.  Each ends as Failed with the reason Terminated.  When nothing of them runs and their
 * statuses are written, or the time is over, the host may go on.  Pods that come meanwhile are refused.
 *
 * Everything runs on the loop's thread. */
#pragma once

#include "kubelet/config.h"
#include "kubelet/pods/workers.h"

#define SHUTDOWN_NODE_MESSAGE "node is shutting down"

struct shutdown;

struct shutdown_config {
    struct loop *loop;
    struct workers *pods;
    const struct kubelet_config *cfg;
    /* The host has begun to shut down, or does not after all. */
    void (*changed)(void *ctx);
    void *ctx;
};
/* '*ret' is NULL when the configuration has no time for it.  -ENOENT: libsystemd is not installed. */
int shutdown_new(const struct shutdown_config *c, struct shutdown **ret, struct err *e);
struct shutdown *shutdown_free(struct shutdown *s);
/* Whether the host is shutting down; NULL: it is not known to. */
bool shutdown_is_under_way(const struct shutdown *s);
