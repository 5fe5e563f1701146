/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the objects that a cluster begins with: the namespace "default", and the ClusterNetwork
 * "default" as the master's configuration describes it.
 *
 * A configuration that is incompatible with the existing cluster (see
 * netconf_check_change) is refused, and nothing is written.  After an error of the
 * server the request is retried without limit.  A controller without watches: its work ends when
 * the objects exist. */
#pragma once

#include "controller/controller.h"
#include "controllers/network/netconf.h"

struct bootstrap_config {
    struct netconf network;
    bool network_only; /* Another controller creates the namespace. */
    /* Called once; 'e' is NULL when the objects exist.  It may not stop the bootstrap. */
    void (*done)(void *ctx, const struct err *e);
    void *ctx;
};
/* Its configuration is a struct bootstrap_config. */
extern const struct controller bootstrap_controller;
