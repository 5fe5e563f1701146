/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles the cluster's services to the flows that serve the pods of this node. Pure.
 *
 * services_watch (client/services.h) reports services one by one; service_flows_flush then hands
 * out the groups of flows (pipeline.h) that changed.  Each service has a group. Flows that
 * several services need (an address beside the clusterIP, an endpoint's answers, the spreading
 * over a number of endpoints) have groups of their own, whose uses are counted. Only these uses
 * are stored of a service. Equal services make equal flows, whatever the history. Not
 * thread-safe. */
#pragma once

#include "sdn/pipeline.h"

struct service_flows;

struct service_flows_ops {
    /* The group 'cookie' is now 'flows' (to be emptied by the callee; none: the group is gone). */
    void (*set_group)(void *ctx, uint64_t cookie, struct of_flow_list *flows);
};

/* 'node': the name of this node. */
struct service_flows *service_flows_new(const char *node, const struct service_flows_ops *ops,
                                        void *ctx);
/* Hands out nothing: the flows stay installed. */
struct service_flows *service_flows_free(struct service_flows *f);

/* Stores 'n' except for the remotes. Services that were set before a change have to be set
 * again. */
void service_flows_set_network(struct service_flows *f, const struct sdn_network *n);
/* A service was added or changed. 'v': the VNIDs of its project; NULL: it has none, and only
 * global projects reach the service. */
void service_flows_set(struct service_flows *f, const struct sdn_service *s,
                       const struct sdn_vnids *v);
void service_flows_delete(struct service_flows *f, const char *ns, const char *name);
/* Hands out the shared groups that changed; those of services were handed out at once. */
void service_flows_flush(struct service_flows *f);

/* Names the owner of the flows with the cookie: "service red/web", "host ports at 192.0.2.1",
 * "endpoint 10.128.0.2:8080 of services". False: the cookie is not ours. */
bool service_flows_describe(const struct service_flows *f, uint64_t cookie, struct strbuf *out);

struct service_flows_stats {
    size_t services, endpoints; /* Services with a clusterIP; serving addresses and ports. */
};
void service_flows_get_stats(const struct service_flows *f, struct service_flows_stats *ret);

/* The UDP "connections" that end with the change from 'old' to 's' (NULL: gone): nothing else would
 * end them, and what they send goes to an endpoint that does not serve any more. */
void service_flows_ended(const struct sdn_service *old, const struct sdn_service *s,
                         void (*fn)(void *ctx, const struct of_connection *c), void *ctx);
