/* SPDX-License-Identifier: Apache-2.0 */
/* The controlling part of a master: the controllers, while this process is their leader.
 *
 * They work through the API alone.  In the process of the API server they connect to its loopback
 * listener; otherwise a kubeconfig names the API server.  Where several processes may run
 * controllers for the same registry, one of them leads by the Lease kube-system/tenet-controllers,
 * and each of its writes carries the header "Tenet-Lease", so that late writes of a former leader
 * are refused.  Everything runs on the loop's thread. */
#pragma once

#include "controllers/controllers.h"

struct master_controllers_config {
    /* 'started', 'failed' and 'ctx' are overwritten here. */
    struct controllers_config controllers;
    bool elects; /* Other processes may lead, so there is an election. */
    unsigned lease_ttl_s;
    /* Makes a client of the API; called for the election, and for each term. */
    int (*connect)(void *ctx, struct api_client **ret, struct err *e);
    /* Called once, when the cluster's own objects exist, made by this process or by another
     * leader. */
    void (*ready)(void *ctx);
    /* The controllers cannot continue: the process has to end. */
    void (*failed)(void *ctx, const struct err *e);
    void *ctx;
};

struct master_controllers;
/* 'cfg' is copied.  The error comes from 'connect'. */
int master_controllers_new(struct loop *l, const struct master_controllers_config *cfg,
                           struct master_controllers **ret, struct err *e);
/* Ends the controllers, gives the lease up so that another process leads at once, and calls 'done'
 * when that has succeeded or failed, never before this function returns. */
void master_controllers_stop(struct master_controllers *m, loop_fn *done, void *ctx);
/* Writes nothing while another process leads. */
void master_controllers_write_metrics(const struct master_controllers *m, struct strbuf *out);
struct master_controllers *master_controllers_free(struct master_controllers *m);
