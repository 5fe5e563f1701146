/* SPDX-License-Identifier: Apache-2.0 */
/* Random namespaces, pods and policies: as the model has them, and as the compiler is told them in objects of the
 * API, by a history of changes that ends there. */
#pragma once

#include "policy_anywhere.h"
#include "sdn/model_policy.h"
#include "sdn/policy.h"

enum { RANDOM_NAMESPACES = 4, RANDOM_ENDPOINTS = 40, RANDOM_POLICIES = 8 };

struct random_policies {
    struct model_namespace namespaces[RANDOM_NAMESPACES];
    struct model_endpoint endpoints[RANDOM_ENDPOINTS];
    bool local[RANDOM_ENDPOINTS]; /* Attached here. */
    struct model_policy policies[RANDOM_POLICIES];
    char policy_names[RANDOM_POLICIES][24];
    struct model_policies model;
};

/* 'rng' gives 64 random bits.  Pods (or, with 'nodes', nodes) get the addresses. */
void random_policies_init(struct random_policies *r, uint64_t (*rng)(void));
void random_policies_add(struct random_policies *r, uint32_t ip, bool local, bool node);
void random_policies_make(struct random_policies *r); /* Once all addresses are there. */

/* Tells 'p' all of 'r', in random order. */
void random_policies_tell(const struct random_policies *r, struct policy *p);
/* Tells 'p' other things, which random_policies_tell overrules, flushing now and then, and takes back what is not of
 * 'r'. */
void random_policies_mislead(const struct random_policies *r, struct policy *p);

/* What a compiler handed out. */
struct group_store {
    struct hmap groups;
};
extern const struct policy_flow_ops group_store_ops; /* 'ctx' is the store. */
void group_store_init(struct group_store *g);
void group_store_done(struct group_store *g);
size_t group_store_count(const struct group_store *g); /* Flows. */
/* Appends copies of all flows. */
void group_store_flows(const struct group_store *g, struct of_flow_list *out);
/* Whether both have the same flows; prints one that differs. */
bool group_store_equal(const struct group_store *a, const struct group_store *b);
