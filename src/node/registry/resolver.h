/* SPDX-License-Identifier: Apache-2.0 */
/* DNS for the pods of this node: the cluster's names and, through it, all others, at the gateway's
 * address.
 *
 * Pods reach it without leaving the node, so names are answered also while the master or other
 * nodes are away.  A port that is taken is said and tried again; pods are attached all the same.
 * Everything on the loop's thread. */
#pragma once

#include "client/services.h"
#include "dns/dns.h"
#include "node/config.h"
#include "node/podlistener.h"
#include "sdn/network.h"

struct resolver;

struct resolver_config {
    struct loop *loop;
    const struct node_config *node;
    struct services_watch *services;
    /* It does not listen, and why; or (NULL) does again. */
    void (*trouble)(void *ctx, const char *text);
    void *ctx;
};

/* '*ret' NULL where the configuration says that there is none. */
int resolver_new(const struct resolver_config *c, struct resolver **ret, struct err *e);
struct resolver *resolver_free(struct resolver *r);
/* The rest does nothing when 'r' is NULL. */
/* Begins to listen, once the gateway is known. */
void resolver_set_network(struct resolver *r, const struct sdn_network *n);
/* The pod at 'ip' is of 'project'; NULL: is gone. */
void resolver_set_pod(struct resolver *r, uint32_t ip, const char *project);
/* Sets the VNIDs of a project, which decide about its names if dnsIsolateProjects is set; NULL:
 * it has none. */
void resolver_set_project(struct resolver *r, const char *project, const struct sdn_vnids *vnids);
/* Hears of the node's pods, with the resolver (which may be NULL) for its context. */
extern const struct pod_listener resolver_pod_listener;
/* The VNIDs of all projects have been set. */
void resolver_projects_known(struct resolver *r);
/* What pods of 'project' are told: nameservers, domain, search and options, as CNI has it.  The
 * caller's; NULL: nothing. */
struct json *resolver_dns(const struct resolver *r, const char *project);
void resolver_write_metrics(struct resolver *r, struct strbuf *out);
