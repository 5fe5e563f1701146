/* SPDX-License-Identifier: Apache-2.0 */
/* The API as a service of the cluster: "kubernetes" in the project default has the first address of
 * the service network and the live masters as its endpoints; "openshift" is another name of it.
 *
 * Each master runs this.  Where there can be several masters, each renews a Lease of its own, and
 * the endpoints are those of the valid Leases: a master that dies is removed from the endpoints
 * when its Lease expires.
 *
 * It is no row of the controllers' table: those run in the leading process only, and a row cannot
 * resign.  Its queue and retries are those of workqueue.h.  Everything runs on the loop's
 * thread. */
#pragma once

#include "client/client.h"

#define MASTER_LEASE_S 15
#define MASTER_LEASE_LABEL "tenet.io/master"

struct master_service_config {
    uint32_t service_ip; /* First address of the service network. */
    /* The address at which nodes reach this master; 0: only this host can
     * reach it, and there are no endpoints. */
    uint32_t ip;
    uint16_t port;
    bool shared; /* There may be other masters. */
};

struct master_service;
struct master_service *master_service_new(struct loop *l, struct api_client *client,
                                          const struct master_service_config *cfg);
/* This master is about to stop: deletes its Lease, and removes itself from the endpoints
 * while the API is still served.  'done' is called when that is done, or after
 * MASTER_RESIGN_MS; not before this function returns. */
#define MASTER_RESIGN_MS 1000
void master_service_resign(struct master_service *m, void (*done)(void *ctx), void *ctx);
struct master_service *master_service_free(struct master_service *m);

/* Pure: the subsets of the Endpoints for a list of Leases at 'now_ms',
 * each address once, sorted; owned. */
struct json *master_service_subsets(const struct json *leases, int64_t now_ms);

/* Pure: the Lease 'name' of the master at 'ip' and 'port', renewed at 'now_ms'; owned. It has the
 * version of 'found', the stored one, because the API replaces Leases only by version; NULL: there
 * is none. */
struct json *master_service_lease(const struct json *found, const char *name, uint32_t ip,
                                  uint16_t port, int64_t now_ms);
