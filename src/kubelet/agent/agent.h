/* SPDX-License-Identifier: Apache-2.0 */
/* The process "tenet kubelet": connects the runtime, the API server and the pods' workers. */
#pragma once

#include "kubelet/config.h"

/* Runs until SIGTERM or SIGINT.  'config_path': read again for SIGHUP; NULL: there is none.  An error
 * says why it cannot start. */
int kubelet_run(const struct kubelet_config *cfg, const char *config_path, struct err *e);
