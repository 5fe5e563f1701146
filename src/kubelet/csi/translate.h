/* SPDX-License-Identifier: Apache-2.0 */
/* The volumes of clouds, whose plug-ins were replaced by CSI drivers (Kubernetes' CSI migration).
 *
 * A PersistentVolume or a pod's volume of such a type is a volume of the driver: the attach/detach
 * controller attaches it by that driver, and the kubelet mounts it by that driver.  Pure. */
#pragma once

#include "wire/json.h"

/* The CSIPersistentVolumeSource (owned) of a Volume or PersistentVolume's spec of a cloud's type; NULL: it
 * has no such source. */
struct json *csi_translate(const struct json *volume);
/* "kubernetes.io/csi/DRIVER^HANDLE" (owned): the name in a Node's volumesInUse. */
char *csi_unique_name(const struct json *source);
