/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the master's controllers, the rows of the table in controllers.c: first the bootstrap of the
 * cluster's own objects, then the others.  docs/controllers.md says how to add one.
 *
 * They see and change the cluster through its API alone, so it does not matter
 * in which process they run.  Only one set of them may run against one
 * registry.  Everything runs on the loop's thread. */
#pragma once

#include "client/informer_set.h"
#include "controllers/network/netconf.h"
#include "controllers/network/vnids.h"
#include "sched/policy.h"
#include "sdn/service_ranges.h"

/* The configuration of the controllers for access control and certificates; all borrowed. */
struct controllers_security {
    const struct pki_ca *ca; /* Signs certificate requests; NULL: none are signed. */
    /* The authority of the API server's certificate, for those Secrets; NULL: none. */
    const char *ca_pem;
    /* The authority of clients' certificates; NULL: none, or unknown here. */
    const char *client_ca_pem;
    /* Names of the accounts in each namespace; ends with NULL. */
    const char *const *service_accounts;
};

struct controllers_config {
    struct netconf network;
    const struct node_rules
        /* The rules of the API server, borrowed; NULL: addresses are checked
         * against 'network' only. */
        *addresses;
    struct vnids_config vnids; /* 'fixed' is set from the plug-in. */
    /* Enables the controllers of roles, service accounts and certificates;
     * NULL: access control is off. */
    const struct controllers_security *security;
    const struct service_ranges
        /* The ranges of the API server, borrowed; NULL: it allocates nothing for services. */
        *services;
    struct informer_set
        /* Shared with other parts of the process, borrowed; NULL: the controllers make their
         * own. */
        *informers;
    const struct sched_policy
        /* The scheduler's filters and weights, borrowed; NULL: the defaults. */
        *policy;
    unsigned node_grace_s;     /* A kubelet that was silent for longer is unknown; 0: 40. */
    unsigned ended_pods;       /* Pods that have ended and are kept; 0: all. */
    const char *node_selector; /* Of projects without one, "a=b,c=d"; NULL: none; borrowed. */
    bool no_scheduler;         /* Another program gives nodes to pods. */
    /* Another program keeps the pods of Deployments, Jobs and their like, and binds volumes. */
    bool no_workloads;
    const char *deployer_image; /* Of the pods that do rollouts of DeploymentConfigs; borrowed. */
    bool deploy_in_process;     /* Such rollouts are done without a pod where that is possible. */
    bool local_class;           /* The storage class "local" is made. */
    bool snapshot_kinds;        /* The definitions of volume snapshots are made. */
    const char *component;      /* Source of events; NULL: "tenet-master". */
    /* Another server provides the API, and its controllers handle namespaces, garbage, events' age
     * and definitions: only subnets and VNIDs are allocated here. */
    bool network_only;
    /* Called when the cluster's own objects exist and all controllers run. */
    void (*started)(void *ctx);
    /* Called when the configuration is incompatible with the cluster; nothing
     * was changed, and no controller runs. */
    void (*failed)(void *ctx, const struct err *e);
    void *ctx;
};

struct controllers;
/* 'cfg' is copied; the loop and the client must outlive the controllers.
 * 'started' and 'failed' may not free them. */
struct controllers *controllers_new(struct loop *l, struct api_client *client,
                                    const struct controllers_config *cfg);
/* Metrics of the controllers and their queues, in Prometheus' text format. */
void controllers_write_metrics(const struct controllers *c, struct strbuf *out);
struct controllers *controllers_free(struct controllers *c);
