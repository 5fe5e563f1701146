/* SPDX-License-Identifier: Apache-2.0 */
/* Introspection of the node over HTTP: metrics, its state, the pipeline in words, and traces.
 *
 * Root reaches everything at the unix socket agent.sock of the run directory.  A configured address
 * serves /metrics and /healthz only, because the list of pods and their policies are not public.
 * docs/node.md has the paths and their answers. On the loop's thread. */
#pragma once

#include "base/prom.h"
#include "client/client.h"
#include "datapath/datapath.h"
#include "datapath/services/proxy.h"
#include "node/cni/pods.h"
#include "node/host/node_host_ports.h"
#include "node/registry/resolver.h"
#include "node/registry/services.h"
#include "sdn/egress.h"
#include "sdn/model.h"
#include "sdn/policy.h"

/* The modules of the agent that answers are made from; NULL: not made yet. */
struct introspect_view {
    const char *node_name, *phase; /* "waiting", "starting", "running", "stopping" */
    const char *cni_config;
    uint32_t host_ip;
    bool ready, switch_ready, master_lost;
    const char *reason; /* Why it is not ready. */
    const struct sdn_network *net;
    struct datapath *datapath;
    struct host_proxy *host_proxy;
    struct pods *pods;
    struct informer *subnets, *projects;
    struct policy *policy; /* The compiler, under ovs-networkpolicy. */
    bool policies_settled; /* The datapath had time to apply the compiled policies. */
    struct egress *egress; /* Egress firewalls; NULL: not followed yet. */
    struct services *services;
    const struct host_ports *host_ports;
    size_t skipped;                                     /* HostSubnets that cannot be used. */
    size_t switch_losses, switch_refusals, host_losses; /* Since the start. */
    size_t master_losses;
    struct resolver *resolver;
};

struct introspect;
struct introspect_config {
    struct loop *loop;
    const char *socket_path;
    const char *metrics_address; /* "127.0.0.1:9101"; NULL: only the socket. */
    void (*view)(void *ctx, struct introspect_view *ret);
    void *ctx;
};
/* Rows of the metrics that /metrics serves, except those of DNS. */
#define INTROSPECT_METRIC_TABLES 7
extern const struct prom_table introspect_metric_tables[INTROSPECT_METRIC_TABLES];

int introspect_new(const struct introspect_config *c, struct introspect **ret, struct err *e);
/* The datapath must be closed before, which ends the requests that wait for it. */
struct introspect *introspect_free(struct introspect *i);
