/* SPDX-License-Identifier: Apache-2.0 */
/* Services in the agent: one watch of the registry, whose services the datapath serves to pods, and
 * the host's proxy to the host and to clients outside the cluster. On the loop's thread. */
#pragma once

#include "node/agent/agent_priv.h"

/* Begins to follow services. */
void agent_follow_services(struct agent *a);
/* Opens the host's proxy; the monitor then ignores its changes. */
int agent_open_proxy(struct agent *a, struct err *e);
/* Ends the watch and the proxy; called before the registry's client is freed. */
void agent_close_services(struct agent *a);
