/* SPDX-License-Identifier: Apache-2.0 */
/* Programs at the ingress hooks of links.
 *
 * Two ways: by tcx a program is held by a bpf link, which is pinned so that it survives the agent; by clsact through a
 * filter, which goes with its link.  tcx costs a packet less, but the kernel waits for an RCU grace period, with the lock of
 * all network devices held, when a program comes or goes: 10 ms that a pod's ADD, and all others meanwhile, would
 * take longer.  So links that last get tcx, those of new pods clsact, or of that the half that is at what they
 * receive ("ingress"), which takes half the time, until they have lasted (lasting.h).  Either way a program is replaced
 * at one moment, without a packet between.  A program that redirects ends the chain: what others put behind it sees
 * nothing.
 *
 * A link that is not ours gets tcx, behind whatever is there; where the kernel has none, a filter of a preference that
 * nobody else is likely to have, behind those of most others.
 *
 * Calls block; those for different links may run at once. */
#pragma once

#include "net/kernel/rtnl.h"

#include <net/if.h>

#define HOOK_TCX_INGRESS 46 /* BPF_TCX_INGRESS, Linux 6.6. */

struct hooks {
    bool tcx;
    const char *dir; /* Of the pins, in a mounted bpffs; borrowed. */
};

enum hook_kind {
    HOOK_LASTING, /* A link of the node, or of a pod that lasts. */
    HOOK_POD,
    HOOK_NEW_POD, /* Of a pod, made just now: there is nothing on it. */
    HOOK_SHARED,  /* Others may have programs there, too. */
};

/* Makes 'prog_fd' the program of what the link receives; in the way that 'kind' gets, or that the link has. */
int hook_attach(const struct hooks *h, struct rtnl *r, enum hook_kind kind, const char *ifname,
                int ifindex, int prog_fd, struct err *e);
/* A link, and its program to be. */
struct hook_place {
    char ifname[IF_NAMESIZE];
    int ifindex;
};
/* Takes the place for a program by 'idle_fd' (program_load_idle), with tcx, unless it is taken: 'hook_attach' then changes the
 * program, for which nobody waits.  Whether it was taken by this call. */
bool hook_reserve(const struct hooks *h, const struct hook_place *at, int idle_fd);
/* Takes the program of HOOK_SHARED off again; of a link that is gone there is nothing to take. */
void hook_detach(const struct hooks *h, struct rtnl *r, const char *ifname, int ifindex);
/* -ENOENT, or another error: it is not. */
int hook_check(const struct hooks *h, struct rtnl *r, const char *ifname, int ifindex, int prog_fd,
               struct err *e);
/* The link is gone: forgets its pin.  Of one that is there the program would go, and the host take what it receives. */
void hook_forget(const struct hooks *h, const char *ifname);
/* Forgets the pins of links that 'keep' does not want, and takes the filters of HOOK_SHARED off them.  Links of pods keep their
 * program until they are gone. */
int hook_sweep(const struct hooks *h, struct rtnl *r, bool (*keep)(void *ctx, const char *ifname),
               void *ctx, struct err *e);
