/* SPDX-License-Identifier: Apache-2.0 */
/* What the kubelet's HTTPS server tells (server/server.h): pods, containers, health, metrics, usage.
 *
 * It owns the server and its certificate.  Everything runs on the loop's thread. */
#pragma once

#include "kubelet/agent/node_status.h"
#include "kubelet/pods/workers.h"
#include "kubelet/server/server.h"

struct serve_config {
    struct loop *loop;
    struct api_client *client;
    struct runtime *runtime;
    const struct kubelet_config *cfg;
    const char *ip;
    const char *client_ca; /* PEM of the cluster's authority; NULL: clients have no certificates. */
};

struct serve;
int serve_new(const struct serve_config *c, struct serve **ret, struct err *e);
struct serve *serve_free(struct serve *s);
uint16_t serve_port(const struct serve *s);
/* The pods, once they are known, their volumes, and the node. */
void serve_set_pods(struct serve *s, struct workers *pods, struct volumes *volumes,
                    const struct node_status *node);

/* The rows of /metrics, but for those of volumes, and of /metrics/probes. */
extern const struct prom_table kubelet_metrics, kubelet_probe_metrics;
