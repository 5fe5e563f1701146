/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a master: the API server and the controllers, in one process ("tenet master") or each in its
 * own ("tenet apiserver", "tenet controllers").
 *
 * The parts have different privileges.  The API server holds the data and signs tokens of service
 * accounts; the controllers hold the key of the cluster's authority, which signs certificates,
 * and see the cluster through the API alone. */
#pragma once

#include "master/master_config.h"

struct master_run {
    const struct master_config *config;
    const char *config_path; /* The file whose log level is read again at SIGHUP; NULL: none. */
    enum master_part parts;
    /* For MASTER_CONTROLLERS alone: the kubeconfig of the API server.  NULL:
     * $KUBECONFIG, then ~/.kube/config. */
    const char *kubeconfig;
    /* For MASTER_CONTROLLERS alone: another server provides the API, and its own controllers
     * handle everything except subnets and VNIDs. */
    bool network_only;
};
/* Runs until SIGTERM or SIGINT; a second one ends it at once.  SIGHUP reads the log level and
 * certificates again.  The service manager is notified when the master is ready and when it stops.
 * Returns 0 after a signal; otherwise the error says why it ended. */
int master_run(const struct master_run *run, struct err *e);
