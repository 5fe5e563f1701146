/* SPDX-License-Identifier: Apache-2.0 */
/* The node's conditions: the facts of readiness.h gathered from the agent, and the Node object's
 * conditions and Events set by them. On the loop's thread. */
#pragma once

#include "node/agent/agent_priv.h"

/* Judges the agent's facts now.  Valid until the next call. */
const struct readiness *agent_readiness(struct agent *a);
/* Sets the node's conditions by the facts.  An Event says once that the node is not ready, again
 * when the reason changes, and once when it is ready again. */
void agent_update_conditions(struct agent *a);
/* Implements pods_ops.not_ready; 'ctx' is a struct agent.  NULL, or why no pod can be served. */
const char *agent_why_not_ready(void *ctx);
