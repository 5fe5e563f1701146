/* SPDX-License-Identifier: Apache-2.0 */
/* Network policy in plain C, for the model: may this source reach this destination?  Pure.
 *
 * Written from the semantics of the API (NetworkPolicy of networking.k8s.io/v1,
 * AdminNetworkPolicy and BaselineAdminNetworkPolicy of policy.networking.k8s.io/v1alpha1): every
 * rule of every policy is evaluated, in order. It is the second opinion on the compiler in
 * policy.h, and shares no code and no types with it. */
#pragma once

#include "base/ip.h"

enum { MODEL_MAX_LABELS = 6, MODEL_MAX_VALUES = 3, MODEL_MAX_PORTS = 3, MODEL_MAX_RULES = 4 };
enum { MODEL_MAX_PEERS = 4, MODEL_MAX_EXCEPTS = 3 };

struct model_label {
    const char *key, *value;
};
enum model_op { MODEL_IN, MODEL_NOT_IN, MODEL_EXISTS, MODEL_NOT_EXISTS };
struct model_requirement {
    const char *key;
    enum model_op op;
    const char *values[MODEL_MAX_VALUES];
    size_t n_values;
};
struct model_selector {
    struct model_requirement list[MODEL_MAX_LABELS];
    size_t n; /* 0 selects all. */
};

struct model_namespace {
    const char *name;
    struct model_label labels[MODEL_MAX_LABELS];
    size_t n_labels;
};
struct model_named_port {
    const char *name;
    uint8_t proto;
    uint16_t number;
};
/* A pod of the cluster, local or not; or a node's address. */
struct model_endpoint {
    uint32_t ip;
    const char *ns; /* NULL: a node. */
    struct model_label labels[MODEL_MAX_LABELS];
    size_t n_labels;
    struct model_named_port ports[MODEL_MAX_PORTS];
    size_t n_ports;
    bool unknown; /* Attached locally while its object is not known. */
};

enum model_peer_kind { MODEL_PODS, MODEL_NODES, MODEL_BLOCK };
struct model_peer {
    enum model_peer_kind kind;
    bool own_namespace; /* MODEL_PODS of the policy's namespace; 'namespaces' is ignored. */
    struct model_selector namespaces, pods;
    struct ip4_prefix block, excepts[MODEL_MAX_EXCEPTS];
    size_t n_excepts;
};
struct model_port {
    uint8_t proto;    /* 0 together with a name: any protocol. */
    const char *name; /* NULL: the numbers; both 0: every port of the protocol. */
    uint16_t first, last;
};
enum model_policy_action { MODEL_ALLOW, MODEL_DENY, MODEL_PASS };
struct model_rule {
    enum model_policy_action action;
    struct model_peer peers[MODEL_MAX_PEERS]; /* None: everybody. */
    size_t n_peers;
    struct model_port ports[MODEL_MAX_PORTS]; /* None: everything. */
    size_t n_ports;
};

enum model_policy_kind { MODEL_NETWORK_POLICY, MODEL_ADMIN_POLICY, MODEL_BASELINE_POLICY };
enum model_way { MODEL_EGRESS, MODEL_INGRESS };
struct model_policy {
    enum model_policy_kind kind;
    const char *ns, *name;
    int priority;
    struct model_peer subject; /* MODEL_PODS */
    bool ways[2];              /* MODEL_NETWORK_POLICY: the directions that it isolates. */
    struct model_rule rules[2][MODEL_MAX_RULES];
    size_t n_rules[2];
    bool broken; /* Not understood: isolates, or denies everything. */
};

/* The caller owns all of it. */
struct model_policies {
    const struct model_namespace *namespaces;
    size_t n_namespaces;
    const struct model_endpoint *endpoints;
    size_t n_endpoints;
    const struct model_policy *policies;
    size_t n_policies;
};

/* One direction at one end: whether the policies that select the pod at 'subject' let it send to
 * ('egress') or receive from 'peer'; 'proto' and 'dst_port' as in the packet. */
bool model_policy_allows(const struct model_policies *m, enum model_way way, uint32_t subject,
                         uint32_t peer, uint8_t proto, uint16_t dst_port);
