/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the CustomResourceDefinitions of volume snapshots (snapshot.storage.k8s.io/v1), which the
 * snapshot controller and external-snapshotter of Kubernetes work with.
 *
 * Tenet takes no snapshots: with the definitions, a CSI driver's own parts can.  They are made when
 * the controllers start, unless there are some of that name.  A controller without watches. */
#pragma once

#include "controller/controller.h"

extern const struct controller snapshot_kinds_controller;
