/* SPDX-License-Identifier: Apache-2.0 */
/* tenet router: follows routes, drives HAProxy, and answers health and metrics.  Thread of the loop
 * that router_run makes. */
#pragma once

#include "router/config.h"

/* Runs until SIGTERM or SIGINT, which end HAProxy after its connections, or SIGQUIT, which leaves
 * HAProxy running for the next router. */
int router_run(const struct router_config *c, struct err *e);
