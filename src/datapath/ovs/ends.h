/* SPDX-License-Identifier: Apache-2.0 */
/* Peers of the pool's ports: the devices on which pods' links are made.
 *
 * A port's device is one end of a veth pair (pool.h). The other end, the peer, is in a network
 * namespace of the agent's own in which there is nothing else, and a pod's link is a macvlan on top
 * of it ("passthru": it gets all frames, and is the only one), made in the pod's namespace. So one
 * request to the kernel connects a pod, and another one disconnects it, while no link of the host's
 * namespace changes.  So Open vSwitch gets no notifications about pods' links; at each one it would
 * read all links, addresses and routes again and do nothing else meanwhile.
 *
 * The namespace is mounted on a file of the agent's folder, and outlives the agent. A peer without
 * a pod has a MAC derived from its name; a peer with a pod has the pod's MAC.  Frames to another
 * MAC do not pass.
 *
 * On the loop's thread, except for functions that say otherwise. */
#pragma once

#include "net/kernel/rtnl.h"
#include "net/loop/loop.h"

struct ends;

/* Called when a pod's link on a peer is gone. */
typedef void ends_gone_fn(void *ctx, const char *name);
/* -EOPNOTSUPP: the kernel has no macvlan. */
int ends_open(struct loop *l, const char *run_dir, ends_gone_fn *fn, void *ctx, struct ends **ret,
              struct err *e);
struct ends *ends_close(struct ends *x);
/* Mounts the namespace in the agent's folder unless it is mounted already. */
int ends_mount(const char *run_dir, struct err *e);
DEFINE_CLEANUP(struct ends *, ends_close)

/* ---- on any thread ---- */

/* The namespace; valid until ends_close. */
int ends_fd(const struct ends *x);
/* The name of a port's peer. */
void ends_name(const char *port, char ret[IF_NAMESIZE]);
/* The MAC of a peer without a pod. */
struct mac ends_mac(const char *name);
