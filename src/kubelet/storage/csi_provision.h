/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions of the controller side of a CSI driver: which volumes it makes, deletes, attaches and grows, as
 * external-provisioner, external-attacher and external-resizer of Kubernetes do.  Pure; objects are
 * borrowed. */
#pragma once

#include "kubelet/csi/messages.h"
#include "wire/json.h"

/* A secret that a StorageClass names for one purpose.  The templates are ${pvc.namespace}, ${pvc.name} and
 * ${pv.name}. */
enum csi_secret {
    CSI_SECRET_PROVISION,
    CSI_SECRET_CONTROLLER_PUBLISH,
    CSI_SECRET_CONTROLLER_EXPAND,
    CSI_SECRET_NODE_STAGE,
    CSI_SECRET_NODE_PUBLISH,
    CSI_SECRETS,
};
/* {"name", "namespace"} (owned) of the class's parameters; '*ret' NULL: the class names none.  -EINVAL: one of
 * the two is missing, or a template is unknown. */
int csi_class_secret(const struct json *class, enum csi_secret which, const struct json *claim,
                     struct json **ret, struct err *e);

/* Whether the driver shall make a volume for the claim. */
bool csi_claim_is_due(const struct json *claim, const struct json *class, const char *driver);
/* Makes the request for the claim; what it points to is in the store.  'topology': labels of the node that
 * was selected, by which the volume must be reachable; NULL: any. */
int csi_create_make(struct pb_store *s, const struct json *claim, const struct json *class,
                    const struct json *secret, const struct json *topology,
                    struct csi_create_volume *ret, struct err *e);
/* The PersistentVolume (owned) for the driver's answer.  -EINVAL: the answer has no id, a smaller volume, or a
 * topology that is no label. */
int csi_volume_make(const struct json *claim, const struct json *class, const char *driver,
                    const struct csi_volume *answer, struct json **ret, struct err *e);
/* Whether the driver shall delete the volume. */
bool csi_volume_is_to_go(const struct json *pv, const char *driver);
/* The secret (owned) by which it was made and is deleted; NULL: none. */
struct json *csi_deletion_secret(const struct json *pv);

/* The labels of a node (owned) by the driver's topology keys in its CSINode; NULL: the driver has none. */
struct json *csi_node_topology(const struct json *csinode, const struct json *node,
                               const char *driver);
/* The driver's id of the node; NULL: the driver is not there. */
const char *csi_node_id(const struct json *csinode, const char *driver);

/* "external-attacher/DRIVER" with "/" as "-" (owned): the finalizer of a VolumeAttachment. */
char *csi_attach_finalizer(const char *driver);
/* The status (owned) of a VolumeAttachment; 'failure' NULL: it is attached with this context. */
struct json *csi_attach_status(const struct runtime_pairs *context, const char *failure,
                               const char *now);

/* The bytes that the claim's volume shall get; 0: it is large enough, or not the driver's. */
int64_t csi_growth_of(const struct json *claim, const struct json *pv, const char *driver);
