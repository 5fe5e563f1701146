/* SPDX-License-Identifier: Apache-2.0 */
/* Services for the pods of this node: from those of the cluster to flows, and packets that wait for an idle one.
 *
 * It listens to the agent's services_watch.  No flow is written before all services are known, so that a restarted
 * agent finds what it would write; changes that come together leave together.  While the master is away what is known
 * goes on.
 *
 * A service that is idle and has no endpoints is asked for when a packet comes to it: an Event NeedPods on it, again
 * after two minutes if packets still come.  The packets wait here, a few of each service, and go on as if they had just
 * been sent once there are endpoints.  Everything runs on the loop's thread. */
#pragma once

#include "client/services.h"
#include "datapath/datapath.h"
#include "sdn/service_flows.h"

struct services;

struct services_ops {
    /* All services are known.  Called once. */
    void (*synced)(void *ctx);
    /* The VNIDs of a project; a negative errno: it has none. */
    int (*vnids)(void *ctx, const char *project, struct sdn_vnids *ret, struct err *e);
};

/* 'watch' lives as long.  'client': for Events. */
struct services *services_new(struct loop *l, struct services_watch *watch,
                              struct api_client *client, const char *node_name,
                              const struct services_ops *ops, void *ctx);
/* The switch keeps its flows. */
struct services *services_free(struct services *s);
bool services_synced(const struct services *s);

/* Once they are synced: from now on flows for the network go to 'dp'; again when the network changed. */
void services_begin(struct services *s, struct datapath *dp, const struct sdn_network *n);
/* The VNIDs of a project, or (NULL) of all, changed. */
void services_project_changed(struct services *s, const char *project);
/* The host ports of all nodes, each address of a node as a service (sdn/host_ports.h), sorted by address, each once;
 * 'list' and what it points to are taken over.  Returns whether they are others. */
bool services_set_host_ports(struct services *s, struct sdn_service **list, size_t n);
/* The datapath holds a packet of a pod. */
void services_hold(struct services *s, uint32_t port, const uint8_t *frame, size_t size);

/* Somebody connects to the idle service from elsewhere than a pod: pods are asked for as for a pod's packet. */
void services_want_pods(struct services *s, const char *ns, const char *name, uint8_t protocol,
                        uint16_t port);

const struct service_flows *services_flows(const struct services *s); /* For what it can tell. */
/* All, as the model wants them (sdn/model.h): '*ret' is owned, what it points to valid until the next change. */
size_t services_for_model(const struct services *s, struct model_service **ret);

struct services_stats {
    bool connected; /* To the server; what is known stays when not. */
    size_t services, endpoints, idle;
    size_t held;       /* Packets that wait now. */
    size_t sent, lost; /* Since the start: of those that waited; lost: too many, or for too long. */
    size_t pods_asked; /* Events since the start. */
    size_t ended;      /* UDP connections of endpoints that went: asked to be forgotten. */
};
void services_get_stats(const struct services *s, struct services_stats *ret);
