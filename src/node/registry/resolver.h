/* SPDX-License-Identifier: Apache-2.0 */
/* DNS for the pods of this node: answers the cluster's names, and forwards queries for all others,
 * at the gateway's address.
 *
 * Pods reach it without leaving the node, so names are answered also while the master or other
 * nodes are away. A port that is taken is reported and tried again; pods are attached meanwhile.
 * Everything on the loop's thread. */
#pragma once

#include "client/services.h"
#include "dns/dns.h"
#include "node/config.h"
#include "node/pod_listener.h"
#include "sdn/network.h"

struct resolver;

struct resolver_config {
    struct loop *loop;
    const struct node_config *node;
    struct services_watch *services;
    /* Reports why the resolver does not listen; NULL: it listens again. */
    void (*trouble)(void *ctx, const char *text);
    void *ctx;
};

/* '*ret' NULL where the configuration says that there is none. */
int resolver_new(const struct resolver_config *c, struct resolver **ret, struct err *e);
struct resolver *resolver_free(struct resolver *r);
/* The functions below do nothing when 'r' is NULL. */
/* Begins to listen, once the gateway is known. */
void resolver_set_network(struct resolver *r, const struct sdn_network *n);
/* Sets the project of the pod at 'ip'; NULL: the pod is gone. */
void resolver_set_pod(struct resolver *r, uint32_t ip, const char *project);
/* Sets the VNIDs of a project, which decide about its names if dnsIsolateProjects is set; NULL:
 * it has none. */
void resolver_set_project(struct resolver *r, const char *project, const struct sdn_vnids *vnids);
/* The listener for the node's pods; its context is the resolver, which may be NULL. */
extern const struct pod_listener resolver_pod_listener;
/* The VNIDs of all projects have been set. */
void resolver_projects_known(struct resolver *r);
/* The DNS settings for pods of 'project': nameservers, domain, search and options, in CNI's form.
 * The caller owns it; NULL: no settings. */
struct json *resolver_dns(const struct resolver *r, const char *project);
/* Its questions to other name servers; NULL: 'r' is NULL. */
struct dns *resolver_dns_of(struct resolver *r);
void resolver_write_metrics(struct resolver *r, struct strbuf *out);
