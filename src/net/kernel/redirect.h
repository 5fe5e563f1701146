/* SPDX-License-Identifier: Apache-2.0 */
/* Hands frames from one link to another in the kernel, by eBPF programs of a few instructions at the links' tc
 * hooks (clsact, tc-bpf(8)).
 *
 * This is how the link of a pod is connected to a port that Open vSwitch has already (docs/node.md): no
 * device moves, and none is added to the switch.  A program names its target by number: when the target is
 * gone, frames are dropped.  Hooks and programs go with their link.
 *
 * Calls block, and share nothing but the 'struct rtnl'. */
#pragma once

#include "net/kernel/rtnl.h"

enum redirect_hook {
    REDIRECT_INGRESS, /* What the link receives. */
    REDIRECT_EGRESS,  /* What is sent by the link. */
};

struct redirect {
    int ifindex; /* The link with the hook ... */
    enum redirect_hook hook;
    int to;    /* ... and the one whose side of the same name the frames go to, ... */
    bool send; /* ... unless it shall send what the first one received. */
    const struct mac *destination; /* NULL: any; else only frames to it pass, others are dropped. */
};

/* Makes this what the hook does, in place of whatever it did. */
int redirect_set(struct rtnl *r, const struct redirect *d, struct err *e);
/* Frames received by the link are dropped after those who look at all frames (packet(7)) saw them: the
 * host's stack does not. */
int redirect_drop_received(struct rtnl *r, int ifindex, struct err *e);
/* Of the frames received by the link only those to its own MAC pass. */
int redirect_accept_own(struct rtnl *r, int ifindex, struct err *e);
int redirect_check_own(struct rtnl *r, int ifindex, struct err *e); /* -ENOENT: others pass, too. */
/* Takes both hooks of the link away. */
int redirect_clear(struct rtnl *r, int ifindex, struct err *e);
/* -ENOENT: the hook does something else; the error says what is expected. */
int redirect_check(struct rtnl *r, const struct redirect *d, struct err *e);

enum redirect_place {
    REDIRECT_ALONE = 1,           /* In front of all others. */
    REDIRECT_AMONG_OTHERS = 7768, /* Behind most; the preference of the filter. */
};
/* Puts the loaded tc program 'fd' there as 'name', in place of what the hook has at that place, at one moment. */
int redirect_attach(struct rtnl *r, int ifindex, enum redirect_hook hook, enum redirect_place place,
                    const char *name, int fd, struct err *e);
/* The same for a link that will never have a program at what it sends, of which the kernel then needs to know less:
 * half the time.  It is as good as REDIRECT_INGRESS to all that is asked of it later. */
int redirect_attach_received(struct rtnl *r, int ifindex, const char *name, int fd, struct err *e);
/* Takes it off again, if there is one; the hook, and what others have there, stays. */
void redirect_detach(struct rtnl *r, int ifindex, enum redirect_hook hook,
                     enum redirect_place place);
/* -ENOENT: the hook has another program, or none. */
int redirect_check_attached(struct rtnl *r, int ifindex, enum redirect_hook hook, const char *name,
                            struct err *e);
/* Takes programs of that name and place off what links receive, but for links that 'keep' wants. */
int redirect_sweep(struct rtnl *r, enum redirect_place place, const char *name,
                   bool (*keep)(void *ctx, const char *ifname), void *ctx, struct err *e);
