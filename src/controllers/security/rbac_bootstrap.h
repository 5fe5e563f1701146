/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and updates the roles and bindings that every cluster has, once at start,
 * because an upgrade may have new ones.  Objects whose annotation autoupdate is "false"
 * are not changed; only withdrawn rules are removed from others.  After an error of the
 * server the request is retried without limit. */
#pragma once

#include "client/client.h"
#include "sdn/network.h"

struct rbac_bootstrap;
/* 'done' is called once; it may not free the bootstrap. */
struct rbac_bootstrap *rbac_bootstrap_new(struct loop *l, struct api_client *client,
                                          enum sdn_plugin plugin, loop_fn *done, void *ctx);
struct rbac_bootstrap *rbac_bootstrap_free(struct rbac_bootstrap *b);
