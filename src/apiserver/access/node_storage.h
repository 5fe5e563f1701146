/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the storage objects that a node sees and may write.
 *
 * A kubelet makes volumes of the class "local", removes them, and empties volumes for recycling
 * (docs/storage.md).  It lists and watches claims that the scheduler has selected it for, volumes
 * that only it can reach or that it has to empty, its VolumeAttachments and its
 * CSIStorageCapacities; every other object of these kinds is hidden from it.  Pure. */
#pragma once

#include "api/kind.h"

/* Whether the kind is one of which a node sees a part. */
bool node_storage_is_partial(const struct api_kind *k);
/* Whether the object of such a kind concerns the node. */
bool node_storage_sees(const char *node, const struct api_kind *k, const struct json *obj);
/* Whether the node made the volume by STORAGE_LOCAL_PROVISIONER, and has to remove it now. */
bool node_storage_may_delete(const char *node, const struct json *volume);
/* Whether a kubelet that mounts the volume reads the object: "secrets" or "endpoints" (without a
 * namespace of its own in the reference, that of the volume's claim). */
bool node_storage_volume_reads(const struct json *volume, const char *resource, const char *ns,
                               const char *name);
/* Whether both statuses of the claim are equal, apart from the members that a node writes when it
 * has grown the file system. */
bool node_storage_status_is_kept(const struct json *claim, const struct json *old);
