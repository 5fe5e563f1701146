/* SPDX-License-Identifier: Apache-2.0 */
/* The registration of CSI drivers on this node: pluginregistration.v1 on the sockets in
 * ROOT/plugins_registry, as node-driver-registrar makes them.
 *
 * A socket that appears is asked for the driver's name and endpoint, and the driver for its node id,
 * topology and abilities.  The driver is then in the table of drivers.h, in the node's CSINode and in the
 * labels of the Node, and its registrar is told.  When the socket goes, the driver goes.  Calls of drivers
 * run on threads of jobs.h; everything else runs on the loop's thread. */
#pragma once

#include "client/client.h"
#include "kubelet/csi/drivers.h"

struct csi_registry;

struct csi_registry_config {
    struct loop *loop;
    struct api_client *client;
    const char *node_name; /* Copied, as all texts. */
    const char *root_dir;
    struct csi_drivers *drivers;
    const struct json *(*node)(void *ctx); /* The Node; NULL: not known yet. */
    void (*changed)(void *ctx);            /* A driver has come or changed; NULL: not wanted. */
    void *ctx;
};
/* Makes ROOT/plugins_registry and ROOT/plugins. */
int csi_registry_new(const struct csi_registry_config *c, struct csi_registry **ret, struct err *e);
struct csi_registry *csi_registry_free(struct csi_registry *r);

/* Asks the driver behind the registration socket 'path' what it is; blocks.  -EINVAL: it is no CSI driver
 * of version 1, or its texts are not valid; the others are those of csi_call. */
int csi_registry_ask(const char *path, struct csi_driver *ret, struct err *e);
