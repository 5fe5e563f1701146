/* SPDX-License-Identifier: Apache-2.0 */
/* Answers load balancers that ask whether this node has endpoints of a service (spec.healthCheckNodePort).
 *
 * A balancer that keeps the clients' addresses (externalTrafficPolicy: Local) must send to such nodes only, so it asks
 * every node at that port by HTTP: 200 where there are endpoints, 503 where there are none, with kube-proxy's text.
 * On the loop's thread. */
#pragma once

#include "net/loop/loop.h"

struct service_health;
struct service_health *service_health_new(struct loop *l);
struct service_health *service_health_free(struct service_health *h);
/* From now on 'port' of all addresses tells of 'n_local' endpoints of the service; 0: nobody asks.  A port that cannot
 * be had is logged, and tried again at the next call. */
void service_health_set(struct service_health *h, const char *ns, const char *name, uint16_t port,
                        size_t n_local);
