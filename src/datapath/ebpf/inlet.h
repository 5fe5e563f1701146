/* SPDX-License-Identifier: Apache-2.0 */
/* The inlet of a pod: the link on which the pod's packets arrive. It is the pod's own link, or
 * one behind it when a limit is applied.
 *
 *     limited by us       veth ─▶ tnqX (token bucket) ─▶ tniX ◀ the program
 *     by another plug-in  veth ─▶ ifb of that plug-in ─▶ tnbrX, a bridge of that link alone ◀ the program
 *
 * Calls block for some netlink exchanges. Calls for different pods may run at once, on any threads,
 * each with a 'struct rtnl' of its own. */
#pragma once

#include "datapath/datapath.h"
#include "datapath/ebpf/hook.h"
#include "net/kernel/rtnl.h"

struct inlet {
    int link, inlet; /* ifindex of the pod's link and of its inlet; 0: absent. */
    bool queued;     /* Packets to the pod pass the queue of its link. */
};

/* Finds the inlet that an earlier agent process made for a pod; 'bandwidth' is as stored with
 * it. */
struct inlet inlet_find(const char *host_if, const char *bandwidth);
/* Attaches the program 'prog_fd' to such an inlet, in place of that of the earlier process. */
int inlet_hook(const struct hooks *h, struct rtnl *r, const char *host_if, const char *bandwidth,
               int prog_fd, struct err *e);

/* Makes the pod's inlet for the limits in 'w', attaches the program to it, and connects the pod's
 * link with it last: no packet bypasses the limit or the program. */
int inlet_wire(const struct hooks *h, struct rtnl *r, const struct dp_wire *w, int prog_fd,
               struct inlet *ret, struct err *e);
/* Checks that all is as inlet_wire makes it; the error names the first difference. */
int inlet_check(const struct hooks *h, struct rtnl *r, const struct dp_wire *w, int prog_fd,
                struct inlet *ret, struct err *e);
/* Removes all but the pod's own link; success when absent. */
int inlet_remove(struct rtnl *r, const struct dp_wire *w, struct err *e);
