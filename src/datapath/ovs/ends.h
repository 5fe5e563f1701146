/* SPDX-License-Identifier: Apache-2.0 */
/* The other ends of the pool's ports, on which the links of pods sit.
 *
 * A port's device is one end of a veth pair (pool.h).  The other end is in a network namespace of ours in which there is
 * nothing else, and a pod's link is a macvlan on top of it ("passthru": it gets all frames, and is the only one), made in
 * the pod's namespace.  So one request to the kernel connects a pod, and another one disconnects it, while in the host's
 * namespace nothing comes, goes or changes: Open vSwitch, which reads links, addresses and routes again whenever that
 * happens and does nothing else meanwhile, does not hear of pods.
 *
 * The namespace is mounted on a file of the agent's folder, and outlives the agent.  An end has a MAC that follows from its
 * name as long as no pod is on it, and the pod's when one is.  Frames to another MAC do not pass.
 *
 * On the loop's thread, but for what says otherwise. */
#pragma once

#include "net/kernel/rtnl.h"
#include "net/loop/loop.h"

struct ends;

/* An end lost its pod. */
typedef void ends_gone_fn(void *ctx, const char *name);
/* -EOPNOTSUPP: the kernel has no macvlan. */
int ends_open(struct loop *l, const char *run_dir, ends_gone_fn *fn, void *ctx, struct ends **ret,
              struct err *e);
struct ends *ends_close(struct ends *x);
/* Mounts the namespace in the agent's folder, if it is not there. */
int ends_mount(const char *run_dir, struct err *e);
DEFINE_CLEANUP(struct ends *, ends_close)

/* ---- on any thread ---- */

/* The namespace; valid until ends_close. */
int ends_fd(const struct ends *x);
/* The other end of a port. */
void ends_name(const char *port, char ret[IF_NAMESIZE]);
/* Its MAC when no pod is on it. */
struct mac ends_mac(const char *name);
