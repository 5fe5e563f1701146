/* SPDX-License-Identifier: Apache-2.0 */
/* Names by which the binder, the scheduler, the API server and the kubelet agree about volumes:
 * annotations, finalizers, provisioners (docs/storage.md).  Those with kubernetes.io are
 * Kubernetes' own. */
#pragma once

/* ---- claims ---- */

/* The class of a claim or volume; it wins over the field storageClassName. */
#define STORAGE_CLASS_BETA "volume.beta.kubernetes.io/storage-class"
/* The scheduler writes it on a claim whose class waits for the first pod: the node for which the
 * volume is to be made.  A provisioner that cannot make it there removes the annotation. */
#define STORAGE_SELECTED_NODE "volume.kubernetes.io/selected-node"
/* The binder writes them on a claim: the provisioner that is to make the volume. */
#define STORAGE_PROVISIONER "volume.kubernetes.io/storage-provisioner"
#define STORAGE_PROVISIONER_BETA "volume.beta.kubernetes.io/storage-provisioner"
/* "yes" on a claim: it has its volume. */
#define STORAGE_BIND_COMPLETED "pv.kubernetes.io/bind-completed"
/* "yes" on a claim or volume: the binder wrote its reference to the other, not a user. */
#define STORAGE_BOUND_BY_CONTROLLER "pv.kubernetes.io/bound-by-controller"
#define STORAGE_CLAIM_FINALIZER "kubernetes.io/pvc-protection"

/* ---- volumes ---- */

#define STORAGE_PROVISIONED_BY "pv.kubernetes.io/provisioned-by"
#define STORAGE_VOLUME_FINALIZER "kubernetes.io/pv-protection"
/* A released volume with the policy Recycle: the binder names the node that scrubs it, whose
 * kubelet then writes one of the other two ("true"; the reason of the failure). */
#define STORAGE_RECYCLE_NODE "tenet.io/recycle-node"
#define STORAGE_RECYCLED "tenet.io/recycled"
#define STORAGE_RECYCLE_FAILED "tenet.io/recycle-failed"

/* ---- classes ---- */

#define STORAGE_DEFAULT_CLASS "storageclass.kubernetes.io/is-default-class"
#define STORAGE_DEFAULT_CLASS_BETA "storageclass.beta.kubernetes.io/is-default-class"
/* Volumes of a class with this provisioner are made by administrators only. */
#define STORAGE_NO_PROVISIONER "kubernetes.io/no-provisioner"
/* The kubelet of the selected node makes volumes of this provisioner: directories of its disk.
 * The volume's name is STORAGE_VOLUME_PREFIX and the claim's uid. */
#define STORAGE_LOCAL_PROVISIONER "tenet.io/local"
#define STORAGE_LOCAL_CLASS "local"
#define STORAGE_VOLUME_PREFIX "pvc-"
/* CSIStorageCapacity objects of STORAGE_LOCAL_PROVISIONER are in this namespace, named
 * "CLASS.NODE", with nodeTopology.matchLabels of the node's STORAGE_HOSTNAME alone. */
#define STORAGE_CAPACITY_NAMESPACE "kube-system"
#define STORAGE_HOSTNAME "kubernetes.io/hostname"
