/* SPDX-License-Identifier: Apache-2.0 */
/* The node's agent: from the registry's objects it makes the pod network, and for the container
 * runtime's requests it attaches pods.
 *
 *     register the Node -> wait for ClusterNetwork and our HostSubnet -> checks -> datapath
 *     -> tun0, routes, settings, NAT -> pods that are there -> CNI socket -> CNI configuration file
 *
 * The CNI configuration file tells the container runtime that the node is ready.  From then on the
 * agent applies each change of an object, and repairs each change that another program makes to the
 * host's links, routes and rules, by the smallest difference.  When the agent stops, it removes
 * file and socket and keeps everything else: packets flow on, and the next start finds nothing to
 * change. See docs/node.md. */
#pragma once

#include "node/config.h"

/* Makes the mounts that an agent with this configuration needs and that outlive it, and nothing
 * else. */
int agent_make_mounts(const struct node_config *cfg, struct err *e);

/* Runs until a signal (returns 0) or an error that repeating will not mend (1, logged); a negative
 * errno, with '*e', when it could not even start.  'config_path' (NULL: none) is read again for the
 * log levels on SIGHUP. */
int agent_run(const struct node_config *cfg, const char *config_path, struct err *e);
