/* SPDX-License-Identifier: Apache-2.0 */
/* Random nodes of random networks: remotes, pods, policies, services; and addresses
 * that mean something there. */
#pragma once

#include "net/kernel/path.h"
#include "random_firewalls.h"
#include "random_policies.h"
#include "random_services.h"
#include "switch_side.h"

#define IP(a, b, c, d) \
    ((uint32_t) (a) << 24 | (uint32_t) (b) << 16 | (uint32_t) (c) << 8 | (uint32_t) (d))
#define HOST(i) IP(192, 168, 100, i)
#define NODE_NAME "this"

enum {
    FIRST_PORT = SWITCH_FIRST_PORT,
    MAX_PORTS = 9, /* More than pods: some are nobody's. */
    MAX_PODS = 6,
    MAX_REMOTES = 5,
    MAX_SERVICES = RANDOM_SERVICES,
    MAX_HOST_PORTS = 3,
    MAX_HOSTS = 10,
};

struct cluster {
    struct sdn_network net;
    struct sdn_remote remotes[MAX_REMOTES];
    struct path paths[MAX_HOSTS]; /* To HOST(i); some are not known. */
    struct model_pod pods[MAX_PODS];
    size_t n_pods;
    struct sdn_service *parsed[MAX_SERVICES + MAX_HOST_PORTS];
    struct sdn_project_service services[MAX_SERVICES + MAX_HOST_PORTS]; /* Host ports last. */
    size_t n_services;
    struct random_policies policies; /* Under ovs-networkpolicy. */
    struct random_firewalls firewalls;
};

/* Owned until cluster_done; services refer to it, so it stays where it is. */
void cluster_make(struct cluster *c);
void cluster_done(struct cluster *c);
/* The node as the model is asked about it. */
struct model_node cluster_node(const struct cluster *c);
/* A pod's, another's, a group's, ... */
uint32_t some_address(const struct cluster *c);
struct mac some_mac(const struct cluster *c);
uint32_t some_vnid(void);
