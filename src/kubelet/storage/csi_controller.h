/* SPDX-License-Identifier: Apache-2.0 */
/* The controller side of one CSI driver: makes and deletes volumes for claims, attaches and detaches them by
 * VolumeAttachments, and grows them.
 *
 * It stands for external-provisioner, external-attacher and external-resizer of Kubernetes, with their
 * annotations and finalizers, and runs beside the driver (tenet csi-controller).  The state is in the API;
 * each step ends with one write, whose event begins the next one.  Calls of the driver run on threads of
 * jobs.h, everything else on the loop's thread. */
#pragma once

#include "client/client.h"
#include "controller/recorder.h"

struct csi_controller;

struct csi_controller_config {
    struct loop *loop;
    struct api_client *client;
    struct recorder *recorder;
    const char *socket; /* The driver's; copied. */
};
/* Asks the driver for its name and abilities, again and again until it answers, and then begins. */
struct csi_controller *csi_controller_new(const struct csi_controller_config *c);
struct csi_controller *csi_controller_free(struct csi_controller *c);
