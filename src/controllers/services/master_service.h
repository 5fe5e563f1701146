/* SPDX-License-Identifier: Apache-2.0 */
/* The API as a service of the cluster: "kubernetes" in the project default has the first address of the service
 * network, and the masters that live as its endpoints; "openshift" is another name of it.
 *
 * Each master runs this.  Where there can be several, each keeps a Lease, and the endpoints are those of the Leases that
 * are fresh: a master that dies is no endpoint any more when its Lease has run out.  On the loop's thread. */
#pragma once

#include "client/client.h"

#define MASTER_LEASE_S 15

struct master_service_config {
    uint32_t service_ip; /* First address of the service network. */
    uint32_t ip; /* Ours, as nodes reach it; 0: only this host does, and there are no endpoints. */
    uint16_t port;
    bool shared; /* There may be other masters. */
};

struct master_service;
struct master_service *master_service_new(struct loop *l, struct api_client *client,
                                          const struct master_service_config *cfg);
/* This master is about to stop: it gives its Lease up, and takes itself from the endpoints, while the API is served still.
 * 'done' is called when that is so, or could not be had within MASTER_RESIGN_MS; not from within the call. */
#define MASTER_RESIGN_MS 1000
void master_service_resign(struct master_service *m, void (*done)(void *ctx), void *ctx);
struct master_service *master_service_free(struct master_service *m);

/* Pure: the subsets of the Endpoints that the items of a list of Leases stand for at 'now_ms', each address once, in
 * order; owned. */
struct json *master_service_subsets(const struct json *leases, int64_t now_ms);
