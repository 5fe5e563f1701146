/* SPDX-License-Identifier: Apache-2.0 */
/* Projects and their VNIDs, from NetNamespaces; only under plug-ins that have VNIDs.  On the
 * loop's thread. */
#pragma once

#include "node/agent/agent_priv.h"

/* Follows NetNamespaces if 'plugin' has VNIDs, else stops following them. */
void agent_follow_projects(struct agent *a, enum sdn_plugin plugin);
/* Implements pods_ops.vnids; 'ctx' is a struct agent.  Finds the VNIDs of 'project'. -ENOENT: it
 * has none yet. */
int agent_find_vnids(void *ctx, const char *project, struct sdn_vnids *ret, struct err *e);
/* Whether 'plugin' can come into effect.  It waits until the projects of all pods have VNIDs,
 * because the master may still be assigning them and pods without one would be cut off.  After 30 s
 * the plug-in comes into effect anyway, and pods without a VNID are isolated. */
bool agent_vnids_known(struct agent *a, enum sdn_plugin plugin);
