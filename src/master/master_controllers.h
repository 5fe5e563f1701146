/* SPDX-License-Identifier: Apache-2.0 */
/* The controlling part of a master: the controllers, while this process is their leader.
 *
 * They work through the API alone.  In the process of the API server they come in over its loopback listener; else a
 * kubeconfig says where the API is.  Where other processes may run controllers for the same registry, one leads by the
 * Lease kube-system/tenet-controllers, and each of its writes carries the header "Tenet-Lease", so that nothing of a
 * former leader counts.  Everything runs on the loop's thread. */
#pragma once

#include "controllers/controllers.h"

struct master_controllers_config {
    /* 'started', 'failed' and 'ctx' are set here, whatever they say. */
    struct controllers_config controllers;
    bool elects; /* Other processes may lead. */
    unsigned lease_ttl_s;
    /* A new client of the API; called for the election, and for each term. */
    int (*connect)(void *ctx, struct api_client **ret, struct err *e);
    /* Called once: what a cluster begins with is there, made by our controllers or by those of another leader. */
    void (*ready)(void *ctx);
    /* The controllers cannot go on: the process has to end. */
    void (*failed)(void *ctx, const struct err *e);
    void *ctx;
};

struct master_controllers;
/* 'cfg' is copied.  The error is that of 'connect'. */
int master_controllers_new(struct loop *l, const struct master_controllers_config *cfg,
                           struct master_controllers **ret, struct err *e);
/* Ends the controllers, gives the lease up so that another process leads at once, and calls 'done', when that is done
 * or has failed; never from within the call. */
void master_controllers_stop(struct master_controllers *m, loop_fn *done, void *ctx);
/* Nothing while another process leads. */
void master_controllers_write_metrics(const struct master_controllers *m, struct strbuf *out);
struct master_controllers *master_controllers_free(struct master_controllers *m);
