/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the agent: about this node, its pods, and objects of the registry that it does not
 * use.  Before there is a client they are dropped; the log has them in any case.  On the loop's
 * thread. */
#pragma once

#include "node/agent/agent_priv.h"

/* An Event about this node, with its name for a uid, as kubelets do.  'reason' is CamelCase. */
void agent_report_node(struct agent *a, enum recorder_type type, const char *reason,
                       const char *text);
/* An Event about a pod of this node; of 'ctx', a struct agent. */
void agent_report_pod(void *ctx, const char *project, const char *pod, const char *reason,
                      const char *text);
/* An Event about the object 'name' of the informer 'from' that is not used, with the reason
 * "KINDNotUsed". */
void agent_report_unused(struct agent *a, const char *kind, const struct informer *from,
                         const char *name, const char *text);
