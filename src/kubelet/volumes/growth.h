/* SPDX-License-Identifier: Apache-2.0 */
/* Growing the file system of a CSI volume that a pod has, when its claim has the condition
 * FileSystemResizePending.
 *
 * A node may read the claims that its pods use by their names, thus the claim is asked for every minute while
 * the pod has the volume.  The claim's status then gets the new size.  Calls of the driver run on threads of
 * jobs.h, everything else on the loop's thread. */
#pragma once

#include "client/client.h"
#include "kubelet/csi/drivers.h"
#include "kubelet/volumes/jobs.h"

/* The bytes to which the file system of the claim's volume shall grow; 0: nothing is to be done.  Pure. */
int64_t claim_growth(const struct json *claim, const struct json *pv);

struct growth_config {
    struct loop *loop;
    struct api_client *client;
    struct jobs *jobs;
    struct csi_drivers *drivers;
    const char *pods_dir, *ns, *claim; /* Copied. */
};
struct growth;
struct growth *growth_new(const struct growth_config *c);
struct growth *growth_free(struct growth *g);
