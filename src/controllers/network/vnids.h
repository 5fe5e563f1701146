/* SPDX-License-Identifier: Apache-2.0 */
/* The VNID controller, for plug-ins whose projects have VNIDs: makes a
 * NetNamespace for each Namespace.
 *
 * An id is reserved for its project from the first decision until both the Namespace
 * and the NetNamespace are gone: a NetNamespace that was deleted by hand is created
 * again with the same id, so that running pods keep their network.  Nothing is
 * allocated before all NetNamespaces are known.
 *
 * It also moves projects to another network when an administrator requests it (vnid_move.h). */
#pragma once

#include "controller/controller.h"

struct vnids_config {
    bool fixed;          /* Projects keep their ids: the plug-in does not join projects. */
    unsigned pause_ms;   /* Pause after each step of a move; 0: a second. */
    unsigned give_up_ms; /* Time for which a refused request is kept; 0: 20 seconds. */
};

/* Its configuration is a struct vnids_config. */
extern const struct controller vnids_controller;
