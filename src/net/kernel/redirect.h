/* SPDX-License-Identifier: Apache-2.0 */
/* Hands frames from one link to another in the kernel, by eBPF programs of a few instructions at
 * the links' tc hooks (clsact, tc-bpf(8)).
 *
 * This connects the link of a pod to an existing port of Open vSwitch (docs/node.md): no device
 * moves, and none is added to the switch. A program names its target by number: when the target
 * is gone, frames are dropped. Hooks and programs are removed with their link.
 *
 * Calls block, and share nothing but the 'struct rtnl'. */
#pragma once

#include "net/kernel/rtnl.h"

enum redirect_hook {
    REDIRECT_INGRESS, /* Frames that the link receives. */
    REDIRECT_EGRESS,  /* Frames that the link sends. */
};

struct redirect {
    int ifindex; /* The link with the hook. */
    enum redirect_hook hook;
    int to;    /* The target link; its hook of the same direction gets the frames. */
    bool send; /* The target sends the received frames instead. */
    /* NULL: any; else only frames to this address pass, others are dropped. */
    const struct mac *destination;
};

/* Sets the hook's program, replacing any other. */
int redirect_set(struct rtnl *r, const struct redirect *d, struct err *e);
/* Drops frames received by the link, after sockets that see all frames (packet(7)) and before
 * the host's stack. */
int redirect_drop_received(struct rtnl *r, int ifindex, struct err *e);
/* Accepts only received frames to the link's own MAC. */
int redirect_accept_own(struct rtnl *r, int ifindex, struct err *e);
/* -ENOENT: other frames pass, too. */
int redirect_check_own(struct rtnl *r, int ifindex, struct err *e);
/* Removes both hooks of the link. */
int redirect_clear(struct rtnl *r, int ifindex, struct err *e);
/* -ENOENT: the hook has another program; the error says what is expected. */
int redirect_check(struct rtnl *r, const struct redirect *d, struct err *e);

enum redirect_place {
    REDIRECT_ALONE = 1,           /* Before all other programs. */
    REDIRECT_AMONG_OTHERS = 7768, /* After most others; the preference of the filter. */
};
/* Attaches the loaded tc program 'fd' there as 'name', and atomically replaces the one at that
 * place. */
int redirect_attach(struct rtnl *r, int ifindex, enum redirect_hook hook, enum redirect_place place,
                    const char *name, int fd, struct err *e);
/* The same for a link that will never have a program for sent frames: the kernel then needs half
 * the time. All later calls accept it like REDIRECT_INGRESS. */
int redirect_attach_received(struct rtnl *r, int ifindex, const char *name, int fd, struct err *e);
/* Detaches it, if there is one; the hook, and programs of others, stay. */
void redirect_detach(struct rtnl *r, int ifindex, enum redirect_hook hook,
                     enum redirect_place place);
/* -ENOENT: the hook has another program, or none. */
int redirect_check_attached(struct rtnl *r, int ifindex, enum redirect_hook hook, const char *name,
                            struct err *e);
/* Detaches programs with that name and place from all links, except those that 'keep' accepts. */
int redirect_sweep(struct rtnl *r, enum redirect_place place, const char *name,
                   bool (*keep)(void *ctx, const char *ifname), void *ctx, struct err *e);
