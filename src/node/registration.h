/* SPDX-License-Identifier: Apache-2.0 */
/* This host's Node object: made or brought up to date at the start, its conditions afterwards.
 *
 * Until the Node is there with our address it is tried again for ever; what the master says is logged once
 * for each reason.  After that a Node that was deleted is not made again: its HostSubnet goes, and with it
 * the agent.  Where a kubelet runs, Ready and the addresses are the kubelet's, and only NetworkUnavailable is
 * set here.  On the loop's thread. */
#pragma once

#include "client/client.h"

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
/* Whether the registry has, as far as we know, what was last set. */
bool registration_is_current(const struct registration *r);

/* Brings 'node' (a Node object) up to date and returns whether that changed it.  Pure; for tests. */
struct registration_want {
    const char *node_name;
    uint32_t node_ip;
    bool ready;
    const char *reason, *message;
    bool heartbeat; /* Also when only the time is old. */
};
bool registration_update(struct json *node, const struct registration_want *w, int64_t now_ms);
