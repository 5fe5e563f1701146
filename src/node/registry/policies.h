/* SPDX-License-Identifier: Apache-2.0 */
/* Network policy on this node: the objects it follows, compiled (sdn/policy.h) for the datapath.
 *
 * Under ovs-networkpolicy the agent watches policies, namespaces, nodes and the pods of the whole
 * cluster; it keeps only the parts of the objects that sdn/policy.h needs.  The datapath gets
 * nothing before all lists are complete, so that a starting agent never allows or denies traffic by
 * half of the policies.  Changes that arrive together are sent together. A policy that cannot be
 * compiled is reported in the log and by an Event. Everything runs on the loop's thread. */
#pragma once

#include "client/client.h"
#include "node/pod_listener.h"
#include "sdn/policy.h"

struct policies;

struct policies_ops {
    void (*synced)(void *ctx); /* All lists are complete.  Called once. */
    /* An object of the project that an ADD may wait for became known. */
    void (*known)(void *ctx, const char *project);
};

/* 'local' is the node's subnet. */
struct policies *policies_new(struct loop *l, struct api_client *client, const char *node_name,
                              struct ip4_prefix local, const struct policies_ops *ops, void *ctx);
/* Removes the policies from the datapath of policies_begin. */
struct policies *policies_free(struct policies *p);
bool policies_synced(const struct policies *p);
/* Once they are synced and the datapath's pods are known: from now on 'dp' enforces the
 * policies. */
void policies_begin(struct policies *p, struct datapath *dp);
/* The datapath is about to be closed, and keeps the policies as they are. */
void policies_end(struct policies *p);

/* Inputs for the check of addresses that pods and nodes report (sdn/policy.h). */
void policies_set_rules_of_addresses(struct policies *p, const struct node_rules *rules);
void policies_set_host_subnet(struct policies *p, const char *node, const struct json *obj);
void policies_delete_host_subnet(struct policies *p, const char *node);

/* The listener for the node's pods; its context is the policies.  policies_begin reads the pods
 * attached before it. */
extern const struct pod_listener policies_pod_listener;

/* Whether nothing has changed for some seconds, so that the datapath had time to apply the
 * policies. */
bool policies_settled(const struct policies *p);
struct policy *policies_compiler(struct policies *p); /* The compiler, for introspection. */
