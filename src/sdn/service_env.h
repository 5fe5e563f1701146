/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables by which a pod finds the services of its namespace, as a kubelet makes them: for the service
 * "my-db" with a port "sql" MY_DB_SERVICE_HOST, MY_DB_SERVICE_PORT, MY_DB_SERVICE_PORT_SQL, and those of Docker's links
 * (MY_DB_PORT, MY_DB_PORT_5432_TCP, ..._PROTO, ..._PORT, ..._ADDR).  Pure.
 *
 * They are those of the moment when the pod is made: what is made, or made anew, later is not in them. */
#pragma once

#include "base/str.h"
#include "wire/json.h"

/* Appends "NAME=VALUE" texts to the list 'env' (an array of strings): of the services in 'services' (objects) that have
 * a cluster address, sorted by name.  'links' false (enableServiceLinks): of the service kubernetes of default alone,
 * which every pod gets. */
void service_env_add(const struct json *services, const char *namespace, bool links,
                     struct json *env);
