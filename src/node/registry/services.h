/* SPDX-License-Identifier: Apache-2.0 */
/* Services for the pods of this node: those of the cluster for the datapath, and packets that wait
 * for an idle one.
 *
 * It listens to the agent's services_watch.  The datapath gets nothing before all services are
 * known, so that a restarted agent asks for what is there already; changes that come together leave
 * together.  While the master is away the services that are known stay.
 *
 * A service that is idle and has no endpoints is asked for when a packet comes to it: an Event
 * NeedPods on it, again after two minutes if packets still come.  The packets wait here, a few of
 * each service, and go on as if they had just been sent once there are endpoints.  Everything runs
 * on the loop's thread. */
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

/* 'watch' lives as long.  'client': for Events. */
struct services *services_new(struct loop *l, struct services_watch *watch,
                              struct api_client *client, const char *node_name,
                              const struct services_ops *ops, void *ctx);
/* The datapath keeps its services; it must not be used any more. */
struct services *services_free(struct services *s);
bool services_synced(const struct services *s);

/* Once they are synced, and after datapath_set_network: from now on 'dp' hears of services; again
 * when the network of 'n' changed but for the remotes. */
void services_begin(struct services *s, struct datapath *dp, const struct sdn_network *n);
/* The VNIDs of a project, or (NULL) of all, changed. */
void services_project_changed(struct services *s, const char *project);
/* The host ports of all nodes, each address of a node as a service (sdn/host_ports.h), sorted by
 * address, each once; 'list' and what it points to are taken over. */
void services_set_host_ports(struct services *s, struct sdn_service **list, size_t n);
/* The datapath holds a packet of a pod. */
void services_hold(struct services *s, uint32_t port, const uint8_t *frame, size_t size);

/* Somebody connects to the idle service from elsewhere than a pod: pods are asked for as for a
 * pod's packet. */
void services_want_pods(struct services *s, const char *ns, const char *name, uint8_t protocol,
                        uint16_t port);

/* All services with the VNIDs of their projects, host ports last: '*ret' is the caller's, what it
 * points to is valid until the next change. */
size_t services_list(const struct services *s, struct sdn_project_service **ret);

struct services_stats {
    bool connected;             /* To the server; what is known stays when not. */
    size_t services, endpoints; /* With a clusterIP; addresses and ports that serve, each once. */
    size_t idle;
    size_t held;       /* Packets that wait now. */
    size_t sent, lost; /* Since the start: of those that waited; lost: too many, or for too long. */
    size_t pods_asked; /* Events since the start. */
};
void services_get_stats(struct services *s, struct services_stats *ret);
