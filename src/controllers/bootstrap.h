/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the objects that a cluster begins with: the namespace "default", and the ClusterNetwork
 * "default" as the master's configuration describes it.
 *
 * A configuration that is incompatible with the existing cluster (see
 * netconf_check_change) is refused, and nothing is written.  After an error of the
 * server the request is retried without limit. */
#pragma once

#include "client/client.h"
#include "controllers/network/netconf.h"

struct bootstrap;
/* 'network_only': another controller creates the namespace.  'e' is NULL when the objects exist.
 * Called once; the callback may not free the bootstrap. */
typedef void bootstrap_done_fn(void *ctx, const struct err *e);
struct bootstrap *bootstrap_new(struct loop *l, struct api_client *client,
                                const struct netconf *conf, bool network_only,
                                bootstrap_done_fn *done, void *ctx);
struct bootstrap *bootstrap_free(struct bootstrap *b);
