/* SPDX-License-Identifier: Apache-2.0 */
/* Pods of this node as they come and go: CNI requests, and the modules of the agent that follow
 * pods.  On the loop's thread. */
#pragma once

#include "node/agent/agent_priv.h"

/* Makes a->pods for the opened datapath. */
void agent_open_pods(struct agent *a);
/* Makes a->resolver, which may stay NULL. */
int agent_open_resolver(struct agent *a, struct err *e);
/* Passes the pods that were attached before this agent started to the resolver. */
void agent_resolve_attached(struct agent *a);
/* Everything is in place for the first time: takes over the pods and opens the CNI socket. */
int agent_open_for_pods(struct agent *a, struct err *e);
