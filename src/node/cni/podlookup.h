/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the registry what a pod wants of its node (objects_parse_pod_runtime), when it is attached.
 *
 * Only then, as kubelets do: what is changed later is for the next pod.  A pod that the registry does not have wants
 * nothing; and so, with a warning, does one of a registry that does not answer in time, because pods must
 * start while the master is away.  On the loop's thread. */
#pragma once

#include "client/client.h"
#include "node/cni/pods.h"

/* Calls 'fn' once, never from within; the request needs loop and client until then. */
void pod_lookup(struct loop *l, struct api_client *client, const char *project, const char *pod,
                pods_wants_fn *fn, void *ctx);
