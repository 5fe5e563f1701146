/* SPDX-License-Identifier: Apache-2.0 */
/* Programs at the ingress hooks of links.
 *
 * There are two mechanisms. With tcx a bpf link holds the program; it is pinned so that it
 * survives the agent. With clsact a filter holds it, and disappears with its device. tcx is
 * faster per packet, but the kernel waits for an RCU grace period with the RTNL lock held when a
 * program is attached or detached: a pod's ADD, and all others meanwhile, would take 10 ms
 * longer. So the node's links get tcx; a new pod's link gets clsact, or only its ingress half,
 * which takes half the time, until it is upgraded (tcx_upgrade.h). Both replace a program
 * atomically.  A program that redirects ends the chain: programs behind it do not see the
 * packet.
 *
 * A link that is not ours gets tcx, after the programs present; without tcx, a filter of an
 * unusual preference, after those of most other programs.
 *
 * Calls block; those for different links may run at once. */
#pragma once

#include "net/kernel/rtnl.h"

#include <net/if.h>

#define HOOK_TCX_INGRESS 46 /* BPF_TCX_INGRESS, Linux 6.6. */

/* The name of the filters on shared links where the kernel has no tcx. */
#define HOOK_FILTER_NAME "tenet-datapath"

struct hooks {
    bool tcx;
    const char *dir; /* Folder of the pins, in a mounted bpffs; borrowed. */
};

enum hook_kind {
    HOOK_TCX, /* Tcx if the kernel has it: links of the node, and of pods some time after ADD. */
    HOOK_POD,
    HOOK_NEW_POD, /* A link of a new pod: no program is attached to it. */
    HOOK_SHARED,  /* Other software may have programs there, too. */
};

/* Makes 'prog_fd' the program for the link's received packets; by the mechanism for 'kind', or
 * by the one that the link has. */
int hook_attach(const struct hooks *h, struct rtnl *r, enum hook_kind kind, const char *ifname,
                int ifindex, int prog_fd, struct err *e);
/* A link and the program that it will get. */
struct hook_place {
    char ifname[IF_NAMESIZE];
    int ifindex;
};
/* Reserves the place for a program with 'idle_fd' (program_load_idle) by tcx, unless it is
 * taken: hook_attach then only replaces the program, which needs no grace period. Returns
 * whether this call reserved it. */
bool hook_reserve(const struct hooks *h, const struct hook_place *at, int idle_fd);
/* Detaches the program of a HOOK_SHARED link; does nothing when the link is gone. */
void hook_detach(const struct hooks *h, struct rtnl *r, const char *ifname, int ifindex);
/* -ENOENT, or another error: the program is not attached. */
int hook_check(const struct hooks *h, struct rtnl *r, const char *ifname, int ifindex, int prog_fd,
               struct err *e);
/* Removes the pin of a link that is gone. For an existing link this would detach the program,
 * and the host would receive the packets. */
void hook_forget(const struct hooks *h, const char *ifname);
/* Removes the pins of links that 'keep' does not name, and the filters of HOOK_SHARED links.
 * Links of pods keep their program until they are gone. */
int hook_sweep(const struct hooks *h, struct rtnl *r, bool (*keep)(void *ctx, const char *ifname),
               void *ctx, struct err *e);
