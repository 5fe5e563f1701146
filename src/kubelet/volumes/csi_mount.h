/* SPDX-License-Identifier: Apache-2.0 */
/* A volume of a CSI driver in a pod: NodeStageVolume once for each volume on the node, NodePublishVolume for
 * each pod, and the reverse.
 *
 * The layout is the kubelet's: ROOT/plugins/kubernetes.io/csi/DRIVER/HASH/globalmount, where HASH is of the
 * volume's handle, and ROOT/pods/UID/volumes/kubernetes.io~csi/NAME/mount, or .../device of the mode Block,
 * beside which vol_data.json says what is mounted.  After a restart these files are all that is known.  The functions may be repeated;
 * they block, and are for worker threads. */
#pragma once

#include "kubelet/csi/drivers.h"

#include <sys/types.h>

#define CSI_PLUGIN_DIR "kubernetes.io~csi"

struct csi_mount {
    struct csi_drivers *drivers;
    const char *pods_dir; /* ROOT/pods, absolute and without links. */
    const char *uid, *name;
    const struct json *source; /* CSIPersistentVolumeSource, or CSIVolumeSource if 'ephemeral'. */
    bool ephemeral, readonly;
    bool block;                                       /* volumeMode Block. */
    const struct json *modes, *options;               /* Of the PersistentVolume. */
    const struct json *publish_context;               /* Of the VolumeAttachment; NULL: none. */
    const struct json *stage_secret, *publish_secret; /* Secrets; NULL: none. */
    const struct json *pod_info; /* More of the volume's context; NULL: none. */
    const char *group_policy;    /* fsGroupPolicy of the CSIDriver. */
    bool has_group, on_root_mismatch;
    gid_t group;
};
int csi_mount_up(const struct csi_mount *m, struct err *e);
/* Unpublishes the pod's volume 'name', and unstages it when no other pod of the node has it.  A directory
 * without vol_data.json is left as it is. */
int csi_mount_down(struct csi_drivers *drivers, const char *pods_dir, const char *uid,
                   const char *name, struct err *e);
/* The same for all volumes of the pod; the first failure, after all were tried. */
int csi_mount_down_all(struct csi_drivers *drivers, const char *pods_dir, const char *uid,
                       struct err *e);
/* Grows the file system or the device of a volume that a pod of this node has, to 'bytes'; 'spec' is of its
 * PersistentVolume.  '*ret_here': a pod has it, and it is done; false: no pod of this node has it. */
int csi_mount_expand(struct csi_drivers *drivers, const char *pods_dir, const struct json *spec,
                     const struct json *source, int64_t bytes, bool *ret_here, struct err *e);
/* "PODS/UID/volumes/kubernetes.io~csi/NAME/mount", of the mode Block ".../device" (owned). */
char *csi_mount_path(const char *pods_dir, const char *uid, const char *name, bool block);

/* Whether files are given to the pod's group (CSIDriver's fsGroupPolicy).  Pure. */
bool csi_gives_to_group(const char *policy, const char *fs_type, const struct json *modes);
