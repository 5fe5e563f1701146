/* SPDX-License-Identifier: Apache-2.0 */
/* The VNID controller of the plug-ins whose projects have VNIDs: Namespaces to NetNamespaces.
 *
 * A project's id is its own from the first decision until both its Namespace and its NetNamespace are gone:
 * a NetNamespace that was deleted by hand comes back with the id it had, so that pods that run keep their
 * network.  Nothing is allocated before all NetNamespaces are known.
 *
 * It also moves projects to another network when an administrator asks for it (vnid_move.h). */
#pragma once

#include "controller/controller.h"

struct vnids_config {
    bool fixed;          /* Projects keep the ids they have: the plug-in knows no joining. */
    unsigned pause_ms;   /* After each step of a move; 0: a second. */
    unsigned give_up_ms; /* How long a request that is refused is kept; 0: 20 seconds. */
};

/* Its configuration is a struct vnids_config. */
extern const struct controller vnids_controller;
