/* SPDX-License-Identifier: Apache-2.0 */
/* Brings the roles and bindings that every cluster has to where they should be, once at start, as an upgrade may
 * have brought new ones.  Objects whose annotation autoupdate is "false" stay as they are, and nothing is taken
 * away.  Trouble with the server is tried again for ever. */
#pragma once

#include "client/client.h"
#include "sdn/network.h"

struct rbac_bootstrap;
/* 'done' is called once; the bootstrap may not be freed from it. */
struct rbac_bootstrap *rbac_bootstrap_new(struct loop *l, struct api_client *client,
                                          enum sdn_plugin plugin, loop_fn *done, void *ctx);
struct rbac_bootstrap *rbac_bootstrap_free(struct rbac_bootstrap *b);
