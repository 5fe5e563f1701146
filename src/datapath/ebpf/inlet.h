/* SPDX-License-Identifier: Apache-2.0 */
/* Where what a pod sends comes in: its link, or one behind it, where something on the way limits it.
 *
 *     limited by us       veth ─▶ tnqX (token bucket) ─▶ tniX ◀ the program
 *     by another plug-in  veth ─▶ ifb of that plug-in ─▶ tnbrX, a bridge of that link alone ◀ the program
 *
 * Calls block, and share nothing but the 'struct rtnl'. */
#pragma once

#include "datapath/datapath.h"
#include "datapath/ebpf/hook.h"
#include "net/kernel/rtnl.h"

struct inlet {
    int link, inlet; /* Of the pod's link and of its inlet; 0: it is not there. */
    bool queued;     /* What goes to the pod passes the queue of its link. */
};

/* Those that an agent before us made for a pod; 'bandwidth' is as stored with it. */
struct inlet inlet_find(const char *host_if, const char *bandwidth);
/* Gives such an inlet the program 'prog_fd'. */
int inlet_hook(const struct hooks *h, struct rtnl *r, const char *host_if, const char *bandwidth,
               int prog_fd, struct err *e);

/* From the link to the program, by what limits the pod; nothing comes to the program before it is there. */
int inlet_wire(const struct hooks *h, struct rtnl *r, const struct dp_wire *w, int prog_fd,
               struct inlet *ret, struct err *e);
/* The error says what is not as inlet_wire leaves it. */
int inlet_check(const struct hooks *h, struct rtnl *r, const struct dp_wire *w, int prog_fd,
                struct inlet *ret, struct err *e);
/* Takes away what is not the pod's link; success when it is absent. */
int inlet_remove(struct rtnl *r, const struct dp_wire *w, struct err *e);
