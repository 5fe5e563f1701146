/* SPDX-License-Identifier: Apache-2.0 */
/* Where what a pod sends comes in: its link, or one behind it, where something on the way limits it.
 *
 *     limited by us       veth ─▶ tnqX (token bucket) ─▶ tniX ◀ the program
 *     by another plug-in  veth ─▶ ifb of that plug-in ─▶ tnbrX, a bridge of that link alone ◀ the program
 *
 * Calls block, and share nothing but the 'struct rtnl'. */
#pragma once

#include "datapath/datapath.h"
#include "net/rtnl.h"

/* Name of the inlet of the pod whose link is 'host_if'. */
void inlet_name(const char *host_if, const struct cni_bandwidth *b, char ret[16]);
/* Makes what is between link and inlet, but for the last piece (inlet_connect); '*ret' is the inlet, which is up. */
int inlet_make(struct rtnl *r, const struct dp_wire *w, const struct rtnl_link *link,
               struct rtnl_link *ret, struct err *e);
/* Leads what the link receives there: once the inlet has its program. */
int inlet_connect(struct rtnl *r, const struct dp_wire *w, const struct rtnl_link *link,
                  const struct rtnl_link *inlet, struct err *e);
/* The error says what is not as the two above leave it; '*ret' is the inlet. */
int inlet_check(struct rtnl *r, const struct dp_wire *w, const struct rtnl_link *link,
                struct rtnl_link *ret, struct err *e);
/* Takes away what is not the pod's link; success when it is absent. */
int inlet_remove(struct rtnl *r, const struct dp_wire *w, struct err *e);
