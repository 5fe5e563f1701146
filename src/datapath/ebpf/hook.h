/* SPDX-License-Identifier: Apache-2.0 */
/* Programs at the ingress hooks of links.
 *
 * With tcx a program is held by a bpf link, which is pinned so that it survives the agent; without, by a filter of
 * clsact, which goes with its link.  Either way a program is replaced at one moment, without a packet
 * between.  A program that redirects ends the chain: what others put behind it sees nothing.
 *
 * Calls block; those for different links may run at once. */
#pragma once

#include "base/err.h"

#define HOOK_TCX_INGRESS 46 /* BPF_TCX_INGRESS, Linux 6.6. */

struct hooks {
    bool tcx;
    const char *dir; /* Of the pins, in a mounted bpffs; borrowed. */
};

/* Makes 'prog_fd' the program of what the link receives. */
int hook_attach(const struct hooks *h, const char *ifname, int ifindex, int prog_fd, struct err *e);
/* -ENOENT, or another error: it is not. */
int hook_check(const struct hooks *h, const char *ifname, int ifindex, int prog_fd, struct err *e);
/* The link is gone or about to go: forgets its pin. */
void hook_forget(const struct hooks *h, const char *ifname);
/* Forgets the pins of links that 'keep' does not want. */
void hook_sweep(const struct hooks *h, bool (*keep)(void *ctx, const char *ifname), void *ctx);
