/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and updates the roles and bindings that every cluster has, once at start,
 * because an upgrade may have new ones.  Objects whose annotation autoupdate is "false"
 * are not changed; only withdrawn rules are removed from others.  Security context constraints that
 * are missing are created; those that exist are the administrator's.  After an error of the
 * server the request is retried without limit.  A controller without watches: its work ends when
 * the objects are written. */
#pragma once

#include "controller/controller.h"
#include "sdn/network.h"

struct rbac_bootstrap_config {
    enum sdn_plugin plugin;
    loop_fn *done; /* Called once; it may not stop the bootstrap. */
    void *ctx;
};
/* Its configuration is a struct rbac_bootstrap_config. */
extern const struct controller rbac_bootstrap_controller;
