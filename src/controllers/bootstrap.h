/* SPDX-License-Identifier: Apache-2.0 */
/* What a cluster begins with: the namespace "default", and the ClusterNetwork "default" as the master's
 * configuration has it.
 *
 * A configuration that the cluster cannot go on with (see netconf_check_change) is refused and nothing is
 * written.  Trouble with the server is tried again for ever. */
#pragma once

#include "client/client.h"
#include "controllers/network/netconf.h"

struct bootstrap;
/* 'network_only': the namespace is another's business.  'e' is NULL when all is there.  Called once; the bootstrap may not be freed from it. */
typedef void bootstrap_done_fn(void *ctx, const struct err *e);
struct bootstrap *bootstrap_new(struct loop *l, struct api_client *client,
                                const struct netconf *conf, bool network_only,
                                bootstrap_done_fn *done, void *ctx);
struct bootstrap *bootstrap_free(struct bootstrap *b);
