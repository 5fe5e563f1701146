/* SPDX-License-Identifier: Apache-2.0 */
/* Which volumes have to be attached to which nodes: the decision of the attach/detach controller.
 *
 * A volume is attached where a pod needs it, and detached when no pod does and the node no longer
 * has it in use.  A volume that one node alone may have is not attached to a second one.  A node
 * that is lost keeps its volumes for STORAGE_FORCE_MS, unless an administrator has marked it as out
 * of service: then two nodes could write to the volume at once only if the mark was wrong.
 *
 * Attachers are those of CSI.  The disks of clouds (awsElasticBlockStore and others) are attached
 * by the CSI drivers that replace them, as in Kubernetes since 1.25.  Pure. */
#pragma once

#include "storage/fields.h"

#define STORAGE_FORCE_MS INT64_C(360000)
#define STORAGE_OUT_OF_SERVICE "node.kubernetes.io/out-of-service"

/* What attaches a volume. */
struct storage_attacher {
    const char *driver, *handle; /* Borrowed; "": the volume needs no attaching. */
};
struct storage_attacher storage_attacher(const struct json *volume);
/* Whether volumes of the driver are attached; 'driver' is a CSIDriver; NULL: there is none. */
bool storage_needs_attaching(const struct json *driver);
/* Whether one node alone may have the volume. */
bool storage_is_exclusive(const struct json *volume);
/* The name that the volume has in a node's volumesInUse and volumesAttached; owned. */
char *storage_unique_name(const struct storage_attacher *a);
bool storage_is_in_use(const struct json *node, const char *unique_name);
/* When the node's volumes may be detached though its kubelet does not say that they are no longer
 * in use: wall clock; 0: now; INT64_MAX: not. 'node' NULL: it is gone. */
int64_t storage_force_detach_ms(const struct json *node);
/* A VolumeAttachment of this name, owned. */
struct json *storage_make_attachment(const char *name, const struct json *volume,
                                     const struct storage_attacher *a, const char *node);
