/* SPDX-License-Identifier: Apache-2.0 */
/* Bandwidth limits of pods for both datapaths: token buckets, and the bridge behind a pod's
 * link.
 *
 * The plug-in "bandwidth" takes the ingress qdisc of a pod's link for itself, and gives the frames
 * back to the link's master. That master is then a bridge of this one link, which accepts every
 * frame; the datapath's program on the bridge forwards what it receives.
 *
 * Calls block, and share nothing but the 'struct rtnl'. */
#pragma once

#include "datapath/datapath.h"
#include "net/kernel/rtnl.h"
#include "net/kernel/shape.h"

/* A 'rate' of 0 is no limit. */
struct shape limit_to_pod(const struct dp_wire *w);
struct shape limit_from_pod(const struct dp_wire *w);

/* Names a link that belongs to the pod's link 'host_if' ("veth" and a number): 'prefix' and that
 * number. */
void limit_link_name(const char *prefix, const char *host_if, char ret[IF_NAMESIZE]);

/* Makes the bridge of 'host_if', or finds it; a new bridge is down. */
int limit_bridge_make(struct rtnl *r, const char *host_if, struct rtnl_link *ret, struct err *e);
/* Brings it up, puts the pod's link into it, and leaves that link's hooks to the plug-in. */
int limit_bridge_join(struct rtnl *r, const struct rtnl_link *link, const struct rtnl_link *bridge,
                      struct err *e);
/* Finds the bridge of 'link'; -ENOENT: the link is not in it, or it is down. */
int limit_bridge_check(struct rtnl *r, const struct rtnl_link *link, struct rtnl_link *ret,
                       struct err *e);
/* Succeeds when the bridge is absent. */
int limit_bridge_remove(struct rtnl *r, const char *host_if, struct err *e);
