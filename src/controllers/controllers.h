/* SPDX-License-Identifier: Apache-2.0 */
/* The master's controllers together: first what a cluster begins with, then the rows of the table
 * in controllers.c.  docs/controllers.md says how to add one.
 *
 * They see and change the cluster through its API alone, so it does not matter in which process they run.
 * Only one set of them may run against one registry.  All on the loop's thread. */
#pragma once

#include "client/informer_set.h"
#include "controllers/network/netconf.h"
#include "controllers/network/vnids.h"
#include "sdn/service_ranges.h"

/* What those of the cluster's security work with; all borrowed. */
struct controllers_security {
    const struct pki_ca *ca;             /* Signs requests; NULL: none are signed. */
    const char *ca_pem;                  /* Of the server, for those Secrets; NULL: none. */
    const char *const *service_accounts; /* In each namespace; ends with NULL. */
};

struct controllers_config {
    struct netconf network;
    const struct node_rules
        *addresses; /* The rules of the API server, borrowed; NULL: only 'network' counts. */
    struct vnids_config vnids; /* 'fixed' is the plug-in's to say. */
    /* Roles and bindings, service accounts, certificates; NULL: without, as nothing is refused anyway. */
    const struct controllers_security *security;
    const struct service_ranges
        *services; /* Of the API server, borrowed; NULL: it gives services nothing. */
    struct informer_set
        *informers;        /* Shared with others of the process, borrowed; NULL: their own. */
    const char *component; /* Source of events; NULL: "tenet-master". */
    /* The API is another's, who sees to namespaces, garbage, events' age and definitions: only subnets and
     * VNIDs are handed out. */
    bool network_only;
    /* The cluster's own objects are there and all controllers are at work. */
    void (*started)(void *ctx);
    /* The cluster cannot go on with this configuration; nothing was changed, nothing runs. */
    void (*failed)(void *ctx, const struct err *e);
    void *ctx;
};

struct controllers;
/* 'cfg' is copied; the loop and the client must outlive the controllers.  They may not be freed from
 * within 'started' or 'failed'. */
struct controllers *controllers_new(struct loop *l, struct api_client *client,
                                    const struct controllers_config *cfg);
/* Metrics of the controllers and their queues, in Prometheus' text format. */
void controllers_write_metrics(const struct controllers *c, struct strbuf *out);
struct controllers *controllers_free(struct controllers *c);
