/* SPDX-License-Identifier: Apache-2.0 */
/* This host's Node object: made or brought up to date at the start, its conditions afterwards.
 *
 * The agent retries without limit until the Node exists with its address, and logs each reason of
 * the master once.  After that a deleted Node is not made again: the master deletes its HostSubnet,
 * and the agent stops.  Where a kubelet runs, the kubelet sets Ready and the addresses; the agent
 * sets only NetworkUnavailable and the annotation with the host ports. On the loop's thread. */
#pragma once

#include "client/client.h"
#include "sdn/host_ports.h"

struct registration;
struct registration_config {
    struct loop *loop;
    struct api_client *client;
    const char *node_name;
    uint32_t node_ip;
};
/* 'registered' is called once. */
struct registration *registration_new(const struct registration_config *c, loop_fn *registered,
                                      void *ctx);
struct registration *registration_free(struct registration *r);
/* Sets the conditions Ready and NetworkUnavailable; 'reason' is one word in CamelCase. */
void registration_set_ready(struct registration *r, bool ready, const char *reason,
                            const char *message);
/* Sets the host's further addresses, at which its node ports and host ports are reached; sends a
 * request only when they changed. */
void registration_set_addresses(struct registration *r, const struct sdn_addresses *a);
/* The annotation with the host ports of this node's pods (sdn/host_ports.h); NULL:
 * there are none. */
void registration_set_host_ports(struct registration *r, const char *text);
/* Whether the registry is known to have the values last set. */
bool registration_is_current(const struct registration *r);

/* Brings 'node' (a Node object) up to date and returns whether that changed it.  Pure;
 * for tests. */
struct registration_want {
    const char *node_name;
    uint32_t node_ip;
    const struct sdn_addresses *addresses; /* The further addresses; NULL: not known. */
    bool ready;
    const char *reason, *message;
    bool heartbeat; /* Renew the heartbeat time even if nothing else changed. */
};
bool registration_update(struct json *node, const struct registration_want *w, int64_t now_ms);
/* The same for the annotation of host ports, which is no part of the status. */
bool registration_annotate(struct json *node, const char *host_ports);
