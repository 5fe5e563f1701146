/* SPDX-License-Identifier: Apache-2.0 */
/* Network policy: from policies, namespaces and pods of the cluster to what the datapath of this
 * node enforces.  Pure.
 *
 * The objects come in one by one, as informers tell them; policy_flush then hands out what changed:
 * groups of flows (pipeline.h), or rows of tables (policy_table.h), as the datapath asked for.
 * What it costs is of the size of the change: selectors are evaluated for the pods that changed, or
 * the pods for a selector that is new; sets of addresses that policies share exist once.
 *
 *     policies ──▶ rules ──▶ sets (who is meant)      pods ──▶ addresses
 *                                  └────── classes ──────┘
 *
 * A *set* is what one selector means at one place of a rule.  A *class* is a combination of sets
 * that some pod is in; flows give each address its class, and rules speak of classes, addresses and
 * ports by conjunctive match (ovs-fields(7)).  So the flows are the sum of pods, peers and ports,
 * never their product.  Only policies that select a pod of this node have rules here.
 *
 * An object that cannot be compiled fails closed: NetworkPolicy isolates its pods and allows
 * nothing; the administrator's kinds deny everything at their place.
 *
 * Numbers of classes and rules follow from names, so that a new agent computes the flows that the
 * switch has. JSON is not kept.  Not thread-safe. */
#pragma once

#include "sdn/address.h"
#include "sdn/policy_table.h"
#include "wire/openflow.h"

struct policy;

struct policy_ops {
    /* Reports an ignored address of a pod (of a node: 'ns' is NULL) and the reason; may be NULL. */
    void (*ignored)(void *ctx, const char *ns, const char *name, const char *why);
};

/* 'local': this node's subnet; its addresses are pods only when policy_attach says so. */
struct policy *policy_new(struct ip4_prefix local, const struct policy_ops *ops, void *ctx);

/* A datapath asks for the form that it enforces, before the first flush: tables or flows.  It gets
 * what policy_flush hands out until policy_leave. */
struct policy_flow_ops {
    /* The group 'cookie' is now 'flows' (to be emptied by the callee; none: the group is gone). */
    void (*set_group)(void *ctx, uint64_t cookie, struct of_flow_list *flows);
};
void policy_want_flows(struct policy *p, const struct policy_flow_ops *ops, void *ctx);
void policy_want_table(struct policy *p, const struct policy_table_ops *ops, void *ctx);
/* From now on nothing is handed out: the datapath keeps what it has. */
void policy_leave(struct policy *p);
/* Hands out that everything is gone. */
struct policy *policy_free(struct policy *p);

/* ---- what there is ---- */

/* A policy is there or has changed; 'ns' NULL for the kinds of the administrator.  -EINVAL: it
 * cannot be compiled and fails closed; the error names the field. */
int policy_set_object(struct policy *p, enum policy_kind kind, const char *ns, const char *name,
                      const struct json *obj, struct err *e);
void policy_delete_object(struct policy *p, enum policy_kind kind, const char *ns,
                          const char *name);
/* Objects of the API: their metadata, and of pods the named ports and the addresses, are looked
 * at. */
void policy_set_namespace(struct policy *p, const char *name, const struct json *obj);
void policy_delete_namespace(struct policy *p, const char *name);
void policy_set_pod(struct policy *p, const char *ns, const char *name, const struct json *obj);
void policy_delete_pod(struct policy *p, const char *ns, const char *name);
void policy_set_node(struct policy *p, const char *name, const struct json *obj);
void policy_delete_node(struct policy *p, const char *name);
/* HostSubnets, by the name of their node, and networks, by which the compiler checks addresses
 * (address.h): a pod's address counts only in the HostSubnet of its node, a node's only outside the
 * networks of pods and services.  They may come in any order, also after the pods. */
void policy_set_host_subnet(struct policy *p, const char *node, const struct json *obj);
void policy_delete_host_subnet(struct policy *p, const char *node);
void policy_set_rules_of_addresses(struct policy *p, const struct node_rules *rules);
/* A pod of this node has the address; one whose object is not known is cut off until it is. */
void policy_attach(struct policy *p, uint32_t ip, const char *ns, const char *name);
void policy_detach(struct policy *p, uint32_t ip);
/* Whether the pod's labels and those of its namespace are known; -ENOENT says which are not. */
int policy_knows_pod(const struct policy *p, const char *ns, const char *name, struct err *e);

/* Hands out what changed since the last time. */
void policy_flush(struct policy *p);

/* ---- what came of it ---- */

/* What the flows with the cookie are of: "NetworkPolicy red/web, ingress rule 1", "pods selected by
 * NetworkPolicy red/web", "pod red/a".  False: the cookie is none of ours. */
bool policy_describe(const struct policy *p, uint64_t cookie, struct strbuf *out);

/* What decides about a packet at one end of it. */
enum policy_reason {
    POLICY_BY_RULE,
    POLICY_BY_ISOLATION, /* Denied: a NetworkPolicy selects the pod, and no rule allows it. */
    POLICY_BY_IGNORANCE, /* Denied: the pod's object is not known. */
    POLICY_UNDECIDED,    /* Allowed: policies select the pod, and none says otherwise. */
    POLICY_NOT_SELECTED, /* Allowed: no policy selects the pod; or there is none here. */
};
struct policy_decision {
    bool allowed;
    enum policy_reason reason;
    /* Groups: of the rule, or of what else decides; and of the policies that select the pod.  0:
     * none. */
    uint64_t by, selected;
};
/* Asks the rules themselves, of the last flush, about a packet that begins a connection; 'dst_port'
 * is 0 for protocols without ports.  The pod at 'src' is judged as a sender (POLICY_EGRESS), or
 * that at 'dst' as a receiver. */
struct policy_decision policy_decide(const struct policy *p, enum policy_direction d, uint32_t src,
                                     uint32_t dst, uint8_t proto, uint16_t dst_port);

/* As policy_describe, what decides ("by"); of those that isolate a pod these alone.  False:
 * nothing does. */
bool policy_describe_decision(const struct policy *p, const struct policy_decision *d,
                              struct strbuf *out);

struct policy_stats {
    size_t objects, active; /* Policies known, and those that select a pod here. */
    size_t broken;          /* Of the known ones. */
    size_t pods, sets, classes, rules;
};
void policy_get_stats(const struct policy *p, struct policy_stats *ret);

/* Fail closed: policies are judged by class, so at most this many rules of one direction apply on
 * one node; what is beyond counts as impossible to compile. */
#define POLICY_MAX_RULES 57600
