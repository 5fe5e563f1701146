/* SPDX-License-Identifier: Apache-2.0 */
/* The VNID controller of redhat/openshift-ovs-multitenant and -ovs-networkpolicy: Namespaces to NetNamespaces.
 *
 * A project's id is its own from the first decision until both its Namespace and its NetNamespace are gone:
 * a NetNamespace that was deleted by hand comes back with the id it had, so that pods that run keep their
 * network.  Nothing is allocated before all NetNamespaces are known. */
#pragma once

#include "controllers/recorder.h"

struct vnids;
/* All must outlive the controller.  It begins at once. */
struct vnids *vnids_new(struct loop *l, struct api_client *client, struct recorder *recorder);
struct vnids *vnids_free(struct vnids *v);
