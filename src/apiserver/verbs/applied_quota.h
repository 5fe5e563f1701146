/* SPDX-License-Identifier: Apache-2.0 */
/* AppliedClusterResourceQuotas: the ClusterResourceQuotas that bound a project, as its users see
 * them.
 *
 * The objects are made for each answer from those of the cluster.  A user sees what the other
 * projects of the quota use together, but not their names: unlike OpenShift's, the answer has the
 * user's own project alone in status.namespaces. */
#pragma once

#include "apiserver/request/request.h"

bool applied_quota_is_asked(const struct request *q);
void handle_applied_quota(struct request *q, struct outcome *outcome);
