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

struct port_peers;

/* Called when a pod's link on a peer is gone. */
typedef void port_peers_gone_fn(void *ctx, const char *name);
/* -EOPNOTSUPP: the kernel has no macvlan. */
int port_peers_open(struct loop *l, const char *run_dir, port_peers_gone_fn *fn, void *ctx,
                    struct port_peers **ret, struct err *e);
struct port_peers *port_peers_close(struct port_peers *x);
/* Mounts the namespace in the agent's folder unless it is mounted already. */
int port_peers_mount(const char *run_dir, struct err *e);
DEFINE_CLEANUP(struct port_peers *, port_peers_close)

/* ---- on any thread ---- */

/* The namespace; valid until port_peers_close. */
int port_peers_fd(const struct port_peers *x);
/* The name of a port's peer. */
void port_peers_name(const char *port, char ret[IF_NAMESIZE]);
/* The MAC of a peer without a pod. */
struct mac port_peers_mac(const char *name);
