/* SPDX-License-Identifier: Apache-2.0 */
/* ConfigMaps with certificate authorities.
 *
 * kube-root-ca.crt, in each namespace, has the authority of the API server's certificate: admission
 * mounts it in each pod beside the token of its service account (Kubernetes' controller
 * rootcacertpublisher).  extension-apiserver-authentication, in kube-system, has the authority of
 * the clients' certificates: by it the servers of Kubernetes' own parts know their clients
 * (clusterauthenticationtrust).  A ConfigMap that was deleted or changed is written again. */
#pragma once

#include "controller/controller.h"

struct root_ca_config {
    const char *ca;        /* PEM, borrowed; NULL: unknown, and not written. */
    const char *client_ca; /* The same. */
};
/* Its configuration is a struct root_ca_config. */
extern const struct controller root_ca_controller;
