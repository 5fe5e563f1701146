/* SPDX-License-Identifier: Apache-2.0 */
/* Projects and their VNIDs, from NetNamespaces; only under plug-ins that have VNIDs.  On the
 * loop's thread. */
#pragma once

#include "node/agent/agent_priv.h"

/* Follows NetNamespaces, or stops to, as 'plugin' has VNIDs or not. */
void agent_follow_projects(struct agent *a, enum sdn_plugin plugin);
/* The VNIDs of 'project'; of 'ctx', a struct agent.  -ENOENT: it has none yet. */
int agent_find_vnids(void *ctx, const char *project, struct sdn_vnids *ret, struct err *e);
/* Whether 'plugin' can be in effect: not before the projects of all pods have VNIDs, which the
 * master may still be giving out, else these pods would be cut off for a while.  After 30 s it can,
 * and pods without a VNID are kept apart. */
bool agent_vnids_known(struct agent *a, enum sdn_plugin plugin);
