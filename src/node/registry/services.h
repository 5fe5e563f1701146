/* SPDX-License-Identifier: Apache-2.0 */
/* Services for the pods of this node: the cluster's services for the datapath, and packets that
 * wait for an idle service.
 *
 * It listens to the agent's services_watch. The datapath gets nothing before all services are
 * known, so that a restarted agent sets the state that the datapath has already; changes that
 * arrive together are sent together.  While the master is away the known services stay.
 *
 * When a packet comes to an idle service without endpoints, the agent emits an Event NeedPods on
 * the service, again after two minutes if packets still come.  A few packets of each service wait
 * here, and are sent as if the pod had just sent them once the service has endpoints. Everything
 * runs on the loop's thread. */
#pragma once

#include "client/services.h"
#include "datapath/datapath.h"
#include "sdn/service.h"

struct services;

struct services_ops {
    /* All services are known.  Called once. */
    void (*synced)(void *ctx);
    /* The VNIDs of a project; a negative errno: it has none. */
    int (*vnids)(void *ctx, const char *project, struct sdn_vnids *ret, struct err *e);
};

/* 'watch' must outlive the result.  'client' is used for Events. */
struct services *services_new(struct loop *l, struct services_watch *watch,
                              struct api_client *client, const char *node_name,
                              const struct services_ops *ops, void *ctx);
/* The datapath keeps its services; it must not be used any more. */
struct services *services_free(struct services *s);
bool services_synced(const struct services *s);

/* Sends services to 'dp' from now on.  Called once they are synced and after datapath_set_network,
 * and again when 'n' changed in more than its remotes. */
void services_begin(struct services *s, struct datapath *dp, const struct sdn_network *n);
/* The VNIDs of a project, or (NULL) of all, changed. */
void services_project_changed(struct services *s, const char *project);
/* The host ports of all nodes, each address of a node as a service (sdn/host_ports.h), sorted by
 * address, each once; 'list' and what it points to are taken over. */
void services_set_host_ports(struct services *s, struct sdn_service **list, size_t n);
/* The datapath holds a packet of a pod. */
void services_hold(struct services *s, uint32_t port, const uint8_t *frame, size_t size);

/* A client that is no pod connects to the idle service: requests pods as for a pod's packet. */
void services_want_pods(struct services *s, const char *ns, const char *name, uint8_t protocol,
                        uint16_t port);

/* All services with the VNIDs of their projects, host ports last: '*ret' is the caller's, what it
 * points to is valid until the next change. */
size_t services_list(const struct services *s, struct sdn_project_service **ret);

struct services_stats {
    /* Connected to the API server; without a connection the known services stay. */
    bool connected;
    /* Services with a clusterIP; distinct addresses and ports that serve. */
    size_t services, endpoints;
    size_t idle;
    size_t held; /* Packets that wait at present. */
    /* Packets since the start that waited and were sent; lost: they were too many, or waited too
     * long. */
    size_t sent, lost;
    size_t pods_asked; /* Events NeedPods since the start. */
};
void services_get_stats(struct services *s, struct services_stats *ret);
