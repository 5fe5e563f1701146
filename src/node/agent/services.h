/* SPDX-License-Identifier: Apache-2.0 */
/* Services in the agent: one watch of the registry, served to pods by the datapath and to the host
 * and from outside by the host's proxy.  On the loop's thread. */
#pragma once

#include "node/agent/agent_priv.h"

/* Begins to follow services. */
void agent_follow_services(struct agent *a);
/* Opens the host's proxy; the monitor is told to ignore its changes. */
int agent_open_proxy(struct agent *a, struct err *e);
/* Ends both, before the registry's client goes. */
void agent_close_services(struct agent *a);
