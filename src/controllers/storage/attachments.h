/* SPDX-License-Identifier: Apache-2.0 */
/* The attach/detach controller: makes a VolumeAttachment for each volume that a pod needs on its
 * node, and removes it when no pod does.  A driver outside (external-attacher) carries it out and
 * writes status.attached; the node waits for that before it mounts.  Decisions are in
 * storage/attach.h.
 *
 * Keys are nodes.  The controller also keeps node.status.volumesAttached, which kubelets of
 * Kubernetes wait for. */
#pragma once

#include "controller/controller.h"

extern const struct controller attachments_controller;
