/* SPDX-License-Identifier: Apache-2.0 */
/* The network's controllers alone, on an API server that somebody else runs. */
#pragma once

#include "master/master_config.h"

/* Runs until it is stopped; several of them elect one by a Lease.  'kubeconfig' NULL: $KUBECONFIG, then
 * ~/.kube/config.  'config_path' (NULL: none) is read again for its log level at SIGHUP.
 * -EIO when the controllers had to give up; else the error of the kubeconfig. */
int master_run_controllers(const struct master_config *c, const char *kubeconfig,
                           const char *config_path, struct err *e);

/* Reads logLevel of the file again; all else but certificates takes a restart.  NULL: nothing to do. */
void master_reread_config(const char *config_path);
