/* SPDX-License-Identifier: Apache-2.0 */
/* This host's Node object: made or brought up to date at the start, its conditions afterwards.
 *
 * Until the Node is there with our address it is tried again for ever; what the master says is logged once
 * for each reason.  After that a Node that was deleted is not made again: its HostSubnet goes, and with it
 * the agent.  Where a kubelet runs, Ready and the addresses are the kubelet's, and only NetworkUnavailable and the
 * annotation with the host ports are set here.  On the loop's thread. */
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
/* The host's further addresses, at which its node ports and host ports are; no news are no request. */
void registration_set_addresses(struct registration *r, const struct sdn_addresses *a);
/* The annotation with the host ports of this node's pods (sdn/host_ports.h); NULL: there are none. */
void registration_set_host_ports(struct registration *r, const char *text);
/* Whether the registry has, as far as we know, what was last set. */
bool registration_is_current(const struct registration *r);

/* Brings 'node' (a Node object) up to date and returns whether that changed it.  Pure; for tests. */
struct registration_want {
    const char *node_name;
    uint32_t node_ip;
    const struct sdn_addresses *addresses; /* The others; NULL: not known. */
    bool ready;
    const char *reason, *message;
    bool heartbeat; /* Also when only the time is old. */
};
bool registration_update(struct json *node, const struct registration_want *w, int64_t now_ms);
/* The same for the annotation of host ports, which is no part of the status. */
bool registration_annotate(struct json *node, const char *host_ports);
