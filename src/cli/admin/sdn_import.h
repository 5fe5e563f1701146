/* SPDX-License-Identifier: Apache-2.0 */
/* The changes that an import of an openshift-sdn cluster's network makes, and its obstacles.
 *
 * The subnets of nodes and the VNIDs of projects of the existing cluster stay as they are, so that
 * its nodes can move to Tenet one by one.  Pure: objects come in, and a plan goes out.  A plan with
 * problems must not be carried out at all. */
#pragma once

#include "base/str.h"
#include "wire/json.h"

/* Objects of one cluster.  The arrays are owned. */
struct sdn_objects {
    struct json *network; /* The ClusterNetwork; NULL: there is none. */
    struct json *subnets, *nets, *projects, *policies;
    struct json *pods; /* Only of the cluster that gets the import. */
};
void sdn_objects_init(struct sdn_objects *o);
void sdn_objects_done(struct sdn_objects *o);
/* Adds an object of a kind that is imported (ClusterNetwork, HostSubnet, NetNamespace,
 * EgressNetworkPolicy, Project or Namespace, in any of their groups) and takes it over.  Returns
 * false, and takes nothing, for an object of another kind. */
bool sdn_objects_add(struct sdn_objects *o, struct json *object);

struct sdn_plan {
    /* Objects to create, without what the other cluster's API server made: arrays, owned. */
    struct json *projects, *subnets, *policies;
    struct json *nets;      /* NetNamespaces to create or to change; an array, owned. */
    size_t unchanged;       /* Objects that are as they should be. */
    struct strbuf problems; /* A line each. */
    struct strbuf remarks;  /* A line each. */
    size_t n_problems;
};
void sdn_plan_done(struct sdn_plan *p);
/* 'has_policies': the cluster that gets the import knows EgressNetworkPolicies. */
void sdn_plan_make(const struct sdn_objects *from, const struct sdn_objects *to, bool has_policies,
                   struct sdn_plan *ret);
