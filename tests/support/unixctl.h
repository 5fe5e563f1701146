/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking client of an Open vSwitch daemon's control socket: what ovs-appctl does, without a process
 * for each command and with many commands under way at once (JSON-RPC 1.0, ovs-appctl(8)).
 *
 * Nothing here returns on a failure of the connection: it prints why and aborts. */
#pragma once

#include "base/str.h"
#include "ovs.h"
#include "wire/json.h"

struct unixctl {
    int fd;
    int64_t sent, received;
    struct strbuf in;
    size_t used; /* Of 'in', by replies already returned. */
    struct json_scan scan;
    size_t scanned; /* Of 'in', behind 'used'. */
};

/* ovs-vswitchd's. */
void unixctl_open(struct unixctl *c, const struct ovs *o);
void unixctl_close(struct unixctl *c);
/* The arguments end with NULL.  At most UNIXCTL_MAX_UNDER_WAY requests are without a reply. */
#define UNIXCTL_MAX_UNDER_WAY 64
#define UNIXCTL_SEND(c, method, ...) \
    unixctl_send(c, method, (const char *const[]){__VA_ARGS__, NULL})
void unixctl_send(struct unixctl *c, const char *method, const char *const *args);
/* The reply to the oldest request that has none yet: 0 and its text, or -EINVAL and the daemon's
 * complaint.  'ret' is emptied first. */
int unixctl_receive(struct unixctl *c, struct strbuf *ret);
