/* SPDX-License-Identifier: Apache-2.0 */
/* Network policy: from policies, namespaces and pods of the cluster to the flows of this node.
 * Pure.
 *
 * Informers report the objects one by one; policy_compile then compiles what they changed, and
 * hands the groups of flows (pipeline.h) that differ to the datapath, which writes them. The cost
 * is proportional to the change: selectors are evaluated for the pods that changed, or the pods for
 * a selector that is new; sets of addresses that policies share exist once.
 *
 * A datapath without flows gets tables instead (policy_table.h).
 *
 *     policies ──▶ rules ──▶ sets (pods meant)      pods ──▶ addresses
 *                                  └────── classes ──────┘
 *
 * A *set* is the pods of one selector at one place of a rule. A *class* is a combination of sets
 * that some pod is in; flows give each address its class, and rules match classes, addresses and
 * ports by conjunctive match (ovs-fields(7)).  So the flows are the sum of pods, peers and
 * ports, never their product.  Only policies that select a pod of this node have rules here.
 *
 * An object that cannot be compiled fails closed: NetworkPolicy isolates its pods and allows
 * nothing; the administrator's kinds deny everything at their place.
 *
 * Numbers of classes and rules follow from names, so that a new agent computes the flows that
 * the switch has. JSON is not kept. Not thread-safe. */
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

/* A datapath asks for the form that it enforces, tables or flows, before the first policy_compile,
 * and gets what policy_compile hands out until policy_leave. */
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

/* ---- objects ---- */

/* A policy was added or changed; 'ns' is NULL for the administrator's kinds. -EINVAL: it cannot
 * be compiled and fails closed; the error names the field. */
int policy_set_object(struct policy *p, enum policy_kind kind, const char *ns, const char *name,
                      const struct json *obj, struct err *e);
void policy_delete_object(struct policy *p, enum policy_kind kind, const char *ns,
                          const char *name);
/* Objects of the API: only their metadata, and the named ports and addresses of pods, are used. */
void policy_set_namespace(struct policy *p, const char *name, const struct json *obj);
void policy_delete_namespace(struct policy *p, const char *name);
void policy_set_pod(struct policy *p, const char *ns, const char *name, const struct json *obj);
void policy_delete_pod(struct policy *p, const char *ns, const char *name);
void policy_set_node(struct policy *p, const char *name, const struct json *obj);
void policy_delete_node(struct policy *p, const char *name);
/* HostSubnets, by the name of their node, and networks, by which the compiler checks addresses
 * (address.h): a pod's address counts only in the HostSubnet of its node, a node's only outside
 * the networks of pods and services. They may come in any order, also after the pods. */
void policy_set_host_subnet(struct policy *p, const char *node, const struct json *obj);
void policy_delete_host_subnet(struct policy *p, const char *node);
void policy_set_rules_of_addresses(struct policy *p, const struct node_rules *rules);
/* A pod of this node has the address; while the pod's object is unknown, the pod is cut off. */
void policy_attach(struct policy *p, uint32_t ip, const char *ns, const char *name);
void policy_detach(struct policy *p, uint32_t ip);
/* Whether the pod's labels and those of its namespace are known; -ENOENT says which are not. */
int policy_knows_pod(const struct policy *p, const char *ns, const char *name, struct err *e);

/* Compiles the changes since the last call, and hands out the groups or rows that differ. */
void policy_compile(struct policy *p);

/* ---- results ---- */

/* Names the owner of the flows with the cookie: "NetworkPolicy red/web, ingress rule 1", "pods
 * selected by NetworkPolicy red/web", "pod red/a". False: the cookie is not ours. */
bool policy_describe(const struct policy *p, uint64_t cookie, struct strbuf *out);

/* The reason of a decision about a packet at one end of it. */
enum policy_reason {
    POLICY_BY_RULE,
    POLICY_BY_ISOLATION, /* Denied: a NetworkPolicy selects the pod, and no rule allows it. */
    POLICY_BY_IGNORANCE, /* Denied: the pod's object is not known. */
    POLICY_UNDECIDED,    /* Allowed: policies select the pod, and none denies. */
    POLICY_NOT_SELECTED, /* Allowed: no policy selects the pod, or the pod is not local. */
};
struct policy_decision {
    bool allowed;
    enum policy_reason reason;
    /* Groups: of the rule, or of the other reason; and of the policies that select the pod. 0:
     * none. */
    uint64_t by, selected;
};
/* Evaluates the rules, as of the last policy_compile, for a packet that begins a connection;
 * 'dst_port' is 0 for protocols without ports.  The pod at 'src' is judged as a sender
 * (POLICY_EGRESS), or that at 'dst' as a receiver. */
struct policy_decision policy_decide(const struct policy *p, enum policy_direction d, uint32_t src,
                                     uint32_t dst, uint8_t proto, uint16_t dst_port);

/* Describes the reason ("by") as policy_describe does; among policies only those that isolate
 * the pod. False: there is no reason to describe. */
bool policy_describe_decision(const struct policy *p, const struct policy_decision *d,
                              struct strbuf *out);

struct policy_stats {
    size_t objects, active; /* Policies known, and those that select a local pod. */
    size_t broken;          /* Known policies that could not be compiled. */
    size_t pods, sets, classes, rules;
};
void policy_get_stats(const struct policy *p, struct policy_stats *ret);

/* Fail closed: policies are judged by class, so at most this many rules of one direction apply
 * on one node; rules beyond the limit count as impossible to compile. */
#define POLICY_MAX_RULES 57600
