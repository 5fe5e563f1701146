/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's state as metrics and introspection requests see it (node/introspect/introspect.h). On
 * the loop's thread. */
#pragma once

#include "node/agent/agent_priv.h"

/* Opens the agent's socket and, where configured, the address of the metrics. */
int agent_open_view(struct agent *a, struct err *e);
