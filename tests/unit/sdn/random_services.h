/* SPDX-License-Identifier: Apache-2.0 */
/* Random services, as objects of the API say them: "project/sN" with clusterIP, node ports and maybe addresses, of TCP, UDP
 * and SCTP.  No two of different numbers have an address and port in common. */
#pragma once

#include "sdn/network.h"
#include "sdn/service.h"

enum { RANDOM_SERVICES = 8, RANDOM_SERVICE_PORT = 1000, RANDOM_NODE_PORT = 30000 }; /* Plus N. */

struct random_service_world {
    const struct sdn_network *net;
    const char *node;
    uint64_t (*rng)(void);
    uint32_t (*address)(const void *ctx); /* Anywhere: of an endpoint. */
    const void *ctx;
};
struct sdn_service *random_service(const struct random_service_world *w, unsigned number);
/* Host ports at the address of a node, some of which are ports of those services; NULL: none.  They come last where the model
 * gets them. */
struct sdn_service *random_host_ports(const struct random_service_world *w, uint32_t address);
