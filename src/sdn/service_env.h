/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables by which a pod finds the services of its namespace, as a kubelet makes
 * them: for the service "my-db" with a port "sql" MY_DB_SERVICE_HOST, MY_DB_SERVICE_PORT,
 * MY_DB_SERVICE_PORT_SQL, and those of Docker's links (MY_DB_PORT, MY_DB_PORT_5432_TCP,
 * ..._PROTO, ..._PORT, ..._ADDR). Pure.
 *
 * They show the services at the moment when the pod is made, not later ones. */
#pragma once

#include "base/str.h"
#include "wire/json.h"

/* Appends "NAME=VALUE" texts to the list 'env' (an array of strings): for the services in
 * 'services' (objects) with a cluster address, sorted by name. 'links' false
 * (enableServiceLinks): only for the service kubernetes of default, which every pod gets. */
void service_env_add(const struct json *services, const char *namespace, bool links,
                     struct json *env);
