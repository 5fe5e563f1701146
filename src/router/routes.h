/* SPDX-License-Identifier: Apache-2.0 */
/* Routes, services and namespaces of the API server, and what follows for the proxy: claims decide
 * which routes are served, plans go to the driver, verdicts to the status.
 *
 * While the API server is away all stays as it is.  The owner frees it before the driver.
 * Everything runs on the loop's thread. */
#pragma once

#include "client/client.h"
#include "router/config.h"
#include "router/driver.h"

struct routes;
struct routes_config {
    struct loop *loop;
    struct api_client *client;
    const struct router_config *config;
    const struct route_plan_options *options;
    struct driver *driver;
};
int routes_new(const struct routes_config *cfg, struct routes **ret, struct err *e);
bool routes_are_synced(const struct routes *r);
size_t routes_admitted(const struct routes *r);
size_t routes_rejected(const struct routes *r);
struct routes *routes_free(struct routes *r);
