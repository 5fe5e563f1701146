/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the host ports and bandwidth limits from a pod's object (objects_parse_pod_runtime) when
 * the pod is attached.
 *
 * Later changes of the object have no effect, as with kubelets.  If the pod is not found, or the
 * API server does not answer in time (logged as a warning), no host ports or limits apply, because
 * pods must start while the master is away.  On the loop's thread. */
#pragma once

#include "client/client.h"
#include "node/cni/pods.h"

/* Calls 'fn' once, never before pod_lookup returns; loop and client must exist until then. */
void pod_lookup(struct loop *l, struct api_client *client, const char *project, const char *pod,
                pods_wants_fn *fn, void *ctx);
