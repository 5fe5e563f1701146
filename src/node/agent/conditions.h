/* SPDX-License-Identifier: Apache-2.0 */
/* The node's conditions: the facts of readiness.h gathered from the agent, and what follows from
 * them for the Node object and its Events.  On the loop's thread. */
#pragma once

#include "node/agent/agent_priv.h"

/* Judges the agent's facts now.  Valid until the next call. */
const struct readiness *agent_readiness(struct agent *a);
/* Sets the node's conditions by the facts.  An Event says once that the node is not ready, again
 * when the reason changes, and once when it is ready again. */
void agent_update_conditions(struct agent *a);
/* As pods_ops.not_ready: NULL, or why no pod can be served; of 'ctx', a struct agent. */
const char *agent_why_not_ready(void *ctx);
