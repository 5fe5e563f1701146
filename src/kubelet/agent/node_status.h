/* SPDX-License-Identifier: Apache-2.0 */
/* This host's Node: created when there is none, and its status.
 *
 * The kubelet writes capacity, allocatable, nodeInfo, addresses, images and the conditions Ready,
 * MemoryPressure, DiskPressure and PIDPressure; its reasons begin with "Kubelet", by which "tenet node"
 * leaves Ready and the addresses to it and writes only NetworkUnavailable (registration.h).  The
 * status is computed every 10 s, and written when it differs or after 5 minutes.
 * containerRuntimeVersion is what says that the node's pods have containers: only its kubelet ends
 * their deletion. */
#pragma once

#include "client/client.h"
#include "kubelet/agent/host.h"
#include "kubelet/config.h"

struct node_status;

struct node_status_config {
    struct loop *loop;
    struct api_client *client;
    const struct kubelet_config *cfg;
    const char *ip;
    uint16_t port; /* Of the kubelet's server; 0: there is none. */
};
struct node_status *node_status_new(const struct node_status_config *c);
struct node_status *node_status_free(struct node_status *n);
/* "containerd://1.6.20"; nothing is written before it is known. */
void node_status_set_runtime(struct node_status *n, const char *version);
/* Why the node is not ready; NULL: it is. */
void node_status_set_trouble(struct node_status *n, const char *message);
/* Which conditions of pressure hold. */
void node_status_set_pressure(struct node_status *n, const bool pressure[EVICT_CONDITIONS]);
/* status.images (owned by the callee). */
void node_status_set_images(struct node_status *n, struct json *images);
/* status.volumesInUse (owned by the callee). */
void node_status_set_volumes(struct node_status *n, struct json *names);
/* The amounts that pods may have. */
const struct json *node_status_allocatable(const struct node_status *n);
const struct host_facts *node_status_host(const struct node_status *n);
bool node_status_is_registered(const struct node_status *n);

/* Pure: status.capacity and status.allocatable (owned) of a host. */
void node_status_amounts(const struct host_facts *h, const struct kubelet_config *cfg,
                         const struct json *hugepages, struct json **ret_capacity,
                         struct json **ret_allocatable);
