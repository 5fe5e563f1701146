/* SPDX-License-Identifier: Apache-2.0 */
/* Answers health checks of load balancers: whether this node has endpoints of a service
 * (spec.healthCheckNodePort).
 *
 * A balancer that keeps the clients' addresses (externalTrafficPolicy: Local) must send to such
 * nodes only, so it checks every node at that port by HTTP: 200 where there are endpoints, 503
 * where there are none, with kube-proxy's text. On the loop's thread. */
#pragma once

#include "net/loop/loop.h"

struct service_health;
struct service_health *service_health_new(struct loop *l);
struct service_health *service_health_free(struct service_health *h);
/* Serves the health check of a service with 'n_local' local endpoints on 'port' of all
 * addresses; 0: stops. A port that is not available is logged, and tried again at the next call. */
void service_health_set(struct service_health *h, const char *ns, const char *name, uint16_t port,
                        size_t n_local);
